"""Runs a query in the shadow of a checkpoint, for `tidegate compare`, and switches over to it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tidegate.cli.option.option import stream_options
from tidegate.cli.option.query_text import QueryText
from tidegate.driver.options import RunOptions
from tidegate.remote.scheme import scheme_of
from tidegate.session.recorded_script import RecordedScript
from tidegate.session.verification.rerun import RecordedRun
from tidegate.session.verification.shadow import Shadow, ShadowFacts, shadowed, switch_over


@dataclass(frozen=True)
class ShadowQuery:
    """The new query and its options; its relative paths start where the run began."""

    query: QueryText
    streams: Sequence[str]
    times: Sequence[str]
    begin: str | None
    cutover: str | None

    def __post_init__(self) -> None:
        for name in ("begin", "cutover"):  # of where the command is called
            place = getattr(self, name)
            if place is not None and scheme_of(place) is None:
                object.__setattr__(self, name, os.path.abspath(place))

    @contextmanager
    def beside(self, checkpoint: str, limits: RunOptions) -> Iterator[Shadow]:
        """The shadow of a checkpoint; use it only inside the block."""
        limits.memory.take()
        record = RecordedRun(checkpoint)
        location = record.store.location
        old, new = record.script(), self._script(record)
        with tempfile.TemporaryDirectory(prefix="tidegate-shadow-") as scratch, old.in_folder():
            planning = old.plan_options
            yield Shadow(location, old.build(), new.build(), planning, scratch, limits, self.begin)

    def facts(self, shadow: Shadow, most: int) -> ShadowFacts:
        """What the shadow shows, and after the switch if one was asked for."""
        if self.cutover is None:
            return shadowed(shadow, most)
        script = self._script(shadow.record)
        return switch_over(shadow, script, self.cutover, most)

    def _script(self, record: RecordedRun) -> RecordedScript:
        """What the checkpoint records of the new query, which is planned as the old one was."""
        uris, columns = stream_options(self.streams, self.times)
        old = record.script()
        new = RecordedScript(self.query.read(), folder=old.folder, streams=uris, times=columns)
        return replace(new, planning=old.planning)
