"""The `tidegate` command, between a shell and the runtime."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from tidegate.cli.calibrate import calibrate
from tidegate.cli.ctl import ctl
from tidegate.cli.demo import demo
from tidegate.cli.explain import explain
from tidegate.cli.generate import generate
from tidegate.cli.plan import plan
from tidegate.cli.run import run
from tidegate.cli.state import state
from tidegate.cli.stop import EXIT_STOPPED, Stopped, leave
from tidegate.cli.value import in_shape
from tidegate.errors import TidegateError, UserError
from tidegate.version import __version__

EXIT_FAILED = 1
EXIT_MISTAKE = 2


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "--version", "-V", prog_name="tidegate")
@click.pass_context
def commands(context: click.Context) -> None:
    """Continuous queries over streams, on Apache Spark or in one process.

    Exit codes: 0 done, 1 a failure while running (run again to continue), 2 a mistake in the query
    or the options (nothing was started), 130 stopped by Ctrl-C or a signal (run again to continue).
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in (run, ctl, explain, plan, calibrate, demo, generate, state):
    commands.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    leave(invoke(arguments))


def invoke(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; messages are one line on standard error."""
    try:
        code = commands.main(arguments, prog_name="tidegate", standalone_mode=False)
    except UserError as mistake:
        return _say(mistake, EXIT_MISTAKE)
    except TidegateError as failure:
        return _say(failure, EXIT_FAILED)
    except click.ClickException as mistake:
        return _say(in_shape(mistake), EXIT_MISTAKE)
    except (click.Abort, KeyboardInterrupt):
        return _say("interrupted", EXIT_STOPPED)
    except Stopped as stopped:
        click.echo(stopped.summary.text(), err=True)
        return EXIT_STOPPED
    except BrokenPipeError:
        sys.stderr.close()
        return EXIT_FAILED
    return code if isinstance(code, int) else 0


def _say(message: object, code: int) -> int:
    click.echo(f"tidegate: {message}", err=True)
    return code
