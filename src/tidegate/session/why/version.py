"""Gives tables that are read again the rows that they had at the time of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tidegate.batch import from_bytes
from tidegate.query.node.node import Node
from tidegate.query.node.table_join import TableJoin
from tidegate.query.table import TableDef
from tidegate.session.why.rewrite import rewritten
from tidegate.session.why.span import TupleSpan
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store

TableRecord = Mapping[str, Any]


def with_versions(root: Node, manifest: Manifest, store: Store, span: TupleSpan) -> Node:
    """The query with the recorded rows of each table that is read again, as plain tables.

    A table stays as it is where it changed within the span, or where its rows are not kept any
    more: the checkpoint has those of the newest version, and with `--keep` of earlier ones.
    """

    def rule(node: Any, children: Sequence[Node]) -> Node | None:
        if not isinstance(node, TableJoin) or node.table.refresh_us is None:
            return None
        rows = _rows_of(store, manifest.tables.get(node.table.name, []), span)
        return None if rows is None else replace(node, child=children[0], table=_as(node, rows))

    return rewritten(root, rule)


def _as(node: TableJoin, rows: pa.Table) -> TableDef:
    return replace(node.table, schema=rows.schema, refresh_us=None, given=lambda: rows)


def _rows_of(store: Store, versions: Sequence[TableRecord], span: TupleSpan) -> pa.Table | None:
    """The rows that counted during all of a span, if they are there as a whole."""
    ends = [version["from_us"] for version in versions[1:]]
    for version, end_us in zip(versions, [*ends, None], strict=True):
        if version["from_us"] <= span.low_us and (end_us is None or span.high_us < end_us):
            file = str(version.get("file", ""))  # a table by key is in parts
            return from_bytes(store.files.buffer(file)) if file and store.has(file) else None
    return None
