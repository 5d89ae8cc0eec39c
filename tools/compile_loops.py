"""Compiles the loops of the kernels once, before many processes want them; part of `make ready`.

Processes that find no machine code on disk compile it, each for itself: the workers of the tests
would compile the same loops at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def loops() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The module of each loop, and what compiles it or finds it on disk."""
    from tidegate.approx import priority_loop, rate_loop, stratum_loop
    from tidegate.operate.kernels import dedup_loop, sort_loop
    from tidegate.operate.kernels.join import (
        asof_loop,
        grid_loop,
        key_loop,
        pair_loop,
        place_loop,
        program_loop,
    )
    from tidegate.operate.kernels.join.pair import LOOP_TESTS
    from tidegate.operate.kernels.sum import exact_moment_loop, exact_round_loop, exact_sum_loop
    from tidegate.operate.kernels.window import session_loop, slide_loop
    from tidegate.route import choice_loop
    from tidegate.sink.digest import digest_loop
    from tidegate.source.message.avro import decode_loop

    of_choice = choice_loop.by_load, choice_loop.with_sets, choice_loop.with_sketches
    to_choice = choice_loop.add_to_sets, choice_loop.grow, choice_loop.add_to_sketches
    yield from ((choice_loop.__name__, make) for make in (*of_choice, *to_choice))
    yield from ((slide_loop.__name__, make) for make in (slide_loop.select, slide_loop.distinct))
    yield from ((asof_loop.__name__, lambda n=name: asof_loop.loop(n)) for name in asof_loop.LOOPS)
    yield exact_round_loop.__name__, exact_round_loop.rounded
    yield key_loop.__name__, key_loop.ranges
    yield from ((decode_loop.__name__, make) for make in (decode_loop.decode, decode_loop.gather))
    yield session_loop.__name__, session_loop.sessions
    yield dedup_loop.__name__, dedup_loop.compiled_first
    yield place_loop.__name__, place_loop.compiled_places
    yield program_loop.__name__, program_loop.pairs
    yield priority_loop.__name__, priority_loop.priorities_loop
    yield rate_loop.__name__, rate_loop.levelled_loop
    yield digest_loop.__name__, lambda: digest_loop.fold  # compiled by the import
    yield stratum_loop.__name__, stratum_loop.strata_loop
    yield stratum_loop.__name__, stratum_loop.lacking_loop
    for module in (exact_moment_loop, exact_sum_loop):
        for name in module._LOOPS:
            yield module.__name__, lambda m=module, n=name: m.loop(n)
    for kind in ("int64", "float64"):
        yield sort_loop.__name__, lambda k=kind: sort_loop.loop(k)
        yield grid_loop.__name__, lambda k=kind: grid_loop.starts(k)
        yield grid_loop.__name__, lambda k=kind: grid_loop.places(k)
    for tests in range(1, LOOP_TESTS + 1):
        for number in ("float32", "float64"):
            yield pair_loop.__name__, lambda t=tests, n=number: pair_loop.compiled(t, n)


def main() -> None:
    for _, make in loops():
        make()


if __name__ == "__main__":
    main()
