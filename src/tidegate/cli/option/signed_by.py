"""`--signed-by KEY`: the public key that commands check a signed chain with."""

from __future__ import annotations

from collections.abc import Callable

import click

from tidegate.cli.option.value import PathText
from tidegate.cli.text.answer import Command

SIGNED_BY = "--signed-by"


def signed_by_option(help_: str) -> Callable[[Command], Command]:
    """The option; its value is the PEM file of an Ed25519 public key."""
    return click.option(SIGNED_BY, type=PathText(), metavar="KEY", help=help_)


def signed_line(first: int, batch: int, link: str) -> str:
    """The signed batches, and the newest link's name; knowing it reveals a shortened chain."""
    return f"signed: batches {first} to {batch}, newest link {link}"
