"""Mistakes in joins."""

from __future__ import annotations

from mutants.mutant import CHANGE, CHANGES, JOIN_STATE, JOINS, Mutant

OUTER_JOINS = "tests/operate/join/test_outer.py tests/property/test_outer_joins.py"

MUTANTS = (
    Mutant(
        "pairs beyond 62 bits in the order of one word",
        "collect/pair.py",
        "if int(later.max()).bit_length() + bits <= _BITS:",
        "if int(later.max()).bit_length() + bits <= 2 * _BITS:",
        "tests/collect/test_pair.py",
    ),
    Mutant(
        "pairs of equal words in any order",
        "collect/pair.py",
        "        if same.any():\n",
        "        if False:\n",
        f"tests/collect/test_pair.py {JOINS}",
    ),
    Mutant(
        "which tuples have met a partner is forgotten in a restart",
        "operate/join/mark.py",
        "self._runs = self._read() if held is None else held",
        "self._runs = [] if held is None else held",
        OUTER_JOINS,
    ),
    Mutant(
        "tuples without a partner before the pairs of their instant",
        "operate/join/output.py",
        "        last = np.full(len(pairs.decided), MAX_US)\n",
        "        last = np.full(len(pairs.decided), -MAX_US)\n",
        OUTER_JOINS,
    ),
    Mutant(
        "a home lacks the partners that came before its cells",
        "operate/join/instance.py",
        "{owners} {self.placement.cells(self.work)}",
        "{owners}",
        "tests/operate/join/test_outer.py",
    ),
    Mutant(
        "stored tuples of another arrangement are merged with the others",
        "operate/join/state.py",
        "alike = [s.tag == way and s.low >= since for s in segments]",
        "alike = [s.low >= since for s in segments]",
        JOIN_STATE,
    ),
    Mutant(
        "stored tuples of another arrangement are searched as they are",
        "operate/join/stored_segment.py",
        "known = [(s, *self._mine(s)) for s in segments if s.tag == way]",
        "known = [(s, *self._mine(s)) for s in segments]",
        JOIN_STATE,
    ),
    Mutant(
        "stored tuples of another arrangement are forgotten",
        "operate/join/stored_segment.py",
        "            if segment.tag != way:\n",
        "            if False:\n",
        JOIN_STATE,
    ),
    Mutant(
        "the arrangement does not tell the index",
        "operate/join/state.py",
        "repr((spec.method, arranged, self.routing, [*self.keys]))",
        "repr((spec.method, self.routing, [*self.keys]))",
        JOIN_STATE,
    ),
    Mutant(
        "a changed query deals by other keys than stored tuples were dealt by",
        "operate/join/state.py",
        "repr((spec.method, arranged, self.routing, [*self.keys]))",
        "repr((spec.method, self.routing))",
        CHANGE,
    ),
    Mutant(
        "a changed query takes state of another meaning",
        "plan/stored_name.py",
        "alike = [n for n, m in there.items() if m == meaning]",
        "alike = list(there)",
        CHANGE,
    ),
    Mutant(
        "a new condition on one side of a join is not asked of stored tuples",
        "plan/join_side.py",
        "        if self.kept is None or not self.refilters:\n            return True\n",
        "        return True\n",
        CHANGE,
    ),
    Mutant(
        "a join that sheds by concept goes on with another equality",
        "plan/dependence.py",
        "    FIRST: _of_first_tuples,\n",
        "    FIRST: _of_inputs,\n",
        CHANGES,
    ),
    Mutant(
        "a new condition on one side is asked of pairs where tuples were shed by concept",
        "plan/shed_join.py",
        "    refilters = False\n",
        "    refilters = True\n",
        CHANGES,
    ),
    Mutant(
        "a manifest does not say which query made it",
        "driver/change.py",
        "query=self._query, changes",
        "changes",
        CHANGE,
    ),
    Mutant(
        "the oldest tuple of a window of time is dropped",
        "operate/keeper.py",
        "ints(rows, self.column) >= self.needed",
        "ints(rows, self.column) > self.needed",
        "tests/operate/test_keeper.py",
    ),
    Mutant(
        "a tuple at the edge of a window is not met",
        "operate/join/search.py",
        "else below(run.coordinate, ask.low)\n",
        "else below(run.coordinate, ask.low + 1)\n",
        f"tests/operate/join/test_match.py {JOINS}",
    ),
    Mutant(
        "a window of tuples one too long",
        "operate/join/search.py",
        "np.searchsorted(mine.place, asking.place) - extent.rows",
        "np.searchsorted(mine.place, asking.place) - extent.rows - 1",
        f"tests/operate/join/test_match.py {JOINS}",
    ),
    Mutant(
        "an unknown bound finds what is equal to it",
        "operate/join/search.py",
        "        last[ask.unknown] = first[ask.unknown]\n",
        "        pass\n",
        f"tests/operate/join/test_match.py {JOINS}",
    ),
    Mutant(
        "a tuple of a key at the edge of a window is not met",
        "operate/kernels/key_loop.py",
        "coordinate[begin] < low[p]:",
        "coordinate[begin] <= low[p]:",
        "tests/operate/join/test_match.py",
    ),
    Mutant(
        "a pair whose cells are at the upper bound is passed over",
        "operate/kernels/pair_loop.py",
        "passes = np.uint8(one[k] - low1) <= width1",
        "passes = np.uint8(one[k] - low1) < width1",
        "tests/operate/kernels/test_pair.py",
    ),
)
