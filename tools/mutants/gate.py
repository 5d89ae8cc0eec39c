"""Mistakes in the gate: cuts, lateness, the frontier."""

from __future__ import annotations

from mutants.mutant import CUT, DETERMINISM, Mutant

MUTANTS = (
    Mutant(
        "a place in the merge is its time alone",
        "gate/cut.py",
        "return place < self._last",
        "return place[0] < self._last[0]",
        CUT,
    ),
    Mutant(
        "the last row is taken to be in the first run",
        "gate/cut.py",
        "            last_run = run\n",
        "",
        CUT,
    ),
    Mutant(
        "equal times are taken beyond the limit",
        "gate/cut.py",
        'ties = min(int(np.searchsorted(k, last_key, "right")) - counts[run], left)',
        'ties = int(np.searchsorted(k, last_key, "right")) - counts[run]',
        CUT,
    ),
    Mutant(
        "runs are searched to a key too late",
        "gate/cut.py",
        'if sum(int(np.searchsorted(k, middle, "right")) for k in keys) >= limit_rows:',
        'if sum(int(np.searchsorted(k, middle, "right")) for k in keys) > limit_rows:',
        CUT,
    ),
    Mutant(
        "a tuple at the limit of disorder is late",
        "gate/lateness.py",
        "valid & (times_us < np.maximum(limit, consumed_us))",
        "valid & (times_us <= np.maximum(limit, consumed_us))",
        "tests/gate/test_lateness.py",
    ),
    Mutant(
        "the first tuple of a batch is never late",
        "gate/lateness.py",
        "before[0] = floor_us",
        "before[0] = MIN_US",
        CUT,
    ),
    Mutant(
        "the frontier goes back",
        "gate/frontier.py",
        "return max(previous_us, lowest)",
        "return lowest",
        "tests/gate/test_frontier.py",
    ),
    Mutant(
        "idle feeds alone let the frontier go to the end",
        "gate/frontier.py",
        "lowest = max(unfinished)",
        "lowest = MAX_US",
        "tests/gate/test_frontier.py",
    ),
    Mutant(
        "a tuple at the frontier is ready",
        "gate/merge.py",
        'frontier_us, "left")',
        'frontier_us, "right")',
        "tests/gate/test_gate.py tests/gate/test_gate_stateful.py",
    ),
    Mutant(
        "ready tuples of one time in any order",
        "gate/merge.py",
        'np.argsort(times, kind="stable")',
        "np.argsort(times)[::-1][np.argsort(-np.sort(times))]",
        "tests/gate/test_gate.py tests/gate/test_gate_stateful.py",
    ),
    Mutant(
        "waiting tuples are read again from where others were consumed",
        "gate/track.py",
        "self.source, self.waiting_from, self.position, self.waiting_floor_us",
        "self.source, self.waiting_from, self.position, self.floor_us",
        f"{CUT} {DETERMINISM}",
    ),
    Mutant(
        "the newest time of a source is forgotten at a restart",
        "gate/track.py",
        'self.floor_us = saved["floor_us"]',
        "self.floor_us = MIN_US",
        f"{CUT} {DETERMINISM}",
    ),
    Mutant(
        "the newest time before waiting tuples is that of all",
        "gate/track.py",
        "self.waiting_floor_us = int(self._held.keys[consumed - 1])",
        "self.waiting_floor_us = self.floor_us",
        f"{CUT} {DETERMINISM}",
    ),
)
