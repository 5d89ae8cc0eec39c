"""Parses the URI of a sink, and checks its parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl, unquote

from tidegate.errors import OptionError, near
from tidegate.remote.scheme import distinct, refuse_keys, shown

FILE = "file"
"""The scheme of folders, also of those given as a plain path."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_PLACE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""How a URI of a place begins, also one whose slashes `pathlib` has made one of."""


@dataclass(frozen=True)
class Address:
    """Where results go: `scheme:place?name=value&...`, or the plain path of a folder.

    Each scheme reads `place` in its own way; for `file` it is a path of this system. Messages call
    the address `where`.
    """

    text: str
    scheme: str
    place: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    where: str = "sink"

    @staticmethod
    def parse(text: str, where: str) -> Address:
        """Take a URI apart. Does not check whether there are sinks of its scheme."""
        if not text.strip():
            raise OptionError(
                where, "must say where results go", repr(text), "Give a folder, or console:."
            )
        if _WINDOWS.match(text):
            raise OptionError(
                where,
                "must be a folder of this system, or a URI",
                f"the Windows path {text}",
                "Write it as this system does, for example out or /data/out.",
            )
        refuse_keys(text, where, OptionError)
        place, asked, query = text.partition("?")
        parameters = _parameters(query, text, where) if asked else {}
        found = _SCHEME.match(place)
        if found is None:
            return Address(text, FILE, place, parameters, where)
        scheme, place = found[1].lower(), place[found.end() :]
        if scheme == FILE:
            place = _local_path(place, text, where)
        return Address(text, scheme, place, parameters, where)

    @staticmethod
    def of_folder(path: str, where: str) -> Address:
        """The folder that a program names: a path with any characters, or a URI with slashes."""
        if _PLACE.match(path):
            return Address.parse(path, where)
        return Address(path, FILE, path, where=where)

    def with_parameter(self, option: str, name: str, value: str) -> Address:
        """The same place with a parameter from an option; refused where the URI says otherwise."""
        there = self.parameters.get(name, value)
        if there != value:
            raise OptionError(
                option,
                f"must be the {name} of {self.where}, or left out",
                f"{value} beside {shown(self.text)}",
                f"Keep one of {value} and {there}.",
            )
        return replace(self, parameters={**self.parameters, name: value})

    def with_given(self, **options: str | None) -> Address:
        """The same place with options of a program as parameters; None is an option not given."""
        address = self
        for name, value in options.items():
            if value is not None:
                address = address.with_parameter(name, name, value)
        return address

    def check_parameters(self, *known: str) -> None:
        """Refuse parameters that a sink does not have."""
        for name in self.parameters:
            if name not in known:
                raise OptionError(
                    self.where,
                    f"parameters must be those of {self.scheme}:",
                    f"{name}={self.parameters[name]}",
                    near(name, known) if known else "It has none: leave it out.",
                )

    def check_bare(self) -> None:
        """Refuse anything besides the scheme."""
        if self.place:
            raise OptionError(
                self.where,
                f"{self.scheme}: stands alone",
                self.text,
                f"Write {self.scheme}: and nothing after it.",
            )
        self.check_parameters()


def _parameters(query: str, text: str, where: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True)
    except ValueError:
        raise OptionError(
            where,
            "after the ? parameters must look like format=csv",
            shown(text),
            "In the name of a folder write ? as %3F and the whole as file:///path.",
        ) from None
    return distinct(pairs, where, OptionError, within=f" in {shown(text)}")


def _local_path(place: str, text: str, where: str) -> str:
    """The path of a file URI; a host other than this one has no path here."""
    if place.startswith("//"):
        host, slash, rest = place[2:].partition("/")
        if host not in ("", "localhost"):
            raise OptionError(
                where,
                "a file URI must name a folder on this machine",
                text,
                f"Write it as file:///{host}{slash}{rest}, or as a plain path.",
            )
        place = slash + rest
    if not place.strip("/"):
        raise OptionError(
            where, "a file URI must name a folder", text, "Write it as file:///path/of/a/folder."
        )
    return unquote(place)
