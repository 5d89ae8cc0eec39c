"""Mistakes in what is kept of the tuples of keys: DISTINCT ON, OVER, the first rows of groups."""

from __future__ import annotations

from mutants.mutant import Mutant

_DEDUP = "tests/operate/dedup/test_first.py tests/property/test_dedup.py"
_OVER = "tests/property/test_over.py"

MUTANTS = (
    Mutant(
        "a tuple exactly the time after a kept one is kept",
        "operate/kernels/dedup_loop.py",
        "if ts[i] > until[codes[i]]:",
        "if ts[i] >= until[codes[i]]:",
        _DEDUP,
    ),
    Mutant(
        "a group of KEEP LAST is decided before its time has passed",
        "operate/dedup/last.py",
        "due = ints(rows, BEGUN) < due_us",
        "due = ints(rows, BEGUN) <= due_us",
        _DEDUP,
    ),
    Mutant(
        "the default frame of OVER leaves out peers of the same instant",
        "operate/over/frame.py",
        "last = bisect(runs.ts, now + 1, at, runs.ends[at])",
        "last = at + 1",
        _OVER,
    ),
    Mutant(
        "a tuple waits for one more of its key than LEAD looks at",
        "operate/over/lead.py",
        "return np.where(found < ends, found, len(ends))",
        "return np.where(found + 1 < ends, found, len(ends))",
        _OVER,
    ),
    Mutant(
        "tuples that wait when the input ends are lost",
        "operate/over/lead.py",
        "waiting = read_all(work, spec) if ends else read_groups(work, spec, new)",
        "waiting = read_groups(work, spec, new)",
        _OVER,
    ),
    Mutant(
        "RANK over a stream forgets the tuples of earlier batches that were peers",
        "operate/over/column.py",
        "total = before + runs.ends - runs.fresh",
        "total = ranks",
        _OVER,
    ),
    Mutant(
        "DENSE_RANK counts rows",
        "collect/numbering.py",
        "values: Ints = np.cumsum(~rows.peers)",
        "values: Ints = np.cumsum(np.ones_like(rows.peers))",
        "tests/collect/test_ranking.py",
    ),
    Mutant(
        "an instance counts the tiles of its own rows",
        "collect/numbering.py",
        "if partly and self.ranking.whole:",
        "if False:",
        "tests/collect/test_ranking.py",
    ),
    Mutant(
        "LAG IGNORE NULLS forgets values of earlier batches",
        "operate/over/value_list.py",
        "np.maximum(begins[runs.newest], last - self.offset)",
        "last",
        _OVER,
    ),
)
