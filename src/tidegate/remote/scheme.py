"""Which URIs name a place on a file system, between what a user typed and who opens it.

`s3:...` is never a folder of that name in the present one: a URI that cannot be used is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit, urlunsplit

from tidegate.errors import NO_WAY, UserError, near

OBJECT_STORES = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "gcs": "gs",
    "abfs": "abfs",
    "abfss": "abfs",
}
"""The schemes of object stores, and the kind of each."""

HADOOP = ("hdfs", "viewfs")
REMOTE = (*OBJECT_STORES, *HADOOP)
"""The schemes of places that are not on this host."""

OFFERED = ("file", "s3", "gs", "abfs", "hdfs")
"""Those that messages name: the others are second names."""

LATER = ("kafka", "postgres", "postgresql", "delta", "iceberg")
"""Schemes that people expect and that nothing reads or writes yet."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


def scheme_of(text: str) -> str | None:
    """The scheme that a text begins with, in small letters; None where it is a plain path."""
    found = _SCHEME.match(text)
    return found[1].lower() if found else None


def is_remote_uri(text: str) -> bool:
    """Whether a text names a place on another file system, whether it can be used or not."""
    return "://" in text and scheme_of(text) in REMOTE


def is_object_uri(text: str) -> bool:
    """Whether a text names a folder of an object store."""
    return "://" in text and scheme_of(text) in OBJECT_STORES


def unusable(text: str, where: str, kind: type[UserError], also: Sequence[str] = ()) -> UserError:
    """What to say of a text that begins with a scheme and names nothing that can be used.

    `also` are schemes that are known at this place besides those of file systems.
    """
    scheme = scheme_of(text) or ""
    _, _, place = text.partition(":")
    if scheme in (*REMOTE, "file"):
        example = "file:///path" if scheme == "file" else f"{scheme}://{place.strip('/') or 'host'}"
        return kind(where, f"a URI of {scheme} must have its slashes", text, f"Write {example}.")
    if scheme.partition("+")[0] in LATER:
        return kind(where, f"{scheme}: is not available yet", shown(text), NO_WAY)
    remedy = near(scheme, [*also, *OFFERED], alike=0.5)
    if not place.startswith("//"):
        remedy += f" A file or folder of this name is ./{text}."
    return kind(where, "must be a path or of a known scheme", f"{scheme}:", remedy)


def without_keys(uri: str) -> str:
    """A URI as it may be kept: keys must come from the environment of who reads it."""
    if "://" not in uri:
        return uri
    parts = urlsplit(uri)
    user, _, host = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    if not colon:
        return uri
    kept = f"{name}@{host}" if OBJECT_STORES.get(parts.scheme.lower()) == "abfs" else host
    return urlunsplit(parts._replace(netloc=kept))


def shown(uri: str) -> str:
    """A URI as it may be told: without the keys in it."""
    if "://" not in uri or "@" not in uri:
        return uri
    parts = urlsplit(uri)
    user, at, host = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    return urlunsplit(parts._replace(netloc=f"{name}:...{at}{host}")) if colon else uri
