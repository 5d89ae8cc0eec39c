"""Finds where the results of a query are, from their folder or from its checkpoint."""

from __future__ import annotations

import os
from urllib.parse import quote, unquote

from tidegate.errors import OptionError, SourceError, near
from tidegate.remote.scheme import is_remote_uri, scheme_of
from tidegate.state.store import Store

ONLY = ""
"""The name that a manifest has for the output of a query with one."""


def result_place(path: str, output: str | None = None) -> str:
    """The URI of a folder with results; `path` may be that folder, or a checkpoint.

    `output` is the name of an output of a checkpoint that has several.
    """
    store = Store.open(path)
    if store.meta() is None:
        return _folder(path, output)
    manifest = store.latest()
    if manifest is None:
        raise SourceError(
            path, "must have a batch", "none that is committed yet", "Try when it has."
        )
    names = [name for name in manifest.outputs if name != ONLY]
    if output is None and names:
        raise OptionError(path, "has several outputs", None, f"Choose one of {', '.join(names)}.")
    if output is not None and output not in names:
        raise OptionError("output", f"must be one of {path}", output, near(output, names))
    place = manifest.places.get(output or ONLY)
    if place is None:
        raise SourceError(
            path,
            "must be of a query that writes where others can read",
            "a sink without an address",
            "Write to a folder, with --out or sink=tg.sink.files(path).",
        )
    if not is_remote_uri(place) and scheme_of(place) != "file":
        raise SourceError(
            path,
            "must be of a query that writes Parquet files",
            f"a sink of {scheme_of(place)}:",
            "Read it with what reads such places, as Spark's own data sources do.",
        )
    return place


def _folder(path: str, output: str | None) -> str:
    if output is not None:
        raise OptionError(
            "output",
            "is for a checkpoint",
            f"{output} with the folder {path}",
            f"Name the folder of the output: {path.rstrip('/')}/{output}.",
        )
    if is_remote_uri(path):
        return path
    local = unquote(path.removeprefix("file://")) if scheme_of(path) == "file" else path
    if not os.path.isdir(local):
        raise SourceError(
            path,
            "must be the folder of an output, or a checkpoint",
            "no such folder",
            "Give what the run had as --out or --checkpoint.",
        )
    return f"file://{quote(os.path.abspath(local))}"
