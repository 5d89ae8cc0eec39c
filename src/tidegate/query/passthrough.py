"""What a node says of its rows when it passes on those of its child, fewer or in another order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from tidegate.query.node import Node


class Passthrough:
    """The part of a node whose rows have the columns of its child."""

    child: Node
    stateful = False

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.child,)

    @property
    def windowed(self) -> bool:
        return self.child.windowed

    @property
    def names(self) -> tuple[str, ...]:
        return self.child.names

    @property
    def schema(self) -> pa.Schema:
        return self.child.schema

    @property
    def event_names(self) -> frozenset[str]:
        return self.child.event_names
