"""Names datasets by their URIs as the OpenLineage specification does, never with credentials."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from tidegate.remote.lake.uri import catalog_file
from tidegate.remote.scheme import without_keys

IN_PROGRAM = ("memory", "frame", "console")
"""Schemes of what only the process itself has: no other job can read it, so it has no name."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_WILDCARD = re.compile(r"[*?\[{]")
_POSTGRES_PORT = 5432


@dataclass(frozen=True)
class Dataset:
    """What tells a dataset from all others: the datasource, and the place in it."""

    namespace: str
    name: str


@dataclass(frozen=True)
class _Place:
    """A URI in its parts; `text` is all of it behind the scheme and before the parameters."""

    scheme: str
    text: str
    parameters: Mapping[str, str]

    @property
    def host(self) -> str:
        """The authority without a user; of several servers the first."""
        return self.text.removeprefix("//").partition("/")[0].rpartition("@")[2].partition(",")[0]

    @property
    def path(self) -> str:
        """What follows the authority, with its slash; up to the first wildcard."""
        return _fixed("/" + unquote(self.text.removeprefix("//").partition("/")[2])).rstrip("/")

    @property
    def output(self) -> str:
        """The folder of an output with a name, where a sink has several in one place."""
        name = self.parameters.get("output")
        return f"/{name}" if name else ""


def dataset_of(uri: str) -> Dataset | None:
    """The dataset that a URI or a path of a source, a table or a sink names.

    None for what only the process itself has.
    """
    found = _SCHEME.match(uri)
    if found is None:
        return _of_path(uri)
    place, asked, query = without_keys(uri)[found.end() :].partition("?")
    parameters = dict(parse_qsl(query)) if asked else {}
    scheme = found[1].lower()
    if scheme in IN_PROGRAM:
        return None
    return _NAMINGS.get(scheme, _as_written)(_Place(scheme, place, parameters))


def _of_path(path: str) -> Dataset:
    return Dataset("file", _fixed(os.path.abspath(path)))


def _of_file_uri(place: _Place) -> Dataset:
    return _of_path(unquote(urlsplit(f"file:{place.text}").path))


def _of_bucket(place: _Place) -> Dataset:
    scheme = {"s3a": "s3", "gcs": "gs"}.get(place.scheme, place.scheme)
    name = f"{place.path}{place.output}".lstrip("/")
    return Dataset(f"{scheme}://{place.host}", name or "/")


def _of_container(place: _Place) -> Dataset:
    authority = place.text.removeprefix("//").partition("/")[0]
    return Dataset(f"abfss://{authority}", f"{place.path}{place.output}" or "/")


def _of_cluster(place: _Place) -> Dataset:
    return Dataset(f"{place.scheme}://{place.host}", f"{place.path}{place.output}" or "/")


def _of_topic(place: _Place) -> Dataset:
    return Dataset(f"kafka://{place.host}", place.path.strip("/"))


def _of_relation(place: _Place) -> Dataset:
    host = place.host if ":" in place.host else f"{place.host}:{_POSTGRES_PORT}"
    table = place.parameters.get("table", "")
    schema = "" if "." in table else f"{place.parameters.get('schema', 'public')}."
    return Dataset(f"postgres://{host}", f"{place.path.strip('/')}.{schema}{table}")


def _of_table_folder(place: _Place) -> Dataset | None:
    """A table format is where its files are: `delta:PATH`, `delta+s3://bucket/table`."""
    _, plus, inner = place.scheme.partition("+")
    if plus:
        return dataset_of(f"{inner}:{place.text}")
    return _of_path(unquote(place.text.removeprefix("//localhost")))


def _of_catalog(place: _Place) -> Dataset:
    catalog = catalog_file(place.text) or place.text
    return Dataset(f"iceberg:{catalog}", place.parameters.get("table", ""))


def _as_written(place: _Place) -> Dataset:
    return Dataset(place.scheme, place.text.strip("/") or place.scheme)


_NAMINGS: Mapping[str, Callable[[_Place], Dataset | None]] = {
    "file": _of_file_uri,
    **dict.fromkeys(("s3", "s3a", "gs", "gcs"), _of_bucket),
    **dict.fromkeys(("abfs", "abfss"), _of_container),
    **dict.fromkeys(("hdfs", "viewfs"), _of_cluster),
    "kafka": _of_topic,
    **dict.fromkeys(("postgres", "postgresql"), _of_relation),
    **dict.fromkeys(("delta", "delta+s3", "delta+gs", "delta+abfs"), _of_table_folder),
    "iceberg": _of_catalog,
}
"""By scheme how its URIs are named; one that is not here is named as it is written."""


def _fixed(path: str) -> str:
    """The folder that a pattern of files looks in; a plain path as it is."""
    found = _WILDCARD.search(path)
    return path if found is None else os.path.dirname(path[: found.start()])
