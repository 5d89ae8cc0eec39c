"""`tidegate sql`: a shell for statements that shows the first rows of each query."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

import click

from tidegate.cli.exit_code import EXIT_FAILED, EXIT_MISTAKE
from tidegate.cli.option.option import options, settings, stream_options
from tidegate.cli.option.value import Whole
from tidegate.cli.text.answer import JSON
from tidegate.errors import TidegateError, UserError
from tidegate.execute.within_memory import exceeded
from tidegate.json_text import json_text
from tidegate.session.look import Preview
from tidegate.session.place import Place
from tidegate.session.shell import SqlShell, is_command
from tidegate.sql.statement import divided

Form = Callable[[str | Preview], str]
"""Formats an answer."""

_QUIT = (".quit", ".exit", "\\q", "quit", "exit")


@click.command()
@options("--stream", "--time", "--master", "--conf")
@click.option(
    "--rows",
    type=Whole(least=1),
    default=20,
    show_default=True,
    metavar="N",
    help="How many rows of a result are shown.",
)
@click.option(
    JSON, "as_json", is_flag=True, help="Print each answer as an object of JSON, on a line."
)
def sql(
    streams: tuple[str, ...],
    times: tuple[str, ...],
    master: str | None,
    conf: tuple[str, ...],
    rows: int,
    as_json: bool,
) -> None:
    """Ask for statements that end with ; and show the first rows of each SELECT.

    Every query reads its input from the beginning, in this process; Spark is started only for
    expressions that need it, and nothing is kept but the streams of CREATE STREAM. .help lists
    what else can be typed. Tab completes streams, columns, functions and keywords. Ctrl-C stops the
    query at hand, Ctrl-D ends the shell. Without a terminal, statements are read from standard
    input, and the exit code is that of the first mistake.
    """
    uris, columns = stream_options(streams, times)
    place = Place.at(master, conf=settings(conf))
    shell = SqlShell(place, uris=uris, times=columns, rows=rows)
    form = _as_json if as_json else str
    if sys.stdin.isatty() and sys.stdout.isatty():
        _ask(shell, form)
    elif code := _read(shell, sys.stdin, form):
        raise click.exceptions.Exit(code)


def _as_json(answer: str | Preview) -> str:
    facts = answer.as_dict() if isinstance(answer, Preview) else {"text": answer}
    return json_text(facts)


def _ask(shell: SqlShell, form: Form) -> None:
    from tidegate.cli.prompt import prompt_session

    prompt = prompt_session(_ended, shell.columns)
    click.echo("Statements end with ; and .help lists the commands. Ctrl-D ends.")
    while True:
        try:
            text = prompt.prompt()
            if _is_quit(text):
                return
            _read(shell, text.splitlines(keepends=True), form)
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
        except EOFError:
            return


def _read(shell: SqlShell, lines: Iterable[str], form: Form) -> int:
    """Answers statements until the lines end; returns the code of the first mistake, else 0."""
    codes, typed = [0], ""
    for line in lines:
        typed += line
        if not _ended(typed):
            continue
        if _is_quit(typed):
            break
        statements = [typed.strip()] if is_command(typed) else divided(typed)[0]
        codes += [_answer(shell, statement, form) for statement in statements]
        typed = ""
    else:
        codes.append(_answer(shell, typed, form))
    return next(filter(None, codes), 0)


def _ended(typed: str) -> bool:
    """Whether the input is complete: nothing, a command, or whole statements."""
    return is_command(typed) or _is_quit(typed) or not divided(typed)[1]


def _is_quit(typed: str) -> bool:
    return typed.strip().rstrip("; ").lower() in _QUIT


def _answer(shell: SqlShell, statement: str, form: Form) -> int:
    """Prints the answer of a statement, or its mistake in one line; returns the exit code."""
    try:
        if answer := shell.answer(statement):
            click.echo(form(answer))
        return 0
    except TidegateError as mistake:
        click.echo(f"tidegate: {mistake}", err=True)
        return EXIT_MISTAKE if isinstance(mistake, UserError) else EXIT_FAILED
    except MemoryError as failure:
        click.echo(f"tidegate: {exceeded('this process', failure)}", err=True)
        return EXIT_FAILED
