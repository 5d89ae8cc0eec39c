"""Reads a sink's address as that of a table, and its parameter `append`."""

from __future__ import annotations

from tidegate.errors import OptionError
from tidegate.remote.lake.uri import LakeUri
from tidegate.sink.address import Address

APPEND = "append"
"""The parameter that says that rows of another checkpoint may be there."""


def lake_uri(address: Address) -> LakeUri:
    """The address as sources of such tables have it."""
    return LakeUri(address.scheme, address.place, address.parameters, address.where, OptionError)


def may_append(address: Address) -> bool:
    """Whether the URI says that results are added to what another checkpoint has written."""
    said = address.parameters.get(APPEND, "false").lower()
    if said not in ("true", "false"):
        remedy = "Write append=true, or leave it out."
        raise OptionError(address.where, "append must be true or false", said, remedy)
    return said == "true"
