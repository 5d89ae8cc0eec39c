"""The compiled loops that choose an instance for each unit in turn, from the units before it.

They are the algorithms of chapter 3 of the dissertation, with d candidates and with weights;
`tests/oracle/partition.py` has them as in the paper. A unit is a word of 64 bits, the hash of its
key, and a weight, the number of its tuples. `loads` has the tuples of each instance so far (the
paper's L), `counts` the number of its keys or an estimate of it (the paper's C).

The keys of the instances are kept in one of two ways. Both can add a key and ask for one, and both
keep `counts` up to date.

- **sets**: one hash table with open addressing, 64 bits for each key and instance. When it is half
  full, a loop returns the number of the next unit; the caller makes a larger table and goes on.
- **sketches**: HyperLogLog with 4096 registers for each instance. A register is at most 31, five
  bits. Whether a key is there is decided by trial (section 3.5.2): if adding the key would not
  change the estimate, it counts as there.

Importing this module imports Numba; see `machine_code`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from tidegate.machine_code import compiled, given, made, part
from tidegate.route.key_memory import AM, CAM, LM, REGISTERS

_REGISTER_BITS = 12
_MOST_RANK = 31
_ALPHA = 0.7213 / (1 + 1.079 / REGISTERS) * REGISTERS * REGISTERS
_SMALL = 2.5 * REGISTERS

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_ONE, _S27, _S30, _S31, _S32, _S48 = (np.uint64(n) for n in (1, 27, 30, 31, 32, 48))


@part
def _mixed(word: Any) -> Any:
    """The finaliser of splitmix64."""
    word += _GOLDEN
    word = (word ^ (word >> _S30)) * _FIRST
    word = (word ^ (word >> _S27)) * _SECOND
    return word ^ (word >> _S31)


@part
def _drawn(word: Any, number: Any, below: Any) -> Any:
    """The n-th pseudo-random number in [0, below) of a word; `below` is less than 2**32."""
    high = _mixed(word + _GOLDEN * np.uint64(number + 1)) >> _S32
    return np.int64((high * np.uint64(below)) >> _S32)


@part
def _candidates(word: Any, candidates: Any, taken: Any, instances: Any) -> Any:
    """Draw as many different instances as `candidates` has room for; all in order if all fit.

    Each is drawn from those that are left. The n-th of these is n plus the number of taken ones
    that are not above it; `taken` ascends.
    """
    d = len(candidates)
    if d == instances:
        for j in range(d):
            candidates[j] = j
        return
    for j in range(d):
        chosen = _drawn(word, j, instances - j)
        place = 0
        while place < j and taken[place] <= chosen:
            chosen += 1
            place += 1
        for k in range(j, place, -1):
            taken[k] = taken[k - 1]
        taken[place] = chosen
        candidates[j] = chosen


@part
def _least(candidates: Any, loads: Any) -> Any:
    """The candidate with the least load; the first of equal ones."""
    best = candidates[0]
    for j in range(1, len(candidates)):
        if loads[candidates[j]] < loads[best]:
            best = candidates[j]
    return best


@part
def _hybrid(candidates: Any, loads: Any, counts: Any, p: Any) -> Any:
    """The candidate with the least of p * load + (1 - p) * keys, each scaled to [0, 1]."""
    low, high = loads[0], loads[0]
    few, many = counts[0], counts[0]
    for v in range(1, len(loads)):
        low, high = min(low, loads[v]), max(high, loads[v])
        few, many = min(few, counts[v]), max(many, counts[v])
    best, least = candidates[0], np.inf
    for j in range(len(candidates)):
        v = candidates[j]
        load = (loads[v] - low) / (high - low) if high > low else 0.0
        keys = (counts[v] - few) / (many - few) if many > few else 0.0
        both = p * load + (1.0 - p) * keys
        if both < least:
            best, least = v, both
    return best


@part
def _picked(rule: Any, candidates: Any, loads: Any, counts: Any, p: Any) -> Any:
    """The instance for a unit whose key has no place, or whose place does not count."""
    if rule == LM:
        return _hybrid(candidates, loads, counts, p)
    if rule == CAM:
        return _least(candidates, loads)
    return _least(candidates, counts)


@part
def _entry(word: Any, instance: Any) -> Any:
    """The entry of a key and instance in a table; never 0, which is a free place.

    The instance changes only upper bits, and places come from the lower ones. So the entries of a
    key are next to each other, and asking for all candidates touches one cache line.
    """
    entry = word ^ (np.uint64(instance) << _S48)
    return entry if entry != 0 else _ONE


@part
def _set_contains(table: Any, entry: Any) -> Any:
    mask = np.uint64(len(table) - 1)
    place = entry & mask
    while table[place] != 0:
        if table[place] == entry:
            return True
        place = (place + _ONE) & mask
    return False


@part
def _set_update(table: Any, entry: Any) -> Any:
    """Put an entry into a table; false if it is there already."""
    mask = np.uint64(len(table) - 1)
    place = entry & mask
    while table[place] != 0:
        if table[place] == entry:
            return False
        place = (place + _ONE) & mask
    table[place] = entry
    return True


@part
def _estimated(harmonic: Any, zeros: Any) -> Any:
    """HyperLogLog's estimate from the sum of 2**-register, and linear counting for few keys."""
    estimate = _ALPHA / harmonic
    if estimate <= _SMALL and zeros > 0:
        return REGISTERS * np.log(REGISTERS / zeros)
    return estimate


