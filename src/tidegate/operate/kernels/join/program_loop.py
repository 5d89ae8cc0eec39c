"""The compiled loop of predicates over pairs: the steps of a program over blocks of stored tuples.

Importing this module imports Numba: do so when there are many pairs. A block of stored tuples is
loaded into the cache once for a group of asking tuples. Where few tuples of a block pass a
conjunct, they are compacted, and the next conjunct runs over them alone. Each kind of operand has a
loop of its own, without a branch inside, which the compiler vectorises.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from tidegate import machine_code
from tidegate.expression import pair_code as op

_BLOCK = 2048  # some columns and registers of so many doubles fit in a cache
_GROUP = 512  # asking tuples that share a block
_FEW = 4  # where fewer than one in so many pass, they are put together


@machine_code.part
def _both(what: Any, work: Any, to: Any, a: Any, b: Any, n: Any) -> Any:
    """An arithmetic step of two rows: work[to] = work[a] op work[b]."""
    if what == op.ADD:
        for i in range(n):
            work[to, i] = work[a, i] + work[b, i]
    elif what == op.SUBTRACT:
        for i in range(n):
            work[to, i] = work[a, i] - work[b, i]
    elif what == op.MULTIPLY:
        for i in range(n):
            work[to, i] = work[a, i] * work[b, i]
    else:
        for i in range(n):
            work[to, i] = np.divide(work[a, i], work[b, i])


@machine_code.part
def _with(what: Any, work: Any, to: Any, a: Any, scalar: Any, n: Any) -> Any:
    """An arithmetic step of a row and a number: work[to] = work[a] op scalar."""
    if what == op.ADD:
        for i in range(n):
            work[to, i] = work[a, i] + scalar
    elif what == op.SUBTRACT:
        for i in range(n):
            work[to, i] = work[a, i] - scalar
    elif what == op.MULTIPLY:
        for i in range(n):
            work[to, i] = work[a, i] * scalar
    else:
        for i in range(n):
            work[to, i] = np.divide(work[a, i], scalar)


@machine_code.part
def _from(what: Any, work: Any, to: Any, scalar: Any, b: Any, n: Any) -> Any:
    """An arithmetic step of a number and a row; ADD and MULTIPLY always have the row first."""
    if what == op.SUBTRACT:
        for i in range(n):
            work[to, i] = scalar - work[b, i]
    else:
        for i in range(n):
            work[to, i] = np.divide(scalar, work[b, i])


@machine_code.part
def _one(what: Any, work: Any, to: Any, a: Any, n: Any) -> Any:
    """An arithmetic step of one row."""
    if what == op.NEGATE:
        for i in range(n):
            work[to, i] = -work[a, i]
    elif what == op.ABS:
        for i in range(n):
            work[to, i] = abs(work[a, i])
    elif what == op.ROOT:
        for i in range(n):
            work[to, i] = np.sqrt(work[a, i])
    else:
        for i in range(n):
            work[to, i] = np.float64(np.float32(work[a, i]))


@machine_code.part
def _is(what: Any, x: Any, y: Any) -> Any:
    """A comparison of two numbers, NaN greatest, without branches; never GT or GE."""
    if what == op.LT:
        return (x < y) | (np.isnan(y) & (not np.isnan(x)))
    if what == op.LE:
        return (x <= y) | np.isnan(y)
    return ((x == y) | (np.isnan(x) & np.isnan(y))) == (what == op.EQ)


@machine_code.part
def _compared(what: Any, work: Any, a: Any, b: Any, masks: Any, to: Any, n: Any) -> Any:
    """Set a mask to the comparison of two rows."""
    if what == op.EQ:
        for i in range(n):
            masks[to, i] = _is(op.EQ, work[a, i], work[b, i])
    elif what == op.NE:
        for i in range(n):
            masks[to, i] = _is(op.NE, work[a, i], work[b, i])
    elif what == op.LT:
        for i in range(n):
            masks[to, i] = _is(op.LT, work[a, i], work[b, i])
    else:
        for i in range(n):
            masks[to, i] = _is(op.LE, work[a, i], work[b, i])


@machine_code.part
def _bounded(what: Any, work: Any, a: Any, scalar: Any, masks: Any, to: Any, n: Any) -> Any:
    """Set a mask to the comparison of a row, in which NaN is greatest, with a number, never NaN."""
    if what == op.EQ:
        for i in range(n):
            masks[to, i] = work[a, i] == scalar
    elif what == op.NE:
        for i in range(n):
            masks[to, i] = work[a, i] != scalar
    elif what == op.LT:
        for i in range(n):
            masks[to, i] = work[a, i] < scalar
    elif what == op.LE:
        for i in range(n):
            masks[to, i] = work[a, i] <= scalar
    elif what == op.GT:
        for i in range(n):
            masks[to, i] = not (work[a, i] <= scalar)
    else:
        for i in range(n):
            masks[to, i] = not (work[a, i] < scalar)


@machine_code.part
def _comparison(steps: Any, k: Any, work: Any, scalars: Any, masks: Any, n: Any) -> Any:
    what, to, a, b = steps[k, 0], np.uint64(steps[k, 1]), steps[k, 2], steps[k, 3]
    if a >= 0 and b < 0 and not np.isnan(scalars[-1 - b]):
        _bounded(what, work, np.uint64(a), scalars[-1 - b], masks, to, n)
        return
    if what in (op.GT, op.GE):
        what, a, b = (op.LT if what == op.GT else op.LE), b, a
    if a >= 0 and b >= 0:
        _compared(what, work, np.uint64(a), np.uint64(b), masks, to, n)
        return
    for i in range(n):
        x = work[np.uint64(a), i] if a >= 0 else scalars[-1 - a]
        y = work[np.uint64(b), i] if b >= 0 else scalars[-1 - b]
        masks[to, i] = _is(what, x, y)


@machine_code.part
def _doubt(steps: Any, k: Any, work: Any, scalars: Any, errors: Any, dirty: Any, n: Any) -> Any:
    """Mark the pairs for which a step has no certain value; returns whether `errors` has any.

    `errors` is uninitialised while not `dirty`, so that a program without doubts never writes it.
    """
    what, row, limit = steps[k, 0], steps[k, 2], 0.0
    if what == op.CHECK:
        limit = scalars[-1 - steps[k, 3]]
    elif what == op.DIVIDE:
        row = steps[k, 3]
        if row < 0:
            if scalars[-1 - row] == 0:
                errors[:n] = 1
                return True
            return dirty
    else:
        return dirty
    at, found = np.uint64(row), False
    if what == op.CHECK:
        for i in range(n):
            found |= abs(work[at, i]) > limit
    else:
        for i in range(n):
            found |= work[at, i] == 0
    if not found:
        return dirty
    if not dirty:
        errors[:n] = 0
    for i in range(n):
        errors[i] |= abs(work[at, i]) > limit if what == op.CHECK else work[at, i] == 0
    return True


@machine_code.part
def _arithmetic(steps: Any, k: Any, work: Any, scalars: Any, n: Any) -> Any:
    what, to, a, b = steps[k, 0], np.uint64(steps[k, 1]), steps[k, 2], steps[k, 3]
    if what == op.CHECK:
        return
    if what in (op.NEGATE, op.ABS, op.ROOT, op.SINGLE):
        _one(what, work, to, np.uint64(a), n)
    elif a >= 0 and b >= 0:
        _both(what, work, to, np.uint64(a), np.uint64(b), n)
    elif a >= 0:
        _with(what, work, to, np.uint64(a), scalars[-1 - b], n)
    else:
        _from(what, work, to, scalars[-1 - a], np.uint64(b), n)


@machine_code.part
def _conjunct(code: Any, t: Any, work: Any, flags: Any, masks: Any, errors: Any, n: Any) -> Any:
    """Run the steps of turn `t`; mask 0 then has the pairs that pass, `errors` the doubtful ones.

    Returns whether `errors` may have any. No view of an array is made, because counting its
    references would take longer than a step.
    """
    steps, turns, asking_flags, p, scalars, _ = code
    dirty = False
    for k in range(turns[t, 0], turns[t, 1]):
        what, to = steps[k, 0], np.uint64(steps[k, 1])
        if what < op.EQ:
            _arithmetic(steps, k, work, scalars, n)
            dirty = _doubt(steps, k, work, scalars, errors, dirty, n)
        elif what in (op.AND, op.OR):
            one, two = np.uint64(steps[k, 2]), np.uint64(steps[k, 3])
            if what == op.AND:
                for i in range(n):
                    masks[to, i] = masks[one, i] & masks[two, i]
            else:
                for i in range(n):
                    masks[to, i] = masks[one, i] | masks[two, i]
        elif steps[k, 5] >= 0 and not asking_flags[p, steps[k, 5]]:
            for i in range(n):
                masks[to, i] = np.uint8(0)
        else:
            _comparison(steps, k, work, scalars, masks, n)
            if steps[k, 4] >= 0:
                flag = np.uint64(steps[k, 4])
                for i in range(n):
                    masks[to, i] &= flags[flag, i]
    if turns[t, 3] >= 0 and asking_flags[p, turns[t, 3]]:
        errors[:n] = 1
        return True
    if turns[t, 2] >= 0:
        if not dirty:
            errors[:n] = 0
        flag = np.uint64(turns[t, 2])
        for i in range(n):
            errors[i] |= flags[flag, i]
        return True
    return dirty


@machine_code.part
def _count(words: Any, n: Any) -> Any:
    """How many pairs a mask marks; `words` are its bytes, eight at a time, as in `_listed`."""
    # The multiplication adds the eight bytes of a word, each 0 or 1, into its highest byte.
    count = np.uint64(0)
    for w in range((n + 7) // 8):
        count += (words[w] * np.uint64(0x0101010101010101)) >> np.uint64(56)
    return np.int64(count)


@machine_code.part
def _listed(mask: Any, words: Any, busy: Any, n: Any, places: Any) -> Any:
    """Write the marked places to `places`; returns their number.

    `words` are its bytes, eight at a time, zero from n on; `busy` is room for as many words. No
    branch depends on a mark: the processor could not predict it.
    """
    some, count = np.int64(0), np.int64(0)
    for w in range((n + 7) // 8):
        busy[np.uint64(some)] = w
        some += np.int64(words[w] != 0)
    for k in range(some):
        for i in range(8 * busy[k], 8 * busy[k] + 8):
            places[np.uint64(count)] = i
            count += np.int64(mask[np.uint64(i)])
    return count


@machine_code.part
def _revive(alive: Any, n: Any) -> Any:
    for i in range(n):
        alive[i] = 1
    for i in range(n, n + 8):
        alive[i] = 0


@machine_code.part
def _gather(
    work: Any, flags: Any, places: Any, count: Any, columns: Any, to: Any, to_flags: Any
) -> Any:
    """Compact the columns and flags of some places; these ascend, so `to` may be `work` itself."""
    for c in range(columns):
        for i in range(count):
            to[c, i] = work[c, np.uint64(places[i])]
    for f in range(len(flags)):
        for i in range(count):
            to_flags[f, i] = flags[f, np.uint64(places[i])]


@machine_code.part
def _passing(
    code: Any, work: Any, flags: Any, few: Any, marks: Any, states: Any, n: Any, places: Any
) -> Any:
    """Write the places of a block that pass all conjuncts, or are doubtful before one drops them.

    Returns their number; a doubtful place is written as -1 - place. The columns of the block in
    `work` and `flags` stay as they are; `few`, `marks` and `states` are room.
    """
    alive, words, busy, doubtful, chosen = states
    masks, errors = marks
    m, compact, doubts, turns = n, False, False, len(code[1])
    _revive(alive, n)
    for t in range(turns):
        fails = _conjunct(code, t, work, flags, masks, errors, m)
        if doubts or fails:
            # A doubtful pair survives all later conjuncts: only the exact kernels may drop it.
            if not doubts:
                doubtful[:n] = 0
            doubts = True
            for i in range(m):
                at = chosen[i] if compact else i
                if fails and alive[i] and errors[i]:
                    doubtful[at] = 1
                masks[0, i] |= doubtful[at]
        for i in range(m):
            alive[i] &= masks[0, i]
        left = _count(words, m)
        if left == 0:
            return 0
        if left * _FEW < m and t + 1 < turns:
            _listed(alive, words, busy, m, places)
            _gather(work, flags, places, left, code[5], few[0], few[1])
            for i in range(left):
                chosen[i] = chosen[places[i]] if compact else places[i]
            work, flags = few
            m, compact = left, True
            _revive(alive, m)
    count = _listed(alive, words, busy, m, places)
    for i in range(count):
        at = chosen[places[i]] if compact else places[i]
        places[i] = -1 - at if doubts and doubtful[at] else at
    return count


@machine_code.part
def _load(stored: Any, flags: Any, rows: Any, place: Any, n: Any, work: Any, block: Any) -> Any:
    """Load the columns and flags of the n stored tuples from `place` on into a block."""
    for i in range(n):
        row = np.uint64(rows[place + i] if len(rows) else place + i)
        for c in range(len(stored)):
            work[c, i] = stored[c, row]
        for f in range(len(flags)):
            block[f, i] = flags[f, row]


@machine_code.part
def _longer(array: Any, used: Any) -> Any:
    """An array of twice the length that begins with the first `used` entries."""
    longer = np.empty(2 * len(array), np.int64)
    longer[:used] = array[:used]
    return longer


@machine_code.part
def _together(order: Any, first: Any, last: Any, i: Any) -> Any:
    """The end of the asking tuples from `i` on that share blocks, and the end of their ranges."""
    begin = first[order[i]]
    reach = begin + max(_BLOCK, last[order[i]] - begin)
    end, j = begin, i
    while j < len(order) and j < i + _GROUP and first[order[j]] < reach:
        end = max(end, last[order[j]])
        j += 1
    return j, end


@machine_code.part
def _room(rows: Any, flags: Any) -> Any:
    """An empty block: rows for columns and registers, and rows for flags."""
    return np.zeros((rows, _BLOCK)), np.zeros((flags, _BLOCK), np.uint8)


def _pairs(
    order: Any,
    first: Any,
    last: Any,
    most: Any,
    stored: Any,
    stored_flags: Any,
    rows: Any,
    asking: Any,
    asking_flags: Any,
    constants: Any,
    steps: Any,
    turns: Any,
    registers: Any,
    masks: Any,
) -> Any:
    """Pairs of an asking tuple in `order` and a place in its range that pass, in no order.

    `order`: those with a range, by `first`; see `ProgramColumns`, `PairRun`. Ends after `most`.
    """
    given, height = asking.shape[1], len(stored) + registers
    work, flags = _room(height, len(stored_flags))
    part, part_flags = _room(height, len(stored_flags))
    few = _room(height, len(stored_flags))
    marks = np.zeros((masks, _BLOCK), np.uint8), np.zeros(_BLOCK, np.uint8)
    alive, doubtful = np.zeros(_BLOCK + 8, np.uint8), np.zeros(_BLOCK, np.uint8)
    words, chosen = alive.view(np.uint64), np.empty(_BLOCK + 8, np.int64)
    states = alive, words, np.empty_like(chosen), doubtful, chosen
    scalars, places = np.empty(given + len(constants)), np.empty(_BLOCK + 8, np.int64)
    scalars[given:] = constants
    hits_p, hits_s, n = np.empty(4 * _BLOCK, np.int64), np.empty(4 * _BLOCK, np.int64), 0
    i = 0
    while i < len(order):
        j, end = _together(order, first, last, i)
        for place in range(first[order[i]], end, _BLOCK):
            stop = min(place + _BLOCK, end)
            _load(stored, stored_flags, rows, place, stop - place, work, flags)
            for k in range(i, j):
                p = order[k]
                low, high = max(first[p], place), min(last[p], stop)
                if low >= high:
                    continue
                for c in range(given):
                    scalars[c] = asking[p, c]
                if n + _BLOCK > len(hits_p):
                    hits_p, hits_s = _longer(hits_p, n), _longer(hits_s, n)
                code = (steps, turns, asking_flags, p, scalars, len(stored))
                block, block_flags = work, flags
                if low > place:
                    _load(stored, stored_flags, rows, low, high - low, part, part_flags)
                    block, block_flags = part, part_flags
                found = _passing(code, block, block_flags, few, marks, states, high - low, places)
                for h in range(found):
                    hits_p[n + h] = p
                    hits_s[n + h] = places[h] + (low if places[h] >= 0 else -low)
                n += found
            if n > most:
                return hits_p[:n], hits_s[:n]
        i = j
    return hits_p[:n], hits_s[:n]


@cache
def pairs() -> Callable[..., Any]:
    """The loop, from disk if it is there."""
    places, matrix = machine_code.given(types.int64), machine_code.given(types.int64, 2)
    doubles, flags = machine_code.given(types.float64, 2), machine_code.given(types.uint8, 2)
    given = (doubles, flags, places, doubles, flags, machine_code.given(types.float64))
    found = types.UniTuple(machine_code.made(types.int64), 2)
    sizes = (types.int64, types.int64)
    signature = found(places, places, places, types.int64, *given, matrix, matrix, *sizes)
    return machine_code.compiled(signature, _pairs)
