"""Both engines over the same streams, and how their answers are compared."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import starmap
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import tidegate as tg
from tests.fuzz.query import Query, Script, draw_script, has_join
from tests.fuzz.row import Chance, Stream, in_order, plain, stream
from tidegate.testing import STEPS

RELATIVE = 1e-9
IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
Draw = Callable[[Chance, Sequence[Stream]], Script]


class _Killed(Exception):
    """The process is taken to be dead."""


def check_seed(seed: int) -> bool:
    """Draw streams and a query from a seed; run it twice, cut differently, and by DuckDB."""
    return check(seed, draw_script, family=10)


def check(
    seed: int, draw: Draw, family: int, make: Callable[[Chance, str], Stream] = stream
) -> bool:
    """The same with streams that `make` and queries that `draw` gives; whether rows came out.

    The second run is killed twice, and goes on. Those of another family have other streams.
    """
    chance = np.random.default_rng([family, seed])
    streams = [make(chance, name) for name in ("s", "t")]
    script = draw(chance, streams)
    runs = [draw_options(chance, script) for _ in range(2)]
    kills = [(str(chance.choice(STEPS)), int(chance.integers(0, 6))) for _ in range(2)]
    told = f"seed {seed}\n{script.spark}\n{runs}\n{kills}\n"
    try:
        once = by_tidegate(script, streams, runs[0])
        again = by_tidegate(script, streams, runs[1], kills)
    except Exception as error:
        error.add_note(told)
        raise
    for name, output in script.outputs.items():
        assert repr(again[name].to_pylist()) == repr(once[name].to_pylist()), told
        problem = difference(output, once[name], by_duckdb(script, output, streams))
        assert problem is None, f"{told}{script.duck(output)}\n{problem}"
    return any(rows.num_rows for rows in once.values())


def draw_options(chance: Chance, script: Script) -> dict[str, Any]:
    """How a query is run, which must not matter; a full join has one routing."""
    of_joins = {"method": str(chance.choice(["auto", "scan"]))}
    if not has_join(script, "FULL "):
        of_joins["routing"] = str(chance.choice(["auto", "round-robin"]))
    return (of_joins if has_join(script) else {}) | {
        "batch_rows": int(chance.choice([3, 17, 50, 1000])),
        "instances": int(chance.integers(1, 4)),
        "buckets": int(chance.choice([4, 8, 64])),
        "switches": {int(chance.integers(1, 4)): int(chance.integers(1, 4))},
        "strategy": str(chance.choice(["operator-set", "query-cloud", "operator-cloud"])),
    }


def by_tidegate(
    script: Script,
    streams: Sequence[Stream],
    options: dict[str, Any],
    kills: Iterable[tuple[str, int]] = (),
) -> dict[str, pa.Table]:
    """The rows of the outputs; the run dies at steps of batches, and another one goes on."""
    session = tg.Session(master="none")
    given = opened(session, streams) | {t.name: t.opened(session) for t in script.given}
    outputs = session.queries(script.spark, **given)
    sinks = {name: tg.sink.memory() for name in outputs}
    with tempfile.TemporaryDirectory(prefix="tidegate-", dir=IN_MEMORY) as folder:
        lives = [*starmap(_dies_at, kills), None]
        for life, observer in enumerate(lives):
            instances = 1 + (options["instances"] + life) % 4
            more = options | {"checkpoint": folder, "instances": instances, "observer": observer}
            try:
                session.start(outputs, sinks=sinks, **(more if kills else options)).wait()
                break
            except _Killed:
                continue
    return {name: sink.table() for name, sink in sinks.items()}


def _dies_at(step: str, batch: int) -> Callable[[str, int], None]:
    def observe(reached: str, number: int) -> None:
        if (reached, number) == (step, batch):
            raise _Killed

    return observe


def opened(session: tg.Session, streams: Sequence[Stream]) -> dict[str, Any]:
    """The streams as a session has them, by name."""
    found = {}
    for given in streams:
        sources = []
        for number, table in enumerate(given.sources):
            source = tg.MemorySource(table, time="ts", id=f"{given.name}/{number}")
            source.end()
            sources.append(source)
        disorder = f"{given.disorder_us} microseconds"
        found[given.name] = session.stream(sources, time="ts", name=given.name, disorder=disorder)
    return found


@cache
def database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1, "order_by_non_integer_literal": True})


def by_duckdb(script: Script, output: Query, streams: Sequence[Stream]) -> list[tuple[Any, ...]]:
    connection = database()
    for table in script.given:
        connection.register(table.name, table.placed)
    for given in streams:
        tuples = in_order(given)
        columns = {
            name: pa.array([row[name] for _, row in tuples], plain(kind.arrow))
            for name, kind in given.kinds.items()
        }
        columns["~ts"] = pa.array([ts for ts, _ in tuples], pa.int64())
        columns["~seq"] = pa.array(range(len(tuples)), pa.int64())
        connection.register(given.name, pa.table(columns))
    return connection.sql(script.duck(output)).fetchall()


def difference(output: Query, got: pa.Table, wanted: Sequence[tuple[Any, ...]]) -> str | None:
    """What differs, in words; None where nothing does."""
    names = [*output.head, *output.columns]
    if got.column_names != names:
        return f"columns {got.column_names} instead of {names}"
    for name, kind in output.columns.items():
        if got.schema.field(name).type != kind.arrow:
            return f"{name} is {got.schema.field(name).type} instead of {kind.arrow}"
    rows = list(zip(*(column.to_pylist() for column in got.columns), strict=True))
    if len(rows) != len(wanted):
        return f"{len(rows)} rows instead of {len(wanted)}:\n{rows[:5]}\n{wanted[:5]}"
    for number, (ours, theirs) in enumerate(zip(rows, wanted, strict=True)):
        if not all(map(same, ours, theirs)):
            return f"row {number} is {ours} instead of {theirs}"
    return None


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        if math.isnan(ours) or math.isnan(theirs):
            return math.isnan(ours) and math.isnan(theirs)
        return ours == theirs or math.isclose(ours, theirs, rel_tol=RELATIVE, abs_tol=1e-9)
    if isinstance(ours, datetime) and isinstance(theirs, datetime):
        return ours.astimezone(UTC).replace(tzinfo=None) == theirs
    return bool(ours == theirs) and type(ours) is type(theirs)
