"""The base class of nodes that pass on rows of their child: fewer, or in another order."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.query.node.logical import Logical
from tidegate.query.row_key import RowKey

if TYPE_CHECKING:
    from tidegate.query.node.node import Node


class Passthrough(Logical):
    """Rows of the child, and its columns unless the subclass names others."""

    child: Node
    stateful = False

    @cached_property
    def windowed(self) -> bool:
        return self.child.windowed

    @cached_property
    def own_time(self) -> bool:
        return self.child.own_time

    @cached_property
    def names(self) -> tuple[str, ...]:
        return self.child.names

    @cached_property
    def schema(self) -> pa.Schema:
        return self.child.schema

    @cached_property
    def row_key(self) -> RowKey:
        return self.child.row_key

    @cached_property
    def event_names(self) -> frozenset[str]:
        return self.child.event_names
