"""The `tidegate` command: its subcommands, and the exit codes of errors."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from tidegate.cli import completion
from tidegate.cli.exit_code import EXIT_FAILED, EXIT_MISTAKE
from tidegate.cli.line import lines_as_text, say, say_error, say_summary
from tidegate.cli.option.value import in_shape
from tidegate.cli.stop import EXIT_STOPPED, Stopped, leave
from tidegate.errors import TidegateError, UserError
from tidegate.execute.within_memory import exceeded
from tidegate.version import __version__

COMMANDS = {
    "run": "Run a query over its streams.",
    "sql": "Ask for statements, and show the first rows of each query.",
    "ctl": "Look at a query that runs, and change its instances.",
    "dashboard": "Show queries in a browser, also such that have ended.",
    "explain": "Print the plan of a query, and where each part runs.",
    "compare": "Run two queries over the same input, and list the rows that differ.",
    "audit": "Run a query of Spark's streaming under several cuts, and list the rows that move.",
    "plan": "Propose how many instances a query needs, from its first rows.",
    "calibrate": "Measure what the tuples of a query cost here.",
    "simulate": "Predict throughput and latency of a join over time.",
    "demo": "Show a query at work.",
    "generate": "Write rows of a generator to a file.",
    "report": "Write one page with all pictures of a run, to keep or to send.",
    "state": "Look inside a checkpoint; changes nothing.",
    "digest": "Show one number for the row sequence of an output.",
    "verify": "Run a query again, and compare it with its checkpoint and output.",
    "replay": "Run one batch again, with the state that it began with.",
    "why": "List the input tuples that a row of an output was made of.",
}
"""Each command is the attribute of that name in the module of that name in `command`."""

OWN_PROCESS = object()
"""Tells `invoke` that this command has the process for itself."""


@contextmanager
def _no_collection() -> Iterator[None]:
    """Turns garbage collection off: imports create none, and it would take a tenth of the start."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class _Commands(click.Group):
    """Imports a command only when called; one without a query starts without the engine."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        # All of them for a name that is none: click says which is near.
        asked = (cmd_name,) if cmd_name in COMMANDS else tuple(COMMANDS)
        with _no_collection():
            if ctx.find_root().obj is OWN_PROCESS:
                from tidegate.no_pandas import leave_pandas_out

                leave_pandas_out()
            for name in asked:
                self.add_command(getattr(import_module(f"tidegate.cli.command.{name}"), name))
        return super().get_command(ctx, cmd_name)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names only: completion must not wait for a command's import."""
        if incomplete[:1] == "-":
            return click.Command.shell_complete(self, ctx, incomplete)
        found = (item for item in COMMANDS.items() if item[0].startswith(incomplete))
        return [CompletionItem(name, help=text) for name, text in found]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "--version", "-V", prog_name="tidegate")
@click.option(
    "--install-completion",
    type=click.Choice([*completion.LINES]),
    expose_value=False,
    is_eager=True,
    callback=completion.install,
    help="Complete commands, options and file names with Tab in this shell, and exit.",
)
@click.pass_context
def commands(context: click.Context) -> None:
    """Continuous queries over streams, on Apache Spark or in one process.

    Exit codes: 0 done, 1 a failure while running (run again to continue), 2 a mistake in the query
    or the options (nothing was started), 130 stopped by Ctrl-C or a signal (run again to continue).
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and exits with its code."""
    leave(invoke(arguments, OWN_PROCESS))


def invoke(arguments: Sequence[str] | None = None, process: object = None) -> int:
    """Runs the command line and returns its exit code; errors are one line on standard error."""
    with lines_as_text():
        return _invoke(arguments, process)


def _invoke(arguments: Sequence[str] | None, process: object) -> int:
    try:
        code = commands.main(arguments, prog_name="tidegate", standalone_mode=False, obj=process)
    except UserError as mistake:
        return _say(mistake, EXIT_MISTAKE)
    except TidegateError as failure:
        return _say(failure, EXIT_FAILED)
    except MemoryError as failure:
        return _say(exceeded("this process", failure), EXIT_FAILED)
    except click.ClickException as mistake:
        return _say(in_shape(mistake), EXIT_MISTAKE)
    except (click.Abort, KeyboardInterrupt):
        say("interrupted")
        return EXIT_STOPPED
    except Stopped as stopped:
        say_summary(stopped.summary)
        return EXIT_STOPPED
    except BrokenPipeError:
        sys.stderr.close()
        return EXIT_FAILED
    return code if isinstance(code, int) else 0


def _say(error: object, code: int) -> int:
    say_error(error)
    return code
