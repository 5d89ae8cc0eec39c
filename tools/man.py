"""Writes a man page for each command, from what `--help` says: python tools/man.py FOLDER."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from tidegate.cli.main import commands
from tidegate.version import __version__


def escaped(text: str) -> str:
    """Text that troff shows as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line[:1] in ".'" else line for line in text.splitlines())


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a help text; click's marks for its end and for text as it is are obeyed.

    A line that begins with a blank would break a sentence in two: docstrings are indented.
    """
    for paragraph in inspect.cleandoc(text.partition("\f")[0]).split("\n\n"):
        kept, _, rest = paragraph.partition("\b\n")
        yield f".nf\n{escaped(rest)}\n.fi" if not kept and rest else escaped(paragraph)


def page(command: click.Command, name: str, below: list[str]) -> str:
    """The man page of one command; `below` are the names of its own commands' pages."""
    context = click.Context(command, info_name=name)
    usage = " ".join(command.collect_usage_pieces(context))
    short = command.get_short_help_str(200)
    dashed = name.replace(" ", "-")
    lines = [
        f'.TH "{dashed.upper()}" 1 "" "Tidegate {__version__}"',
        ".SH NAME",
        f"{escaped(dashed)} \\- {escaped(short)}",
        ".SH SYNOPSIS",
        f".B {escaped(name)}",
        escaped(usage),
        ".SH DESCRIPTION",
        "\n.PP\n".join(paragraphs(command.help or short)),
    ]
    records = [p.get_help_record(context) for p in command.get_params(context)]
    options = [record for record in records if record]
    if options:
        lines.append(".SH OPTIONS")
        lines += [f".TP\n.B {escaped(o)}\n{escaped(text) or '.br'}" for o, text in options]
    if below:
        lines += [".SH SEE ALSO", escaped(", ".join(f"{n}(1)" for n in below)) + "."]
    return "\n".join(lines) + "\n"


def pages(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """File names and pages of a command and all below it."""
    below: dict[str, click.Command] = {}
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        found = {n: command.get_command(context, n) for n in command.list_commands(context)}
        below = {n: c for n, c in found.items() if c is not None}
    dashed = name.replace(" ", "-")
    yield f"{dashed}.1", page(command, name, [f"{dashed}-{n}" for n in below])
    for n, c in below.items():
        yield from pages(c, f"{name} {n}")


def write(folder: Path) -> int:
    """Write all pages into a folder; gives their number."""
    folder.mkdir(parents=True, exist_ok=True)
    made = dict(pages(commands, "tidegate"))
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
    return len(made)


if __name__ == "__main__":
    print(f"{write(Path(sys.argv[1]))} man pages in {sys.argv[1]}")
