"""All that can be shown of a query beside its batches: its status, plan, buckets, newest rows."""

from __future__ import annotations

from typing import Any

from tidegate.driver.loop import Loop
from tidegate.driver.report.status import buckets_of, status_of
from tidegate.plan.physical import Edge, Plan


def picture_of(loop: Loop) -> dict[str, Any]:
    """The status with what a page draws; JSON-ready, any thread may ask for it."""
    books = loop.books
    return {
        **status_of(loop),
        "state": loop.state,
        "buckets": buckets_of(loop),
        "plan": graph_of(loop.plan),
        "newest_rows": books.newest_rows.as_dict(),
        "kept_batches": len(books.journal.recent),
    }


def graph_of(plan: Plan) -> dict[str, Any]:
    """Streams, subqueries and outputs, and which takes the rows of which.

    An edge that comes from a subquery names the port.
    """
    streams = [
        {"id": f"stream {stream.name}", "kind": "stream", "name": stream.name}
        for stream in plan.streams
    ]
    subqueries = [
        {
            "id": f"subquery {subquery.name}",
            "kind": "subquery",
            "name": subquery.name,
            "operator": subquery.operator.title(),
        }
        for subquery in plan.subqueries
    ]
    outputs = [
        {"id": f"output {target.name or ''}", "kind": "output", "name": target.name or "output"}
        for target in plan.targets
    ]
    edges = [
        {
            "from": _origin(plan, prefix.origin),
            "to": f"subquery {subquery.name}",
            "filtered": bool(prefix.where or prefix.sql_where),
        }
        for subquery in plan.subqueries
        for prefix in subquery.prefixes
    ]
    edges += [
        {"from": _origin(plan, target.edge), "to": f"output {target.name or ''}"}
        for target in plan.targets
    ]
    return {"nodes": [*streams, *subqueries, *outputs], "edges": edges}


def _origin(plan: Plan, origin: int | Edge) -> str:
    if isinstance(origin, Edge):
        return f"subquery {plan.subqueries[origin.subquery].name}"
    return f"stream {plan.streams[origin].name}"
