"""Says which URIs name a place on a file system, refuses those with keys, and never shows a key.

`s3:...` is never read as a local folder of that name: a URI that cannot be used is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tidegate.errors import UserError, near

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
"""The schemes that messages name; the others are second names of these."""

SECOND_NAMES = (*(name for name in REMOTE if name not in OFFERED), "postgres")
"""Schemes that messages do not list."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_USER = re.compile(r"(://)([^/?#\s]*)@")
_PARAMETER = re.compile(r"([?&])([^=&#\s]+)=([^&#\s]*)")
_SECRET = re.compile(
    r"(?i)^(?!.*[_.](file|env|location|url)$)"
    r"(.*(passw|passphrase|secret|token|credential|jaas|api_?key|account_?key|[._]pem$)|sas$|sig$)"
)
"""Names of parameters whose values are secret; the name of a file with the secret is not."""

_KEPT_IN = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in ~/.aws/credentials",
    "gs": "the file that GOOGLE_APPLICATION_CREDENTIALS names",
    "abfs": "AZURE_STORAGE_ACCOUNT_KEY, or in AZURE_CLIENT_ID, AZURE_CLIENT_SECRET and "
    "AZURE_TENANT_ID",
    "postgres": "PGPASSWORD, or in ~/.pgpass",
    "postgresql": "PGPASSWORD, or in ~/.pgpass",
    "kafka": "TIDEGATE_KAFKA_SASL_USERNAME and TIDEGATE_KAFKA_SASL_PASSWORD, or in a file that "
    "?config=FILE names",
    "http": "OPENLINEAGE_API_KEY",
    "https": "OPENLINEAGE_API_KEY",
}
"""Where keys and passwords belong, by scheme."""


def scheme_of(text: str) -> str | None:
    """The scheme that a text begins with, in lower case; None for a plain path."""
    found = _SCHEME.match(text)
    return found[1].lower() if found else None


def is_remote_uri(text: str) -> bool:
    """Whether a text names a place on another file system. Does not check that it can be used."""
    return "://" in text and scheme_of(text) in REMOTE


def is_object_uri(text: str) -> bool:
    """Whether a text names a folder of an object store."""
    return "://" in text and scheme_of(text) in OBJECT_STORES


def unusable(text: str, where: str, kind: type[UserError], also: Sequence[str] = ()) -> UserError:
    """The error for a text that begins with a scheme and names nothing usable.

    `also` are schemes that the caller knows besides those of file systems.
    """
    scheme = scheme_of(text) or ""
    _, _, place = text.partition(":")
    if scheme in (*REMOTE, "file"):
        example = "file:///path" if scheme == "file" else f"{scheme}://{place.strip('/') or 'host'}"
        return kind(where, f"a URI of {scheme} must have its slashes", text, f"Write {example}.")
    remedy = near(scheme, [*also, *OFFERED], alike=0.5)
    if not place.startswith("//"):
        remedy += f" A file or folder of this name is ./{text}."
    return kind(where, "must be a path or of a known scheme", f"{scheme}:", remedy)


def refuse_keys(uri: str, where: str, kind: type[UserError], place: str | None = None) -> None:
    """Refuse a URI of any scheme that has a key or a password in it.

    Checkpoints store URIs, and logs, plans, reports and lineage show them. Keys are read where they
    are used, from the environment or from files. `place` says where keys belong, unless the scheme
    says it.
    """
    if shown(uri) == uri:
        return
    scheme = (scheme_of(uri) or "").rpartition("+")[2]
    place = place or _KEPT_IN.get(OBJECT_STORES.get(scheme, scheme))
    belongs = f"have it in {place}" if place else "see docs/security.md, Secrets, for its place"
    remedy = f"Leave it out, and {belongs}."
    raise kind(where, "a URI must be without keys and passwords", shown(uri), remedy)


def distinct(
    pairs: Sequence[tuple[str, str]], where: str, kind: type[UserError], within: str = ""
) -> dict[str, str]:
    """The parameters of a URI by name; refuses one that is given twice, `within` what if said."""
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            got = f"{name} twice{within}"
            raise kind(where, "a parameter can be given once", got, f"Keep one {name}.")
        found[name] = value
    return found


def without_keys(uri: str) -> str:
    """A URI as it may be stored: a reader takes the keys from its own environment."""
    kept = _USER.sub(lambda found: found[1] + _name_at(found[2], uri), uri)
    place, asked, query = kept.partition("?")
    if not asked:
        return kept
    given = [part for part in query.split("&") if not _SECRET.search(part.partition("=")[0])]
    return f"{place}?{'&'.join(given)}" if given else place


def _name_at(user: str, uri: str) -> str:
    """The part before an @ without its password; in a URI of S3 the whole part is a key."""
    name, colon, _ = user.partition(":")
    scheme = scheme_of(uri) or ""
    dropped = OBJECT_STORES.get(scheme.rpartition("+")[2]) in ("s3", "gs") and (colon or name)
    return "" if dropped and user != "anonymous" else f"{name}@"


def shown(uri: str) -> str:
    """A URI as it may be shown: keys become `...`. The same text where it has none."""
    if "://" not in uri and "?" not in uri:
        return uri
    told = _USER.sub(_without_password, uri)
    return _PARAMETER.sub(_without_value, told)


def _without_password(found: re.Match[str]) -> str:
    name, colon, _ = found[2].partition(":")
    return f"{found[1]}{name}:...@" if colon else found[0]


def _without_value(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}=..." if _SECRET.search(found[2]) else found[0]
