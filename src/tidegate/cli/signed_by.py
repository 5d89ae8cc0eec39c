"""`--signed-by KEY`: what commands check a signed chain with, and how they tell its newest link."""

from __future__ import annotations

from collections.abc import Callable

import click

from tidegate.cli.answer import Command
from tidegate.cli.value import PathText

SIGNED_BY = "--signed-by"


def signed_by_option(help_: str) -> Callable[[Command], Command]:
    """The option, which takes the PEM file of an Ed25519 public key."""
    return click.option(SIGNED_BY, type=PathText(), metavar="KEY", help=help_)


def signed_line(first: int, batch: int, link: str) -> str:
    """What is signed, and the name of the newest link: who knows it knows how far the chain was."""
    return f"signed: batches {first} to {batch}, newest link {link}"
