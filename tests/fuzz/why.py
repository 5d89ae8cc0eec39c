"""Random rows of random queries, and what the query gives of their tuples alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import tidegate as tg
from tests.fuzz.compare import opened
from tests.fuzz.construct import CONSTRUCTS, draw_construct
from tests.fuzz.query import Script, draw_script
from tests.fuzz.row import Stream, stream

FAMILY = 77


def check_seed(seed: int, name: str | None = None) -> int:
    """Ask why of one row of each output, and run the query over those tuples; how many rows."""
    construct = CONSTRUCTS.get(name or "")
    chance = np.random.default_rng([FAMILY, seed])
    make, draw = stream, draw_script
    if construct is not None:
        make, draw = construct.streams, partial(draw_construct, construct)
    streams = [make(chance, each) for each in ("s", "t")]
    script = draw(chance, streams)
    told = f"seed {seed} of {name}\n{script.spark}\n"
    rows, asked = 0, ran(script, streams)
    for output, (running, table) in asked.items():
        if not table.num_rows:
            continue
        number, rows = int(chance.integers(table.num_rows)), rows + 1
        try:
            facts = running.why(number)
        except Exception as error:
            error.add_note(f"{told}{output}, row {number}")
            raise
        assert facts["row"] == number
        if facts["again"]["tuples"] != len(facts["tuples"]) or any(
            "LIMIT" in note for note in facts["notes"]
        ):
            continue
        alone = ran(script, [chosen(each, facts["tuples"]) for each in streams])[output][1]
        wanted = repr(table.slice(number, 1).to_pylist()[0])
        assert wanted in map(repr, alone.to_pylist()), f"{told}{output}, row {number}\n{facts}"
    return rows


def ran(script: Script, streams: Sequence[Stream]) -> dict[str, tuple[tg.RunningQuery, pa.Table]]:
    """Each output as a query of its own, with its rows."""
    session, found = tg.Session(master="none"), {}
    given = opened(session, streams) | {t.name: t.opened(session) for t in script.given}
    for name, query in session.queries(script.spark, **given).items():
        sink = tg.sink.memory()
        running = query.start(sink=sink)
        running.wait()
        found[name] = running, sink.table()
    return found


def chosen(of: Stream, tuples: Sequence[dict[str, Any]]) -> Stream:
    """A stream with these tuples alone."""
    sources = []
    for number, table in enumerate(of.sources):
        names = {each["position"] for each in tuples if each["source"] == f"{of.name}/{number}"}
        sources.append(table.take(pa.array(sorted(names), pa.int64())))
    return replace(of, sources=sources)
