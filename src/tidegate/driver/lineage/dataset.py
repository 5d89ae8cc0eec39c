"""Maps URIs to dataset names of the OpenLineage specification; a name never has credentials."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from tidegate.remote.lake.uri import catalog_file
from tidegate.remote.scheme import without_keys

IN_PROGRAM = ("memory", "frame", "console")
"""Schemes of data inside this process. No other job can read it, so it has no dataset name."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_WILDCARD = re.compile(r"[*?\[{]")
_POSTGRES_PORT = 5432


@dataclass(frozen=True)
class Dataset:
    """The identity of a dataset: the datasource, and the location inside it."""

    namespace: str
    name: str


@dataclass(frozen=True)
class _Place:
    """A parsed URI. `text` is everything between the scheme and the parameters."""

    scheme: str
    text: str
    parameters: Mapping[str, str]

    @property
    def host(self) -> str:
        """The authority without the user; for a list of servers, the first one."""
        return self.text.removeprefix("//").partition("/")[0].rpartition("@")[2].partition(",")[0]

    @property
    def path(self) -> str:
        """The path with its leading slash, cut before the first wildcard."""
        return _fixed("/" + unquote(self.text.removeprefix("//").partition("/")[2])).rstrip("/")

    @property
    def output(self) -> str:
        """The subfolder of a named output; empty if the sink has only one."""
        name = self.parameters.get("output")
        return f"/{name}" if name else ""


def dataset_of(uri: str) -> Dataset | None:
    """The dataset for the URI or path of an input or a sink; None for data inside this process."""
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
    """A lake table is named by the location of its files: `delta:PATH`, `delta+s3://bucket/t`."""
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
"""How to name a URI, by scheme. URIs of other schemes are named as they are written."""


def _fixed(path: str) -> str:
    """The folder in which a file pattern matches; a path without wildcards is unchanged."""
    found = _WILDCARD.search(path)
    return path if found is None else os.path.dirname(path[: found.start()])
