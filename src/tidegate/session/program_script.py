"""Finds the script that a query of a program is of, so that its checkpoint can record it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.driver.connection import IN_PROGRAM
from tidegate.query.node.node import Input, Node
from tidegate.query.output import Output
from tidegate.query.table import TableDef
from tidegate.query.user_function import all_registered, registered
from tidegate.session.recorded_script import RecordedScript
from tidegate.source.subscription import AS_FOUND
from tidegate.sql.script import read_script

_NOT_SQL = "not in SQL"


class ProgramScripts:
    """The newest outputs of each script of a program; grows with the texts of its scripts."""

    def __init__(self) -> None:
        self._outputs: dict[str, Sequence[Output]] = {}
        self._given: dict[str, Mapping[str, Node | TableDef]] = {}

    def add(
        self, text: str, outputs: Sequence[Output], given: Mapping[str, Node | TableDef]
    ) -> None:
        """Remember what a script gave, and what it was given by name."""
        self._outputs[text], self._given[text] = outputs, given

    def of(self, outputs: Sequence[Output]) -> RecordedScript:
        """The script of a query that is started; one with the reason where it is of none."""
        for text, made in self._outputs.items():
            places = [_place(output, made) for output in outputs]
            if None not in places:
                return _recorded(text, self._given[text], places, outputs)
        return RecordedScript(reason=_NOT_SQL)


def _place(output: Output, made: Sequence[Output]) -> int | None:
    return next((n for n, of in enumerate(made) if of.node is output.node), None)


def _recorded(
    text: str,
    given: Mapping[str, Node | TableDef],
    places: Sequence[int | None],
    outputs: Sequence[Output],
) -> RecordedScript:
    said = {name: _said(node) for name, node in given.items()}
    unknown = [name for name, found in said.items() if found is None]
    if own := [*unknown, *_own_functions(text)]:
        return RecordedScript(reason=f"whose {own[0]} the program alone has")
    named = [[place, output.name] for place, output in zip(places, outputs, strict=True)]
    return RecordedScript(text, given={n: s for n, s in said.items() if s}, outputs=named)


def _own_functions(text: str) -> list[str]:
    """The functions of a script that the program has declared."""
    if not all_registered():
        return []
    return [name for name in read_script(text).foreign_functions() if registered(name) is not None]


def _said(node: Node | TableDef) -> dict[str, Any] | None:
    """A stream of places by what makes it again; None for anything that the program alone has."""
    if not isinstance(node, Input) or node.stream.reading != AS_FOUND:
        return None
    stream = node.stream
    if not stream.uris or any(uri.startswith(IN_PROGRAM) for uri in stream.uris):
        return None
    return {
        "name": stream.name,
        "uris": list(stream.uris),
        "time": stream.time,
        "disorder_us": stream.disorder_us,
        "idle_us": stream.idle_us,
    }
