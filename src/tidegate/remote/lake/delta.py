"""Opens tables of Delta Lake, in a folder of this host or on S3, with the library `deltalake`."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlencode

from tidegate.remote.folder import DataFolder, folder_of
from tidegate.remote.lake.local_folder import LocalFolder
from tidegate.remote.lake.uri import LakeUri
from tidegate.remote.object_uri import endpoint_said, object_place, with_region
from tidegate.remote.scheme import is_object_uri

if TYPE_CHECKING:
    from deltalake import DeltaTable

LOG = "_delta_log"
STORE_PARAMETERS = ("region", "scheme", "endpoint_override", "force_virtual_addressing")
"""The parameters by which a URI of a table on S3 describes the server."""

_OPTIONS = {
    "region": "aws_region",
    "endpoint": "aws_endpoint",
    "access_key_id": "aws_access_key_id",
    "secret_access_key": "aws_secret_access_key",
    "session_token": "aws_session_token",
    "virtual_hosted_style_request": "aws_virtual_hosted_style_request",
}


@dataclass(frozen=True)
class DeltaPlace:
    """Where a table is: an absolute path, or a URI of S3 without keys. Small and picklable."""

    uri: str

    @staticmethod
    def of(uri: LakeUri, own: Collection[str] = ()) -> DeltaPlace:
        """The table that a URI names; `own` are parameters that the caller reads."""
        uri.check_library("delta", "deltalake")
        if uri.scheme == "delta":
            uri.check_parameters(own)
            path = uri.place
            if path.startswith("//"):
                path = path.removeprefix("//localhost").removeprefix("//")
                if not path.startswith("/"):
                    must = "delta: is for a folder of this machine"
                    remedy = "Write delta:PATH, or delta+s3://bucket/path."
                    raise uri.refusal(must, f"//{path}", remedy)
            if not path:
                raise uri.refusal("must name a folder", "none", "Write delta:PATH.")
            return DeltaPlace(os.path.abspath(unquote(path)))
        store = uri.scheme.partition("+")[2]
        where = f"{store}:{uri.place}"
        uri.check_parameters((*own, *STORE_PARAMETERS))
        if not uri.place.startswith("//") or not uri.place.strip("/"):
            example = f"Write {uri.scheme}://bucket/path."
            raise uri.refusal("must name a bucket and a folder", uri.place or "none", example)
        said = {n: v for n, v in uri.parameters.items() if n not in own}
        return DeltaPlace(f"{where}?{urlencode(said)}" if said else where)

    @property
    def remote(self) -> bool:
        return is_object_uri(self.uri)

    @property
    def root(self) -> str:
        """The place as messages name it, without parameters."""
        return object_place(self.uri).root if self.remote else self.uri

    @property
    def location(self) -> str:
        """The place in the form that the library takes."""
        return self.uri.partition("?")[0] if self.remote else self.uri

    @property
    def named(self) -> str:
        """The URI of the table as queries write it, absolute and without keys."""
        return f"delta+{self.uri}" if self.remote else f"delta:{quote(self.uri)}"

    def below(self, name: str) -> DeltaPlace:
        """The table in a folder inside this one; this one for an empty name."""
        head, mark, query = self.uri.partition("?") if self.remote else (self.uri, "", "")
        return DeltaPlace(f"{head.rstrip('/')}/{name}{mark}{query}") if name else self

    def folder(self) -> DataFolder:
        """The files of the table; connects on first use."""
        return folder_of(with_region(self.uri)) if self.remote else LocalFolder(self.uri)

    def options(self) -> dict[str, str]:
        """The library's options for the server; has keys only where a profile has them."""
        if not self.remote:
            return {}
        config = dict(object_place(with_region(self.uri)).config)
        config.setdefault("endpoint", endpoint_said())
        config.setdefault("region", os.environ.get("AWS_REGION", "us-east-1"))
        found = {_OPTIONS[n]: str(v) for n, v in config.items() if v is not None}
        if str(config["endpoint"]).startswith("http://"):
            found["aws_allow_http"] = "true"
        return found

    def table(self) -> DeltaTable | None:
        """The newest version; None where there is no table. Its memory grows with its files."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        if not self.remote and not os.path.isdir(os.path.join(self.uri, LOG)):
            return None
        try:
            return DeltaTable(self.location, storage_options=self.options())
        except TableNotFoundError:
            return None
