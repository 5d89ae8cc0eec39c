"""Returns all rows of a query over bounded input as one table, by a run without a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from tidegate.connector import Connector
from tidegate.driver.connection import connections_of
from tidegate.driver.options import RunOptions
from tidegate.errors import MemoryExceededError, UnavailableError
from tidegate.memory import Allowance
from tidegate.memory_limit import LIMIT
from tidegate.plan.physical import Plan
from tidegate.query.node.node import Node
from tidegate.query.output import Output
from tidegate.query.surface.data_frame import too_large
from tidegate.session.launch import prepare
from tidegate.session.look import planned
from tidegate.session.place import Place
from tidegate.sink.memory import MemorySink


def whole_result(
    node: Node, place: Place, given: Mapping[str, Connector], memory: Allowance, where: str
) -> pa.Table:
    """All rows in the order of the output; runs without Spark if kernels suffice.

    The rows and the current batch must fit into the process's memory limit. That is checked after
    each batch; a result that does not fit is refused.
    """
    shared = place.on_one_host
    plan, place = planned((Output(None, node),), place, given)
    _check_readable(plan, given, shared, where)
    sink = MemorySink()
    options = RunOptions(memory=memory)
    try:
        prepare(
            plan, place, {None: sink}, options, connectors=given, on_batch=lambda _: LIMIT.check()
        ).run()
        return sink.table()
    except (MemoryError, MemoryExceededError) as error:
        got = error.got if isinstance(error, MemoryExceededError) else str(error)
        raise too_large(where, got) from error


def _check_readable(plan: Plan, given: Mapping[str, Connector], shared: bool, where: str) -> None:
    """Refuse what does not end, and a DataFrame that other hosts would have to bring here."""
    for connection in connections_of(plan.streams, given, RunOptions()):
        name = plan.streams[connection.stream].name
        if connection.connector.live():
            raise UnavailableError(
                where,
                "needs input that ends",
                f"stream {name}, which goes on",
                "Write .preview(10) for the first rows, or .start(sink=tg.sink.memory()). A memory "
                "source ends with its method end().",
            )
        if connection.connector.once and not shared:
            raise UnavailableError(
                where,
                "needs a DataFrame of Spark on this host",
                f"stream {name} on a cluster",
                "Write .start(sink=tg.sink.memory(), checkpoint=...), with a checkpoint that all "
                "hosts reach.",
            )