@part
def _register(word: Any) -> Any:
    """The register of a key, and its rank there: leading zeros of the other bits, plus 1."""
    word = _mixed(word ^ _SECOND)
    rest = word >> np.uint64(_REGISTER_BITS)
    bits = 64 - _REGISTER_BITS
    rank = 1
    while rank < _MOST_RANK and (rest >> np.uint64(bits - rank)) & _ONE == 0:
        rank += 1
    return np.int64(word & np.uint64(REGISTERS - 1)), rank


@part
def _sketch_after(registers: Any, sums: Any, zeros: Any, v: Any, index: Any, rank: Any) -> Any:
    """The estimate of an instance after one more key, with its sum and its zeros then."""
    before = registers[v, index]
    if rank <= before:
        return _estimated(sums[v], zeros[v]), sums[v], zeros[v]
    harmonic = sums[v] - 2.0 ** -float(before) + 2.0 ** -float(rank)
    left = zeros[v] - (1 if before == 0 else 0)
    return _estimated(harmonic, left), harmonic, left


def _by_load(words: Any, weights: Any, d: Any, loads: Any) -> Any:
    """PK with d candidates; shuffle where all instances are candidates."""
    chosen = np.empty(len(words), np.int32)
    candidates, taken = np.empty(d, np.int64), np.empty(d, np.int64)
    everywhere = d == len(loads)
    for j in range(d):
        candidates[j] = j
    for i in range(len(words)):
        if not everywhere:
            _candidates(words[i], candidates, taken, len(loads))
        v = _least(candidates, loads)
        loads[v] += weights[i]
        chosen[i] = v
    return chosen


def _with_sets(
    words: Any,
    weights: Any,
    first: Any,
    rule: Any,
    d: Any,
    p: Any,
    loads: Any,
    counts: Any,
    table: Any,
    earlier: Any,
    chosen: Any,
    added: Any,
) -> Any:
    """Place units from `first` on; returns the number of the first that was not placed.

    That is len(words), unless the table is half full. `earlier` is the table of the period before;
    a table of one free place means that it does not count. `added` flags the units whose key was
    new to the chosen instance.
    """
    candidates, taken = np.empty(d, np.int64), np.empty(d, np.int64)
    used = np.int64(counts.sum())
    for i in range(first, len(words)):
        # Before the unit is placed: so it is placed once, whole, after the table has grown.
        if 2 * (used + 1) > len(table):
            return i
        word = words[i]
        _candidates(word, candidates, taken, len(loads))
        v, known = np.int64(-1), False
        if rule in (AM, CAM):
            for j in range(d):
                if _set_contains(table, _entry(word, candidates[j])):
                    v, known = candidates[j], True
                    break
            if not known and len(earlier) > 1:
                for j in range(d):
                    if _set_contains(earlier, _entry(word, candidates[j])):
                        v = candidates[j]
                        break
        if v < 0:
            v = _picked(rule, candidates, loads, counts, p)
        added[i] = not known and _set_update(table, _entry(word, v))
        if added[i]:
            counts[v] += 1
            used += 1
        loads[v] += weights[i]
        chosen[i] = v
    return len(words)


