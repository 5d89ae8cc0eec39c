"""Finds tables and views of Spark's catalog by name, as streams."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidegate.errors import OptionError, near
from tidegate.query.name import find_name
from tidegate.session.place import Place
from tidegate.source.registry import format_named
from tidegate.sql.relation.catalog import names_read
from tidegate.sql.script import Create, Script, TableSource
from tidegate.sql.syntax import OF_SPARK
from tidegate.storage import disk

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame_of(place: Place, name: str, where: str) -> DataFrame:
    """The DataFrame that a name in Spark's catalog stands for; bounded, or of a stream."""
    if not place.on_spark:
        raise OptionError(
            where,
            "a table of Spark needs Spark",
            f"{name} with master none",
            "Use tg.Session(spark), or a path or a table of Arrow as the source.",
        )
    session = place.connected().session
    assert session is not None
    if not session.catalog.tableExists(name):
        raise OptionError(
            where, "no table or view of Spark has this name", name, near(name, _names(session))
        )
    return session.table(name)


def tables_of(script: Script) -> Iterator[Create]:
    """The streams of a script that are made of tables of Spark."""
    for create in script.creates:
        if any(uri.startswith(OF_SPARK) for uri in create.uris):
            yield create


def without_tables(script: Script) -> Script:
    """The script without those streams, and tables of such, for who gives them to it."""
    made = {create.name for create in tables_of(script)}
    tables = (t for t in script.tables if not any(u.startswith(OF_SPARK) for u in t.uris))
    creates = (c for c in script.creates if c.name not in made)
    return replace(script, creates=tuple(creates), tables=tuple(tables))


def one_source(table: TableSource, place: Place) -> Any:
    """The DataFrame that a table of a script is made of."""
    where = f"CREATE TABLE {table.name}"
    if len(table.uris) > 1:
        raise OptionError(
            where,
            "a table of Spark stands alone",
            f"{len(table.uris)} sources",
            "Make a view of their union in Spark.",
        )
    return frame_of(place, table.uris[0].removeprefix(OF_SPARK), where)


def is_catalog_name(source: object) -> bool:
    """Whether a text is the name of a table in Spark's catalog, and not a path."""
    named = isinstance(source, str) and re.fullmatch(r"[\w`]+(\.[\w`]+)*", source) is not None
    return named and format_named(str(source)) is None and not disk.exists(str(source))


def sources_of(create: Create, place: Place) -> list[Any]:
    """What such a stream is made of: DataFrames, and addresses as they are."""
    where = f"CREATE STREAM {create.name}"
    return [
        frame_of(place, uri.removeprefix(OF_SPARK), where) if uri.startswith(OF_SPARK) else uri
        for uri in create.uris
    ]


def read_by_name(script: Script, known: Iterable[str], place: Place) -> list[str]:
    """The tables and views of Spark that a script reads without making streams of them.

    Only a session that is there is asked: Spark is not started to look for a name.
    """
    if place.session is None:
        return []
    made = [*(c.name for c in script.creates), *(v.name for v in script.views)]
    made += [table.name for table in script.tables]
    unknown = [n for n in names_read(script) if find_name(n, [*known, *made]) is None]
    return [name for name in unknown if place.session.catalog.tableExists(name)]


def _names(session: SparkSession) -> list[str]:
    return [table.name for table in session.catalog.listTables()]
