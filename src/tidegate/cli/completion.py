"""Installs completion in a shell, as one line of the file that the shell starts with."""

from __future__ import annotations

import os
from pathlib import Path

import click

from tidegate.errors import OptionError

LINES = {
    "bash": ("~/.bashrc", 'eval "$(_TIDEGATE_COMPLETE=bash_source tidegate)"'),
    "zsh": (
        "~/.zshrc",
        'autoload -Uz compinit && compinit; eval "$(_TIDEGATE_COMPLETE=zsh_source tidegate)"',
    ),
    "fish": ("~/.config/fish/config.fish", "_TIDEGATE_COMPLETE=fish_source tidegate | source"),
}
"""By shell its start file and the line that goes there."""


def install(context: click.Context, _: click.Parameter, shell: str | None) -> None:
    """Called for --install-completion: adds the line, unless the file has it, and ends the command.

    Raises OptionError if the file cannot be written.
    """
    if shell is None or context.resilient_parsing:
        return
    name, line = LINES[shell]
    path = Path(os.path.expanduser(name))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if line not in text.splitlines():
            begin = "\n" if text and not text.endswith("\n") else ""
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{begin}{line}\n")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(
            "--install-completion",
            f"must be able to add a line to {path}",
            str(error),
            f"Add it yourself: {line}",
        ) from error
    click.echo(f"{path} completes tidegate in every {shell} that starts from now on")
    context.exit()