def _with_sketches(
    words: Any,
    weights: Any,
    rule: Any,
    d: Any,
    p: Any,
    loads: Any,
    counts: Any,
    registers: Any,
    sums: Any,
    zeros: Any,
    earlier: Any,
    earlier_sums: Any,
    earlier_zeros: Any,
    chosen: Any,
    added: Any,
) -> Any:
    """Place all units; `added` flags those that changed a register of the chosen instance."""
    candidates, taken = np.empty(d, np.int64), np.empty(d, np.int64)
    for i in range(len(words)):
        _candidates(words[i], candidates, taken, len(loads))
        index, rank = _register(words[i])
        v, known = np.int64(-1), False
        if rule in (AM, CAM):
            for j in range(d):
                c = candidates[j]
                if _sketch_after(registers, sums, zeros, c, index, rank)[0] == counts[c]:
                    v, known = c, True
                    break
            if not known and len(earlier) > 0:
                for j in range(d):
                    c = candidates[j]
                    now = _estimated(earlier_sums[c], earlier_zeros[c])
                    after = _sketch_after(earlier, earlier_sums, earlier_zeros, c, index, rank)
                    if after[0] == now:
                        v = c
                        break
        if v < 0:
            v = _picked(rule, candidates, loads, counts, p)
        # A key that counts as there changes nothing, even where its rank is above the register.
        added[i] = not known and rank > registers[v, index]
        if added[i]:
            counts[v], sums[v], zeros[v] = _sketch_after(registers, sums, zeros, v, index, rank)
            registers[v, index] = rank
        loads[v] += weights[i]
        chosen[i] = v
    return len(words)


def _add_to_sets(words: Any, instances: Any, first: Any, counts: Any, table: Any) -> Any:
    """Add keys to instances, from `first` on; returns the first for which there was no room."""
    used = np.int64(counts.sum())
    for i in range(first, len(words)):
        if 2 * (used + 1) > len(table):
            return i
        if _set_update(table, _entry(words[i], instances[i])):
            counts[instances[i]] += 1
            used += 1
    return len(words)


def _grow(table: Any, larger: Any) -> Any:
    """Copy the entries of a table into a larger one; returns their number."""
    used = 0
    for i in range(len(table)):
        if table[i] != 0:
            _set_update(larger, table[i])
            used += 1
    return used


def _add_to_sketches(
    words: Any, instances: Any, counts: Any, registers: Any, sums: Any, zeros: Any
) -> Any:
    """Add keys to the registers of instances."""
    for i in range(len(words)):
        v = instances[i]
        index, rank = _register(words[i])
        if rank > registers[v, index]:
            counts[v], sums[v], zeros[v] = _sketch_after(registers, sums, zeros, v, index, rank)
            registers[v, index] = rank
    return len(words)


def estimate(harmonic: float, zeros: int) -> float:
    """The estimated number of keys, from the sum of 2**-register and the number of zeros."""
    return float(_estimated.py_func(harmonic, zeros))


_WORDS, _INTS = given(types.uint64), given(types.int64)
_TALLY, _FLOATS = made(types.int64), made(types.float64)
_TABLE, _REGISTERS = made(types.uint64), made(types.uint8, 2)
_CHOSEN, _ADDED = made(types.int32), made(types.boolean)
_RULE = (types.int64, types.int64, types.float64)


@cache
def by_load() -> Callable[..., Any]:
    """The loop of PK and shuffle: words, weights, d, loads."""
    return compiled(_CHOSEN(_WORDS, _INTS, types.int64, _TALLY), _by_load)


@cache
def with_sets() -> Callable[..., Any]:
    """The loop of the other algorithms with exact sets."""
    arguments = (_WORDS, _INTS, types.int64, *_RULE, _TALLY, _FLOATS, _TABLE, _TABLE)
    return compiled(types.int64(*arguments, _CHOSEN, _ADDED), _with_sets)


@cache
def with_sketches() -> Callable[..., Any]:
    """The loop of the other algorithms with HyperLogLog."""
    sketch = (_REGISTERS, _FLOATS, _TALLY)
    arguments = (_WORDS, _INTS, *_RULE, _TALLY, _FLOATS, *sketch, *sketch)
    return compiled(types.int64(*arguments, _CHOSEN, _ADDED), _with_sketches)


@cache
def add_to_sets() -> Callable[..., Any]:
    arguments = (_WORDS, _INTS, types.int64, _FLOATS, _TABLE)
    return compiled(types.int64(*arguments), _add_to_sets)


@cache
def grow() -> Callable[..., Any]:
    return compiled(types.int64(_TABLE, _TABLE), _grow)


@cache
def add_to_sketches() -> Callable[..., Any]:
    arguments = (_WORDS, _INTS, _FLOATS, _REGISTERS, _FLOATS, _TALLY)
    return compiled(types.int64(*arguments), _add_to_sketches)
