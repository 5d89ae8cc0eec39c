"""The calls of a session that run recorded queries again: `verify` and `replay`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime
from os import PathLike, fspath
from typing import Any

from tidegate.plan.options import PlanOptions
from tidegate.query.node.node import Node
from tidegate.query.output import Output
from tidegate.query.stream import Stream
from tidegate.query.surface.signature import called_as
from tidegate.session.input.sources import Sources
from tidegate.session.options import given_us
from tidegate.session.verification.replay import replayed
from tidegate.session.verification.verify import verified
from tidegate.sink.folder.written_rows import EventSpan


class ProofCalls(ABC):
    """A part of `Session`, which has the sources and makes the outputs."""

    _sources: Sources

    @abstractmethod
    def _output(self, name: str | None, node: Node) -> Output:
        """An output of a query, with the streams that the session has named."""

    @called_as('session.replay("ckpt", stream, batch=12)')
    def replay(
        self,
        checkpoint: str | PathLike[str],
        outputs: Stream | Mapping[str, Stream],
        *,
        batch: int,
        out: str | PathLike[str] | None = None,
        partitioner: str | None = None,
    ) -> dict[str, Any]:
        """Run a committed batch again in the calling thread, with the state of that moment.

        Breakpoints in your functions and classes are hit. Checkpoint and output do not change; the
        rows go to the folder `out`, if given. `equal` in the result says whether they are the rows
        that were committed. The batch must be the newest, or `keep=` of `start` must have kept its
        state. `outputs` are a stream, or several by name as in `start`.
        """
        return replayed(
            fspath(checkpoint),
            self._named_outputs(outputs),
            batch,
            out=None if out is None else fspath(out),
            options=PlanOptions(partitioner=partitioner),
            connectors=self._sources.connectors,
        )

    @called_as('session.verify("ckpt", stream)')
    def verify(
        self,
        checkpoint: str | PathLike[str],
        outputs: Stream | Mapping[str, Stream],
        *,
        from_: str | datetime | None = None,
        to: str | datetime | None = None,
        retained: bool = False,
        partitioner: str | None = None,
    ) -> dict[str, Any]:
        """Run a query again from its sources, and compare it with what its checkpoint recorded.

        It runs in this process, into a scratch folder; checkpoint and output are only read. The
        result is that of `tidegate verify --json`: whether all is `equal`, what has `changed`
        (input, code, output), and by output the first row that differs. The options are those of
        the command, `outputs` those of `replay`.
        """
        return verified(
            fspath(checkpoint),
            self._named_outputs(outputs),
            EventSpan(*(None if t is None else given_us(t, "verify") for t in (from_, to))),
            retained,
            PlanOptions(partitioner=partitioner),
            self._sources.connectors,
        )

    def _named_outputs(self, outputs: Stream | Mapping[str, Stream]) -> tuple[Output, ...]:
        named = {None: outputs} if isinstance(outputs, Stream) else dict(outputs)
        return tuple(self._output(name, stream.node) for name, stream in named.items())
