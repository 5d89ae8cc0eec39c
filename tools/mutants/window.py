"""Mistakes in windows."""

from __future__ import annotations

from mutants.mutant import DETERMINISM, Mutant

_EMIT = "tests/property/test_emit.py"
_SESSIONS = "tests/operate/session tests/property/test_sessions.py"

MUTANTS = (
    # Calendars.
    Mutant(
        "a day begins with the second of two midnights",
        "calendar/local_time.py",
        "for fold in (1, 0))",
        "for fold in (0, 1))",
        "tests/test_local_time.py",
    ),
    Mutant(
        "where clocks skip midnight a day begins before they do",
        "calendar/local_time.py",
        "while high - low > 1:",
        "while False:",
        "tests/test_local_time.py",
    ),
    # Rows of open windows.
    Mutant(
        "a group gives a row at every mark, whether it changed or not, but for its newest pane",
        "operate/aggregate/pane/early.py",
        "newest[:-1] = (codes[1:] != codes[:-1]) | (marks[1:] != marks[:-1])",
        "newest[:-1] = codes[1:] != codes[:-1]",
        _EMIT,
    ),
    Mutant(
        "a window that ends at a mark gives an early row too",
        "operate/aggregate/pane/early.py",
        "low = (self.spec.window.numbers(marks[last]) - cover.length) // cover.step + 1",
        "low = (self.spec.window.numbers(marks[last]) - cover.length) // cover.step",
        _EMIT,
    ),
    Mutant(
        "final rows come before the early rows of their mark",
        "operate/aggregate/pane/early.py",
        "is_final, mark, mark, is_final]",
        "is_final, mark, mark, pa.array(rows[END] != rows[MARK])]",
        _EMIT,
    ),
    Mutant(
        "panes of windows with an offset are not cut at marks",
        "operate/aggregate/pane/pane_window.py",
        "(self.every_us, self.offset_us)",
        "(self.every_us,)",
        _EMIT,
    ),
    Mutant(
        "an instance gives early rows of windows that another one finishes",
        "operate/aggregate/pane/early.py",
        "rows = rows[:, closes(work, held.bucket[rows[LAST]], rows[END])]",
        "pass",
        _EMIT,
    ),
    Mutant(
        "LIMIT is of a window, not of a mark",
        "collect/window.py",
        'return [*sorted(n for n in rows.column_names if n.startswith(EMITTED)), "window_end"]',
        'return ["window_end"]',
        _EMIT,
    ),
    # Sessions.
    Mutant(
        "a session ends when the frontier is at its end",
        "operate/session/advance.py",
        "found: Mask = ints(rows, name) < needed_from(spec, frontier_us)",
        "found: Mask = ints(rows, name) <= needed_from(spec, frontier_us)",
        _SESSIONS,
    ),
    Mutant(
        "a tuple at the maximum begins another session",
        "operate/kernels/window/session_loop.py",
        "first[i] - starts[number] > longest",
        "first[i] - starts[number] >= longest",
        _SESSIONS,
    ),
    Mutant(
        "a session that outlives its rows is not stored again",
        "operate/session/advance.py",
        "whole = outlived.copy()",
        "whole = np.zeros_like(outlived)",
        _SESSIONS,
    ),
    Mutant(
        "what a whole row replaces is counted again",
        "operate/session/advance.py",
        "used = np.flatnonzero(batch >= since[groups.codes])",
        "used = np.arange(len(batch))",
        _SESSIONS,
    ),
    # Windows of time.
    Mutant(
        "a window that ends at the frontier stays open",
        "operate/aggregate/pane/pane_window.py",
        "last = (self.pane_at(upto_us) - self.panes) // self.step\n",
        "last = (self.pane_at(upto_us - 1) - self.panes) // self.step\n",
        f"tests/operate/aggregate/test_pane.py {DETERMINISM}",
    ),
    Mutant(
        "a window is closed twice",
        "operate/aggregate/pane/pane_window.py",
        "first = (self.pane_at(above_us) - self.panes) // self.step + 1",
        "first = (self.pane_at(above_us) - self.panes) // self.step",
        f"tests/operate/aggregate/test_pane.py {DETERMINISM}",
    ),
    Mutant(
        "the first pane of an open window is dropped",
        "operate/aggregate/pane/pane_window.py",
        "window = (self.pane_at(frontier_us) - self.panes) // self.step + 1",
        "window = (self.pane_at(frontier_us) - self.panes) // self.step + 2",
        DETERMINISM,
    ),
    Mutant(
        "partials are dead a pane too early",
        "operate/aggregate/state.py",
        "return np.where(pane < segment.tag, pane >= self.needed, pane >= self.sealed)",
        "return np.where(pane < segment.tag, pane >= self.needed, pane > self.sealed)",
        "tests/operate/aggregate tests/driver/test_compactor.py tests/state/test_compaction.py",
    ),
    Mutant(
        "partials that wait are not kept for the next batch",
        "operate/aggregate/state.py",
        "held.needed(needed).with_complete(lasting).with_waiting(later)",
        "held.needed(needed).with_complete(lasting)",
        "tests/property/test_kept.py",
    ),
    Mutant(
        "complete panes are dead with their partials",
        "operate/aggregate/state.py",
        "return no_complete and no_partial",
        "return no_partial",
        DETERMINISM,
    ),
    Mutant(
        "parts of windows stay in the order in which they came",
        "operate/aggregate/pane/pane.py",
        "if not bool(np.all(packed.codes[1:] >= packed.codes[:-1])):",
        "if not parts.num_rows:",
        "tests/operate/aggregate/test_split_keys.py tests/operate/aggregate/test_pane.py",
    ),
    # Windows of tuples.
    Mutant(
        "groups of which all tuples are dead lose their count",
        "operate/tuple_window/state.py",
        "return _sorted(marked.filter(pa.array(alive | last)))",
        "return _sorted(marked.filter(pa.array(alive)))",
        "tests/operate/tuple_window",
    ),
    Mutant(
        "a window of tuples too few",
        "operate/tuple_window/spec.py",
        "return np.maximum((counts - self.rows) // self.slide + 1, 0)",
        "return np.maximum((counts - self.rows) // self.slide, 0)",
        "tests/operate/tuple_window",
    ),
    Mutant(
        "tuples that hide others are not looked up",
        "operate/tuple_window/state.py",
        "        if segment.high >= HIDES:\n",
        "        if False:\n",
        "tests/operate/tuple_window",
    ),
    # The first rows of a stream.
    Mutant(
        "LIMIT begins to count again with every batch",
        "operate/process/first_rows.py",
        'self.left = state["left"]',
        "pass",
        "tests/session/test_limit.py",
    ),
    Mutant(
        "a query goes on when it has all the rows of its LIMIT",
        "driver/pipeline.py",
        'return self.manifest.counters.get("rows_out", 0) >= self._most_rows',
        "return False",
        "tests/session/test_limit.py",
    ),
    Mutant(
        "a condition of HAVING that is not of keys is asked of the tuples",
        "query/having.py",
        "return bool(named) and named <= {name for name, _ in aggregate.keys}",
        "return True",
        "tests/session/test_elsewhere.py tests/sql",
    ),
)
