"""The compiled loop of samples, between tuples with priorities and the positions of a sample.

The tuples are passed over three times: to count them, to find how far down the sample of each group
reaches, in heaps of its k lowest priorities with the highest on top, and to pick. Most tuples of a
large group are above the top of its heap, and are done with after one comparison.

Importing this module imports Numba; see `machine_code`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from tidegate.machine_code import compiled, given, made, part

_FEW = 24
"""So many are sorted by insertion."""


@part
def _sink(heap: Any, start: Any, size: Any, at: Any, word: Any) -> Any:
    """Put a word at a place from which it may have to go down: no child is above its parent."""
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[start + child + 1] > heap[start + child]:
            child += 1
        if heap[start + child] <= word:
            break
        heap[start + at] = heap[start + child]
        at = child
    heap[start + at] = word


@part
def _rise(heap: Any, start: Any, at: Any, word: Any) -> Any:
    """Put a word at the end, from which it may have to go up."""
    while at > 0:
        parent = (at - 1) // 2
        if heap[start + parent] >= word:
            break
        heap[start + at] = heap[start + parent]
        at = parent
    heap[start + at] = word


@part
def _sink_position(order: Any, priority: Any, start: Any, size: Any, at: Any) -> Any:
    """The same for positions, by their priorities."""
    position = order[start + at]
    word = priority[position]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and priority[order[start + child + 1]] > priority[order[start + child]]:
            child += 1
        if priority[order[start + child]] <= word:
            break
        order[start + at] = order[start + child]
        at = child
    order[start + at] = position


@part
def _sort_few(order: Any, priority: Any, start: Any, size: Any) -> Any:
    """Positions by ascending priority: few by insertion, many by a heap."""
    if size <= _FEW:
        for i in range(start + 1, start + size):
            position = order[i]
            word = priority[position]
            j = i
            while j > start and priority[order[j - 1]] > word:
                order[j] = order[j - 1]
                j -= 1
            order[j] = position
        return
    for at in range(size // 2 - 1, -1, -1):
        _sink_position(order, priority, start, size, at)
    for last in range(size - 1, 0, -1):
        order[start], order[start + last] = order[start + last], order[start]
        _sink_position(order, priority, start, last, 0)


@part
def _sort(order: Any, priority: Any, start: Any, size: Any) -> Any:
    """Positions by ascending priority, in O(size).

    Priorities of a sample are uniform up to the highest, so as many bins of equal width as there
    are rows have about one row each.
    """
    if size <= _FEW:
        _sort_few(order, priority, start, size)
        return
    highest = np.uint64(0)
    for i in range(start, start + size):
        highest = max(highest, priority[order[i]])
    scale = size / (np.float64(highest) + 1.0)
    ends = np.zeros(size + 1, np.int64)
    bins = np.empty(size, np.int64)
    for i in range(size):
        bins[i] = min(np.int64(np.float64(priority[order[start + i]]) * scale), size - 1)
        ends[bins[i] + 1] += 1
    for i in range(size):
        ends[i + 1] += ends[i]
    before = order[start : start + size].copy()
    for i in range(size):
        order[start + ends[bins[i]]] = before[i]
        ends[bins[i]] += 1
    first = np.int64(0)
    for i in range(size):
        if ends[i] - first > 1:
            _sort_few(order, priority, start + first, ends[i] - first)
        first = ends[i]


@part
def _reach(codes: Any, priority: Any, k: Any, limit: Any, counts: Any, below: Any) -> Any:
    """The priority up to which each group is taken, itself included; of some groups nothing is."""
    groups = len(counts)
    reach = np.empty(groups, np.uint64)
    starts = np.full(groups, -1, np.int64)
    places = np.int64(0)
    for g in range(groups):
        if counts[g] <= k:
            reach[g] = np.uint64(0xFFFFFFFFFFFFFFFF)
        elif below[g] >= k:
            reach[g] = limit - np.uint64(1)
        else:
            starts[g] = places
            places += k
    if places > 0:
        heap = np.empty(places, np.uint64)
        sizes = np.zeros(groups, np.int64)
        for i in range(len(codes)):
            g = codes[i]
            start = starts[g]
            if start < 0:
                continue
            if sizes[g] < k:
                _rise(heap, start, sizes[g], priority[i])
                sizes[g] += 1
            elif priority[i] < heap[start]:
                _sink(heap, start, k, 0, priority[i])
        for g in range(groups):
            if starts[g] >= 0:
                reach[g] = heap[starts[g]]
    return reach


def _lowest(codes: Any, groups: Any, priority: Any, k: Any, limit: Any) -> Any:
    """Positions of the tuples below the limit, and of the k lowest of each group."""
    counts, below = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    for i in range(len(codes)):
        counts[codes[i]] += 1
        below[codes[i]] += priority[i] < limit
    reach = _reach(codes, priority, k, limit, counts, below)
    taken = (below > 0) | (k > 0)
    picked = np.empty(len(codes), np.int64)
    sizes = np.zeros(groups + 1, np.int64)
    n = 0
    for i in range(len(codes)):
        g = codes[i]
        picked[n] = i
        one = taken[g] & (priority[i] <= reach[g])
        sizes[g + 1] += one
        n += one
    starts = np.cumsum(sizes)
    order = np.empty(n, np.int64)
    cursor = starts[:-1].copy()
    for i in range(n):
        g = codes[picked[i]]
        order[cursor[g]] = picked[i]
        cursor[g] += 1
    for g in range(groups):
        _sort(order, priority, starts[g], sizes[g + 1])
    return order


def _lowest_of_one(priority: Any, k: Any) -> Any:
    """Positions of the k lowest, in their order; with them those that equal the highest.

    What enters the heap is noted. Most of it has to leave again; about k (1 + ln(n / k)) enter.
    """
    heap = np.empty(k, np.uint64)
    noted = np.empty(4 * k, np.int64)
    n = np.int64(0)
    for i in range(len(priority)):
        word = priority[i]
        if i < k:
            _rise(heap, 0, i, word)
        elif word > heap[0]:
            continue
        elif word < heap[0]:
            _sink(heap, 0, k, 0, word)
        if n == len(noted):
            more = np.empty(2 * n, np.int64)
            more[:n] = noted
            noted = more
        noted[n] = i
        n += 1
    size = np.int64(0)
    for j in range(n):
        if priority[noted[j]] <= heap[0]:
            noted[size] = noted[j]
            size += 1
    return noted[:size].copy()


@cache
def lowest_of_one_loop() -> Callable[..., Any]:
    """The loop: priorities, more than k; k, at least 1."""
    return compiled(made(types.int64)(given(types.uint64), types.int64), _lowest_of_one)


@cache
def lowest_loop() -> Callable[..., Any]:
    """The loop: codes, groups, priorities, k, limit."""
    ints, words = given(types.int64), given(types.uint64)
    arguments = (ints, types.int64, words, types.int64, types.uint64)
    return compiled(made(types.int64)(*arguments), _lowest)
