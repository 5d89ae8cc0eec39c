"""Mistakes in batches that are cut and mapped while the one before runs."""

from __future__ import annotations

from mutants.mutant import Mutant

_GATE = "tests/gate/test_cut_ahead.py"
_TESTS = "tests/driver/test_ahead.py"

MUTANTS = (
    Mutant(
        "a manifest has the positions of the batch that was cut after its own",
        "driver/inputs.py",
        "        with self._newest():\n            # A batch that runs again",
        "        with self._alone():\n            # A batch that runs again",
        _TESTS,
    ),
    Mutant(
        "a cut that was made ahead is taken though the limit is another",
        "gate/intake.py",
        "if ahead is None or ahead.limit_rows != limit_rows:",
        "if ahead is None:",
        _TESTS,
    ),
    Mutant(
        "a batch that does not fit is taken back, and the one after it is not",
        "gate/intake.py",
        "        self.drop_ahead()\n        if self._marked is not None:",
        "        if self._marked is not None:",
        _GATE,
    ),
    Mutant(
        "a source that joins does not take back what was cut without it",
        "driver/inputs.py",
        "            self._intake.drop_ahead()\n            self._intake.join(\n",
        "            self._intake.join(\n",
        _TESTS,
    ),
    Mutant(
        "a batch with room for more is cut ahead",
        "gate/intake.py",
        "if cut is not None and (cut.exhausted or cut.rows >= limit_rows):",
        "if cut is not None:",
        _GATE,
    ),
    Mutant(
        "map tasks that have failed ahead do not run again",
        "execute/map_ahead.py",
        "if found.job.mapping != job.mapping or any(map(_failed, found.shipments)):",
        "if found.job.mapping != job.mapping:",
        _TESTS,
    ),
    Mutant(
        "the files of the next batch are removed with those of this one",
        "execute/map_ahead.py",
        "clear(job, tuple(self._begun))",
        "clear(job)",
        _TESTS,
    ),
)
