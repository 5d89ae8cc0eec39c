"""Mistakes in what proves an output: verify, the signed chain, why, the shadow, its end."""

from __future__ import annotations

from mutants.mutant import Mutant

_SIGNED = "tests/cli/test_signed.py"
_VERIFY = "tests/cli/test_proof.py"
_REPLAY = "tests/session/test_replay.py"
_WHY = "tests/session/why/test_why.py"
_VERSION = "tests/session/why/test_version.py"
_SHADOW = "tests/session/test_shadow.py"

MUTANTS = (
    Mutant(
        "a chain may leave links out",
        "state/chain.py",
        "if link.previous != expected:",
        "if link.previous and before is None:",
        _SIGNED,
    ),
    Mutant(
        "a link may be that of another batch",
        "state/chain.py",
        "if link.batch != batch:",
        "if link.batch < 0:",
        _SIGNED,
    ),
    Mutant(
        "a signed file is known by its size",
        "session/verification/signed_chain.py",
        "if (found, sha) != (size, digest):",
        "if found != size:",
        _SIGNED,
    ),
    Mutant(
        "rows that are not signed are not told",
        "session/verification/signed_chain.py",
        "chain += [] if newest is None else _behind(newest.digests, last)",
        "chain += []",
        _SIGNED,
    ),
    Mutant(
        "signing that begins later is not recorded",
        "state/owner.py",
        "newest.signed or first.signed",
        "newest.signed",
        _SIGNED,
    ),
    Mutant(
        "a signed checkpoint takes a run without a key",
        "driver/checkpoint/signing.py",
        "if key is None and newest is not None and newest.signed:",
        "if key is None and newest is None:",
        _SIGNED,
    ),
    Mutant(
        "a batch that is signed again follows its own link",
        "driver/checkpoint/signing.py",
        "            previous = head.previous\n",
        "            previous = head.digest\n",
        _SIGNED,
    ),
    Mutant(
        "verify takes a changed input for a changed output",
        "session/verification/verify.py",
        '(of["difference"] and of["again"])',
        'of["difference"]',
        _VERIFY,
    ),
    Mutant(
        "verify reads more rows than were committed",
        "session/verification/verify.py",
        "        some = batch.slice(0, rows)\n",
        "        some = batch\n",
        f"{_VERIFY} {_REPLAY}",
    ),
    Mutant(
        "verify goes by the input where the clock has decided",
        "session/verification/verify.py",
        "return idle or refreshed or record.was_changed is not None",
        "return record.was_changed is not None",
        _REPLAY,
    ),
    Mutant(
        "a batch that runs again has the tables of the one before",
        "driver/tables.py",
        "            if self._held.get(table.name) != records:\n",
        "            if table.name not in self._held:\n",
        _REPLAY,
    ),
    Mutant(
        "why takes the last partner of a semi join",
        "session/why/partner.py",
        "partners.setdefault(kept, partner)",
        "partners[kept] = partner",
        _WHY,
    ),
    Mutant(
        "why takes any tuple of a frame's time for one of its key",
        "session/why/frame.py",
        "        members = np.flatnonzero(hashes == key)\n",
        "        members = np.arange(len(hashes))\n",
        _WHY,
    ),
    Mutant(
        "why takes the newest rows of a table",
        "session/why/version.py",
        'if version["from_us"] <= span.low_us and (end_us is None or span.high_us < end_us):',
        "if end_us is None:",
        _VERSION,
    ),
    Mutant(
        "why takes the first of equal rows",
        "session/why/answer.py",
        "nth=_equal_before(str(place), wanted)",
        "nth=0",
        _VERSION,
    ),
    Mutant(
        "a switch drops the digests of the rows before",
        "session/verification/shadow.py",
        "        digests=newest.digests,\n",
        "",
        _SHADOW,
    ),
    Mutant(
        "a shadow takes all its input at once",
        "session/verification/shadow.py",
        "> loop.pipeline.limit.rows:",
        "> loop.pipeline.limit.rows * 1_000_000:",
        _SHADOW,
    ),
    Mutant(
        "a shadow reads beyond its end",
        "gate/track.py",
        "return known if self.end is None else min(known, self.end)",
        "return known",
        _SHADOW,
    ),
    Mutant(
        "a shadow waits for sources that are not its own",
        "gate/inlet.py",
        "for t in self._holding() if not t.outside",
        "for t in self._holding()",
        _SHADOW,
    ),
    Mutant(
        "a source that a shadow has read to its end counts as consumed",
        "gate/track.py",
        "self.end is None and not self.has_rows()",
        "not self.has_rows()",
        _SHADOW,
    ),
    Mutant(
        "a shadow's watermark passes that of the checkpoint",
        "gate/intake.py",
        "        reached = min(reached, self._arrivals.end_us)\n",
        "",
        _SHADOW,
    ),
)
