"""Whole graphs of operators give what the row-at-a-time interpreter gives, however they are run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings

import tidegate as tg
from tests.oracle.graph import interpret
from tests.property.course import IN_MEMORY, lines
from tests.property.graphs import GRAPHS, crowded, graphs, ways
from tests.property.steps import BUCKETS, SCHEMA, Graph, Way
from tests.property.test_determinism import share
from tests.seed import seeds
from tidegate.query.node.graph import has
from tidegate.query.node.node import Join

Lines = list[tuple[Any, ...]]

SEEDS = seeds(max(2, settings.default.max_examples // 50))


@pytest.fixture(scope="module", autouse=True)
def small_splits() -> Iterator[None]:
    """Several tasks read one source and one edge, although both are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.execute.splits.SPLIT_ROWS", 7)
        patch.setattr("tidegate.execute.delivery.SPAN_ROWS", 5)
        yield


def built(graph: Graph, session: tg.Session) -> dict[str, tg.Stream]:
    """The outputs of a graph over memory sources that have ended."""
    streams = []
    for name, tables in graph.tables().items():
        sources = []
        for place, table in enumerate(tables):
            source = tg.MemorySource(table, time="ts", schema=SCHEMA, id=f"{name}/{place}")
            source.end()
            sources.append(source)
        streams.append(session.stream(sources, time="ts", name=name))
    return graph.build(streams)


class Crashed(Exception):
    """The process is taken to be dead."""


def run(graph: Graph, way: Way) -> dict[str, Lines]:
    """All rows of each output, in order, times in microseconds."""
    session = tg.Session(master="none")
    streams = built(graph, session)
    sinks = {name: tg.sink.memory() for name in streams}

    def observe(step: str, batch: int) -> None:
        if (step, batch) == way.crash:
            raise Crashed

    with tempfile.TemporaryDirectory(prefix="tidegate-", dir=IN_MEMORY) as folder:
        options: dict[str, Any] = {
            "checkpoint": folder,
            "batch_rows": way.batch_rows,
            "instances": way.instances,
            "switches": dict(way.switches),
            "buckets": BUCKETS,
            "strategy": way.strategy,
        }
        if any(has(Join, s.node) for s in streams.values()):
            options["method"] = way.method
        with suppress(Crashed):
            start(session, streams, sinks, observer=observe, **options).wait()
        assert start(session, streams, sinks, **options).wait().finished
    return {name: lines(sink.table()) for name, sink in sinks.items()}


def start(
    session: tg.Session, streams: dict[str, tg.Stream], sinks: dict[str, Any], **options: Any
) -> tg.RunningQuery:
    """One query for all outputs."""
    if len(streams) > 1:
        return session.start(streams, sinks=sinks, **options)
    [(name, stream)] = streams.items()
    return stream.start(sink=sinks[name], **options)


def plain(graph: Graph) -> dict[str, Lines]:
    """What the outputs mean."""
    streams = built(graph, tg.Session(master="none"))
    answer = interpret({name: s.node for name, s in streams.items()}, graph.tables(), BUCKETS)
    return {name: [tuple(row.values()) for row in rows] for name, rows in answer.items()}


def check(graph: Graph, way: Way) -> None:
    """Every output as a sequence of rows, each value with its type."""
    result, meant = run(graph, way), plain(graph)
    assert result.keys() == meant.keys()
    for name, rows in meant.items():
        assert [*map(repr, result[name])] == [*map(repr, rows)], name


@share(25, least=25)
@given(graphs(most_steps=1, most_outputs=1), ways())
def test_one_operator_gives_what_it_means(graph: Graph, way: Way) -> None:
    check(graph, way)


@share(50, least=50)
@given(graphs(most_outputs=1), ways())
def test_a_graph_gives_what_it_means(graph: Graph, way: Way) -> None:
    check(graph, way)


@share(25, least=25)
@given(graphs(), ways())
def test_every_output_of_a_graph_gives_what_it_means(graph: Graph, way: Way) -> None:
    check(graph, way)


@pytest.mark.parametrize("name", GRAPHS)
def test_every_relation_of_a_graph_gives_what_it_means(name: str) -> None:
    for seed in SEEDS:
        graph, way = crowded(name, seed)
        check(graph, way)
        assert all(plain(graph).values()), "nothing was compared"
