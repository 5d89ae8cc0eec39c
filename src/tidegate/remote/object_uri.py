"""Parses URIs of object stores as `pyarrow.fs` does, and makes the clients for them.

Input and results go through `pyarrow.fs`. State goes through `obstore`, because only one of two
runs may write the next manifest, which needs conditional puts. Both clients get the same settings.
A URI names the store, the bucket and the folder; its parameters have Arrow's names. Credentials
come from the environment, or from files that all tools of a store read.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import (
    SplitResult,
    parse_qsl,
    unquote,
    urlencode,
    urlsplit,
)

from pyarrow.fs import (
    AwsStandardS3RetryStrategy,
    FileSystem,
    GcsFileSystem,
    S3FileSystem,
    resolve_s3_region,
)

from tidegate.errors import OptionError, near
from tidegate.remote.reason import reason, remedy
from tidegate.remote.scheme import OBJECT_STORES, is_object_uri, shown
from tidegate.storage import disk

if TYPE_CHECKING:
    from obstore.store import AzureStore, GCSStore, S3Store

    Client = S3Store | GCSStore | AzureStore

__all__ = ["ObjectPlace", "is_object_uri", "object_place", "with_region"]

_ATTEMPTS = 4
"""How many times a request to S3 is tried."""

_RETRY_SECONDS = 15
"""How long a request to Google's store is tried, unless the URI says it."""

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")

_PARAMETERS = {
    "s3": ("region", "scheme", "endpoint_override", "force_virtual_addressing"),
    "gs": ("scheme", "endpoint_override", "project_id", "retry_limit_seconds"),
    "abfs": ("client_id", "tenant_id", "credential_kind", "enable_tls"),
}
_IGNORED = {
    "s3": ("allow_bucket_creation", "allow_bucket_deletion"),
    "gs": ("default_bucket_location",),
    "abfs": (),
}
"""Parameters of Arrow about things that we never do; they are accepted for that reason."""

_AZURE_HOSTS = (".blob.core.windows.net", ".dfs.core.windows.net")


@dataclass(frozen=True)
class ObjectPlace:
    """A folder of an object store; `config` are the options of its client, in obstore's names."""

    kind: Literal["s3", "gs", "abfs"]
    bucket: str
    prefix: str
    config: Mapping[str, Any] = field(default_factory=dict)
    uri: str = ""

    @property
    def root(self) -> str:
        """The folder as messages name it, without secrets."""
        return f"{self.kind}://{self.bucket}/{self.prefix}".rstrip("/")

    def client(self) -> Client:
        """A client for the folder; costs no round trip."""
        from obstore.exceptions import BaseError
        from obstore.store import AzureStore, GCSStore, S3Store

        made: Any = {"s3": S3Store, "gs": GCSStore, "abfs": AzureStore}[self.kind]
        options = {"allow_http": True} if self._is_plain() else {}
        prefix = self.prefix or None
        try:
            client: Client = made(self.bucket, prefix=prefix, client_options=options, **self.config)
        except BaseError as error:
            must, got = "a client must be possible with what the environment says", str(error)
            raise OptionError(self.root, must, got.splitlines()[0], remedy(error)) from error
        return client

    def file_system(self) -> FileSystem:
        """A file system of the whole store; its paths begin with the bucket."""
        if self.kind == "s3":
            return self._s3_file_system()
        if self.kind == "gs":
            scheme, _, endpoint = self.config.get("base_url", "").rpartition("://")
            given = dict(parse_qsl(urlsplit(self.uri).query))
            seconds = float(given.get("retry_limit_seconds", _RETRY_SECONDS))
            return GcsFileSystem(
                anonymous=bool(self.config.get("skip_signature")),
                scheme=scheme or None,
                endpoint_override=endpoint or None,
                retry_time_limit=timedelta(seconds=seconds),
                project_id=given.get("project_id"),
            )
        return self._azure_file_system()

    def _azure_file_system(self) -> FileSystem:
        """Arrow reads all credentials from the environment except the key of an account."""
        key = os.environ.get("AZURE_STORAGE_ACCOUNT_KEY")
        account = self.config.get("account_name") or os.environ.get("AZURE_STORAGE_ACCOUNT_NAME")
        if not key or not account:
            return FileSystem.from_uri(self.uri)[0]
        from pyarrow.fs import AzureFileSystem  # not in every build

        at = urlsplit(self.config.get("endpoint", ""))
        server = {"authority": at.netloc, "scheme": at.scheme} if at.netloc else {}
        own = {f"{of}_storage_{what}": server[what] for what in server for of in ("blob", "dfs")}
        return AzureFileSystem(account_name=account, account_key=key, **own)

    def _s3_file_system(self) -> FileSystem:
        config = self.config
        scheme, _, endpoint = (config.get("endpoint") or _first(_ENDPOINTS)).rpartition("://")
        region = config.get("region") or _first(_REGIONS)
        return S3FileSystem(
            access_key=config.get("access_key_id"),
            secret_key=config.get("secret_access_key"),
            session_token=config.get("session_token"),
            region=region or "us-east-1",  # servers other than Amazon's ignore it
            scheme=scheme or "https",
            endpoint_override=endpoint.rstrip("/") or None,
            force_virtual_addressing=bool(config.get("virtual_hosted_style_request")),
            retry_strategy=AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
        )

    def _is_plain(self) -> bool:
        places = (self.config.get("endpoint"), self.config.get("base_url"))
        said = [os.environ.get(name) for name in _ENDPOINTS] if self.kind == "s3" else []
        return any(place and place.startswith("http://") for place in (*places, *said))


