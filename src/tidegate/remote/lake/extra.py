"""Imports the libraries of lakehouse tables, which are extras of the package."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from tidegate.errors import UserError

_PACKAGES = {"delta": "deltalake", "iceberg": "pyiceberg"}
"""By extra the package that it installs."""


def library(extra: str, where: str, kind: type[UserError]) -> ModuleType:
    """The library of a kind of tables; one sentence where it is not installed."""
    package = _PACKAGES[extra]
    try:
        return import_module(package)
    except ImportError as error:
        install = f"Run pip install 'tidegate[{extra}]'."
        raise kind(where, f"needs {package}", str(error), install) from error
