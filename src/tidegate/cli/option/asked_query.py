"""The query for a command about a checkpoint: the one given, or the one recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import click

from tidegate.cli.option.option import options, read_query, stream_options
from tidegate.cli.option.query_text import QueryText, optional_query
from tidegate.plan.options import PlanOptions
from tidegate.query.output import Output
from tidegate.session.verification.rerun import RecordedRun

partitioner_option = click.option(
    "--partitioner",
    metavar="NAME",
    help="As of `run`.  [default: that of the recorded query; with QUERY.sql, that of `run`]",
)


@dataclass(frozen=True)
class AskedQuery:
    """The query options of a command line; without `query` the recorded one is used."""

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
        """The query that made a batch, or the newest batch, and its plan.

        Use it only inside the block: the paths of a recorded query are valid there.
        """
        if self.query is not None:
            given = PlanOptions(partitioner=partitioner)
            yield read_query(self.query, self.streams, self.times), given
            return
        script = record.script(batch).with_sources(*stream_options(self.streams, self.times))
        planning = script.plan_options
        if partitioner is not None:
            planning = replace(planning, partitioner=partitioner)
        with script.in_folder():
            yield script.build(), planning


def asked_query(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds QUERY.sql and its options to a command, which gets one AskedQuery as `asked`."""

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
