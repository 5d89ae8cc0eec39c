"""Takes the URIs of lakehouse tables apart, and refuses those with keys in them."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote

from tidegate.errors import UserError, near

SQLITE = "sqlite:///"
_ENDINGS = (".db", ".sqlite", ".sqlite3")


def catalog_file(place: str) -> str:
    """The absolute path of the SQLite file that is a catalog; "" for one that has a name."""
    path = unquote(place.removeprefix(SQLITE))
    by_name = path == place and "/" not in path and not path.endswith(_ENDINGS)
    return "" if by_name or not path else os.path.abspath(path)


@dataclass(frozen=True)
class LakeUri:
    """`scheme:place?name=value&...`; `where` and `kind` are what messages begin with and are."""

    scheme: str
    place: str
    parameters: Mapping[str, str]
    where: str
    kind: type[UserError]

    @staticmethod
    def parse(text: str, where: str, kind: type[UserError]) -> LakeUri:
        """Take a URI apart; a parameter that is there twice is refused."""
        head, _, query = text.partition("?")
        scheme, _, place = head.partition(":")
        found: dict[str, str] = {}
        for name, value in parse_qsl(query, keep_blank_values=True):
            if name in found:
                got, keep = f"{name} twice", f"Keep one {name}."
                raise kind(where, "a parameter can be given once", got, keep)
            found[name] = value
        return LakeUri(scheme.lower(), place, found, where, kind)

    def check_parameters(self, known: Collection[str]) -> None:
        """Refuse parameters that this kind of table does not have here."""
        for name in self.parameters:
            if name not in known:
                must = f"parameters must be those of {self.scheme}:"
                raise self.kind(self.where, must, f"parameter {name}", near(name, known))

    def refusal(self, requirement: str, got: str, remedy: str) -> UserError:
        return self.kind(self.where, requirement, got, remedy)
