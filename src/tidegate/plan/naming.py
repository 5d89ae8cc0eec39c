"""What the subqueries of a plan are called, between the names in a script and who reads a plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidegate.plan.cut import Cutting
from tidegate.query.node import Node
from tidegate.query.output import Output


def names_of(
    outputs: Sequence[Output], cutting: Cutting, giving: Sequence[int], keys: Sequence[str]
) -> list[str]:
    """By subquery: the stream or output that it makes, or its key where it makes none of a name.

    `giving` says by unit which subquery gives its rows. Streams go before outputs, and an output
    names a subquery that nothing else is made of. A name that is another's key is not taken.
    """
    found, taken = list(keys), {key.lower() for key in keys}
    for name, node in _named(outputs, cutting):
        unit = cutting.unit_of(node)
        number = None if unit is None else giving[unit]
        if number is not None and found[number] == keys[number] and name.lower() not in taken:
            found[number] = name
            taken.add(name.lower())
    return found


def _named(outputs: Sequence[Output], cutting: Cutting) -> Iterator[tuple[str, Node]]:
    """The nodes that have names, those that go first before the others."""
    for output in outputs[:1]:
        yield from output.streams
    for output in outputs:
        unit = cutting.unit_of(output.node)
        alone = unit is not None and all(t.node == output.node for t in cutting.units[unit].tops)
        if output.name is not None and alone:
            yield output.name, output.node
