"""Output: one query of a script or program, with the name of the sink for its rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tidegate.errors import QueryError
from tidegate.query.aim import Aim
from tidegate.query.node.graph import bottom_up
from tidegate.query.node.node import Node

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Output:
    """One result of a query; the name is None if it is the only one."""

    name: str | None
    node: Node
    streams: tuple[tuple[str, Node], ...] = field(default=(), compare=False, repr=False)
    """The script's named nodes, from which an output may be built; the same for all outputs."""
    aim: Aim | None = field(default=None, compare=False, repr=False)
    """The query's latency target, taken off its node."""

    def __post_init__(self) -> None:
        if self.name is not None:
            check_name(self.name)
        if isinstance(self.node, Aim):
            object.__setattr__(self, "aim", self.node)
            object.__setattr__(self, "node", self.node.child)
        if any(isinstance(part, Aim) for part in bottom_up([self.node])):
            raise QueryError(
                "WITH LATENCY",
                "is for a whole query",
                "one inside another",
                "Write it after the outermost SELECT, in Python as the last call before start.",
            )


def check_name(name: str, where: str = "output") -> None:
    """Raises for an output name that cannot be a folder name everywhere."""
    if not _NAME.fullmatch(name):
        raise QueryError(
            where,
            "a name must be letters, digits and _, and begin with a letter",
            name,
            "Give the output another name.",
        )


def check_names(names: Sequence[str | None], where: str = "output") -> None:
    """Raises if one of several outputs has no name, or two names differ only in case."""
    if not names:
        raise QueryError(where, "a query needs at least one", "none")
    seen: set[str] = set()
    for name in names:
        if name is None:
            if len(names) > 1:
                raise QueryError(where, "each of several needs a name", "one without")
            continue
        check_name(name, where)
        if name.lower() in seen:
            raise QueryError(
                where,
                "a name can be used once",
                f"{name} twice",
                "Give one of the outputs another name, or make both one with UNION ALL.",
            )
        seen.add(name.lower())


def single(outputs: Sequence[Output]) -> Node:
    """The node of the only output, for callers that have one place for results."""
    if len(outputs) != 1:
        raise QueryError(
            "output",
            "one result is possible here",
            f"{len(outputs)}: {', '.join(str(o.name) for o in outputs)}",
            "Leave the others out, or take them all with Session.queries and Session.start.",
        )
    return outputs[0].node
