"""`tidegate generate`: writes rows of a generator to a file, or lists the generators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click

from tidegate.cli.option.option import pairs
from tidegate.cli.option.value import Whole
from tidegate.cli.text.answer import CommandAnswer, answers
from tidegate.clock import SystemClock
from tidegate.errors import OptionError
from tidegate.schema import type_name
from tidegate.sink.folder.file import table_file
from tidegate.source.generator import GeneratorInfo, described, make_generator, names
from tidegate.source.parameter import Parameters

FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
"""Output formats by file extension."""

CHUNK_ROWS = 2**18
DEFAULT_ROWS = 100_000


@click.command()
@click.argument("name", required=False)
@click.option(
    "--rows", type=Whole(), metavar="N", help=f"How many rows.  [default: {DEFAULT_ROWS}]"
)
@click.option("--out", metavar="FILE", help="The file to write; replaced whole if it is there.")
@click.option(
    "--format",
    "format_",
    metavar="parquet|csv|jsonl",
    help="Format of the file (default: by its extension).",
)
@click.option(
    "--param",
    "parameters",
    multiple=True,
    metavar="KEY=VALUE",
    help="A parameter of the generator, as after the ? of generator:NAME. Repeat for several.",
)
@click.option("--list", "listed", is_flag=True, help="Show generators, columns and parameters.")
@answers
def generate(
    name: str | None,
    rows: int | None,
    out: str | None,
    format_: str | None,
    parameters: tuple[str, ...],
    listed: bool,
) -> CommandAnswer:
    """Write rows of the generator NAME to a file; the same parameters give the same rows.

    A query can also read a generator directly: FROM 'generator:NAME?KEY=VALUE&...'.
    """
    if listed:
        _refuse_writing({"--rows": rows, "--out": out, "--format": format_, "--param": parameters})
        chosen = [described(one, f"generate {one}") for one in ([name] if name else names())]
        return CommandAnswer(
            [_facts(one) for one in chosen], lambda: "\n\n".join(map(_entry, chosen))
        )
    if name is None:
        raise OptionError(
            "generate", "needs the name of a generator", "none", f"There are: {', '.join(names())}."
        )
    rows = DEFAULT_ROWS if rows is None else rows
    if rows < 0:
        raise OptionError("--rows", "must not be negative", str(rows))
    given = Parameters(_query(rows, parameters), f"generate {name}")
    generator = make_generator(name, given)
    given.done()
    if out is None:
        raise OptionError(
            "--out", "needs a file to write", "none", f"Give one, as --out {name}.parquet."
        )
    clock = SystemClock()
    started = clock.now()
    path = Path(out)
    with table_file(path, _format(path, format_), generator.schema) as file:
        for start in range(0, rows, CHUNK_ROWS):
            stop = min(start + CHUNK_ROWS, rows)
            file.write(generator.read(generator.schema.names, start, stop))
    seconds, size = clock.now() - started, path.stat().st_size
    facts = {"file": out, "rows": rows, "bytes": size, "seconds": seconds, "time": generator.time}
    return CommandAnswer(
        facts,
        lambda: (
            f"{rows:,} rows of {name} in {out} ({size / 1e6:,.1f} MB) "
            f"after {seconds:.1f} s; its time column is {generator.time}"
        ),
        aside=True,
    )


def _refuse_writing(options: Mapping[str, object]) -> None:
    for name, value in options.items():
        if value not in (None, ()):
            must = "shows generators, and writes nothing"
            raise OptionError("--list", must, f"{name} beside it", f"Leave {name} or --list out.")


def _query(rows: int, parameters: Sequence[str]) -> str:
    """The parameters as the query part of a URI."""
    found = pairs("--param", parameters, "KEY=VALUE, for example seed=7")
    for name, value in found:
        if name == "rows":
            raise OptionError("--param", "cannot be rows", value, "Use --rows.")
        if name == "pace":
            raise OptionError(
                "--param",
                "cannot be pace, which is for streams that are read live",
                f"pace={value}",
                "Leave it out.",
            )
    return urlencode([("rows", rows), *found])


def _format(path: Path, asked: str | None) -> str:
    """The requested format, or that of the file's extension."""
    extensions = f".{asked.lower()}" if asked is not None else path.suffix.lower()
    if extensions in FORMATS:
        return FORMATS[extensions]
    if asked is not None:
        raise OptionError(
            "--format", "must be a known format", asked, "There are: parquet, csv, jsonl."
        )
    raise OptionError(
        str(path),
        "the extension must say the format",
        path.suffix or "none",
        f"Use one of {', '.join(FORMATS)}, or --format.",
    )


def _facts(generator: GeneratorInfo) -> dict[str, Any]:
    return {
        "name": generator.name,
        "summary": generator.summary,
        "time": generator.time,
        "columns": {field.name: type_name(field.type) for field in generator.schema},
        "parameters": {p.name: p.default for p in generator.parameters},
    }


def _entry(generator: GeneratorInfo) -> str:
    """A generator with its columns and parameters, one per line."""
    lines = [f"{generator.name}: {generator.summary}", "  columns"]
    for field in generator.schema:
        note = "  event time" if field.name == generator.time else ""
        lines.append(f"    {field.name:<18}{type_name(field.type)}{note}")
    lines.append("  parameters")
    for parameter in generator.parameters:
        shown = f"{parameter.name}={parameter.default}"
        lines.append(f"    {shown:<31}{parameter.meaning}".rstrip())
    return "\n".join(lines)
