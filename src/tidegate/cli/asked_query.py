"""The query that a command about a checkpoint is given, or the one that the checkpoint recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import click

from tidegate.cli.option import options, read_query, stream_options
from tidegate.cli.query_text import QueryText, optional_query
from tidegate.plan.options import DEFAULT_PARTITIONER, PlanOptions
from tidegate.query.output import Output
from tidegate.session.rerun import RecordedRun

partitioner_option = click.option(
    "--partitioner",
    metavar="NAME",
    help="As of `run`.  [default: that of the recorded query; with QUERY.sql, hash]",
)


@dataclass(frozen=True)
class AskedQuery:
    """What a command line says of the query of a checkpoint; without `query` it is recorded."""

    query: QueryText | None
    streams: Sequence[str]
    times: Sequence[str]

    @property
    def is_given(self) -> bool:
        """Whether the command line says anything of the query."""
        return self.query is not None or bool(self.streams or self.times)

    @contextmanager
    def of(
        self, record: RecordedRun, partitioner: str | None = None, batch: int | None = None
    ) -> Iterator[tuple[tuple[Output, ...], PlanOptions]]:
        """The query that made a batch, or the newest one, and how it is planned.

        It is to be used within the block, where the paths of a recorded query are found.
        """
        if self.query is not None:
            planning = PlanOptions(partitioner=partitioner or DEFAULT_PARTITIONER)
            yield read_query(self.query, self.streams, self.times), planning
            return
        script = record.script(batch).with_sources(*stream_options(self.streams, self.times))
        planning = script.plan_options
        if partitioner is not None:
            planning = replace(planning, partitioner=partitioner)
        with script.in_folder():
            yield script.build(), planning


def asked_query(command: Callable[..., Any]) -> Callable[..., Any]:
    """QUERY.sql and its options, which a command takes as one AskedQuery named `asked`."""

    @wraps(command)
    def called(
        *,
        query: QueryText | None,
        streams: tuple[str, ...],
        times: tuple[str, ...],
        **others: Any,
    ) -> Any:
        return command(asked=AskedQuery(query, streams, times), **others)

    return optional_query(options("--stream", "--time")(called))