def _first(variables: Sequence[str]) -> str:
    """The value of the first of these variables of the environment that is set; "" for none."""
    return next((said for name in variables if (said := os.environ.get(name))), "")


def endpoint_said() -> str | None:
    """The S3 endpoint that the environment names."""
    return _first(_ENDPOINTS) or None


def object_place(uri: str) -> ObjectPlace:
    """The place that a URI names; an OptionError for unknown parameters or without a bucket."""
    parts = urlsplit(uri)
    kind = OBJECT_STORES[parts.scheme.lower()]
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in given:
        if name not in (*_PARAMETERS[kind], *_IGNORED[kind]):
            must = f"must have parameters that {kind}:// knows"
            raise OptionError(shown(uri), must, name, near(name, _PARAMETERS[kind]))
    place = {"s3": _s3, "gs": _gs, "abfs": _abfs}[kind](parts, given)
    if not place.bucket:
        remedy = f"For example {kind}://bucket/folder."
        raise OptionError(shown(uri), "must name a bucket or container", "none", remedy)
    return replace(place, uri=uri)


def with_region(uri: str) -> str:
    """The URI with the region of its bucket. Asks Amazon where neither URI nor environment says it.

    Asking costs a round trip, so tasks get the URI that is returned here.
    """
    place = object_place(uri)
    known = {"region", "endpoint"} & set(place.config) or _first((*_REGIONS, *_ENDPOINTS))
    if place.kind != "s3" or known:
        return uri
    try:
        region = _region_of(place.bucket)
    except OSError as error:
        remedy = "Say it in the URI, ?region=..., or in AWS_REGION."
        must = "the region of the bucket must be known"
        raise OptionError(shown(uri), must, reason(error), remedy) from error
    return uri + ("&" if "?" in uri else "?") + urlencode({"region": region})


@lru_cache
def _region_of(bucket: str) -> str:
    return str(resolve_s3_region(bucket))


def _s3(parts: SplitResult, given: Mapping[str, str]) -> ObjectPlace:
    config: dict[str, Any] = {}
    if "region" in given:
        config["region"] = given["region"]
    if "endpoint_override" in given:
        config["endpoint"] = _address(given)
    if given.get("force_virtual_addressing", "").lower() in ("true", "1"):
        config["virtual_hosted_style_request"] = True
    if parts.username:
        where, remedy = shown(parts.geturl()), f"Leave {parts.username}@ out."
        raise OptionError(where, "must begin with the bucket", "a user before it", remedy)
    config |= _shared_credentials()
    return ObjectPlace("s3", _host(parts), _path(parts), config)


def _gs(parts: SplitResult, given: Mapping[str, str]) -> ObjectPlace:
    config: dict[str, Any] = {}
    if "endpoint_override" in given:
        config["base_url"] = _address(given)
    if parts.username == "anonymous":
        config["skip_signature"] = True
    return ObjectPlace("gs", _host(parts), _path(parts), config)


def _abfs(parts: SplitResult, given: Mapping[str, str]) -> ObjectPlace:
    names = ("client_id", "tenant_id")
    config: dict[str, Any] = {name: given[name] for name in names if name in given}
    kind = given.get("credential_kind", "default").lower()
    if kind == "anonymous":
        config["skip_signature"] = True
    if kind == "cli":
        config["use_azure_cli"] = True
    host, user, path = _host(parts), unquote(parts.username or ""), _path(parts)
    first, _, rest = path.partition("/")
    if host.endswith(_AZURE_HOSTS):
        config["account_name"] = host.partition(".")[0]
        in_user = bool(user) and ".dfs." in host
        container, prefix = (user, path) if in_user else (first, rest)
    elif "." in host or parts.port is not None:
        scheme = "http" if given.get("enable_tls", "true").lower() == "false" else "https"
        config["endpoint"] = f"{scheme}://{parts.netloc.rpartition('@')[2]}/{user}"
        config["account_name"] = user
        container, prefix = first, rest
    else:
        if user:
            config["account_name"] = user
        container, prefix = host, path
    return ObjectPlace("abfs", container, prefix, config)


def _host(parts: SplitResult) -> str:
    return parts.hostname or ""


def _path(parts: SplitResult) -> str:
    return str(PurePosixPath(unquote(parts.path))).strip("/") if parts.path.strip("/") else ""


def _address(given: Mapping[str, str]) -> str:
    """The address of a server with its scheme; Arrow takes it with or without."""
    endpoint = given["endpoint_override"]
    return endpoint if "://" in endpoint else f"{given.get('scheme', 'https')}://{endpoint}"


def _shared_credentials() -> dict[str, str]:
    """The keys of the user's profile in `~/.aws/credentials`, unless the environment has some.

    The client itself reads the environment and the machine's own credentials, but not this file.
    """
    before = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE")
    default = os.path.join(os.path.expanduser("~"), ".aws", "credentials")
    path = os.environ.get("AWS_SHARED_CREDENTIALS_FILE", default)
    if any(os.environ.get(name) for name in before) or not disk.is_file(path):
        return {}
    profiles = configparser.ConfigParser(interpolation=None)
    profiles.read_string(disk.read(path).decode())
    profile = os.environ.get("AWS_PROFILE", "default")
    names = {
        "access_key_id": "aws_access_key_id",
        "secret_access_key": "aws_secret_access_key",
        "session_token": "aws_session_token",
    }
    if not profiles.has_section(profile):
        return {}
    found = {ours: profiles.get(profile, name, fallback="") for ours, name in names.items()}
    return {name: value for name, value in found.items() if value}
