"""Takes the URIs of lakehouse tables apart, and imports the libraries of their formats."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from urllib.parse import parse_qsl, unquote

from tidegate.errors import UserError, near
from tidegate.remote.scheme import distinct

SQLITE = "sqlite:///"
_ENDINGS = (".db", ".sqlite", ".sqlite3")


def catalog_file(place: str) -> str:
    """The absolute path of a catalog in an SQLite file; "" for a catalog that has a name."""
    path = unquote(place.removeprefix(SQLITE))
    by_name = path == place and "/" not in path and not path.endswith(_ENDINGS)
    return "" if by_name or not path else os.path.abspath(path)


@dataclass(frozen=True)
class LakeUri:
    """`scheme:place?name=value&...`; errors are of class `kind` and begin with `where`."""

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
        given = distinct(parse_qsl(query, keep_blank_values=True), where, kind)
        return LakeUri(scheme.lower(), place, given, where, kind)

    def check_library(self, extra: str, package: str) -> None:
        """Refuse to go on without the library of the format, which an extra installs."""
        try:
            import_module(package)
        except ImportError as error:
            install = f"Run pip install 'tidegate[{extra}]'."
            raise self.kind(self.where, f"needs {package}", str(error), install) from error

    def check_parameters(self, known: Collection[str]) -> None:
        """Refuse parameters that are not among the known ones."""
        for name in self.parameters:
            if name not in known:
                must = f"parameters must be those of {self.scheme}:"
                raise self.kind(self.where, must, f"parameter {name}", near(name, known))

    def refusal(self, requirement: str, got: str, remedy: str) -> UserError:
        return self.kind(self.where, requirement, got, remedy)
