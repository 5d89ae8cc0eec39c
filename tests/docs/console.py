"""Console blocks of a page run as a reader would run them, and their output set beside the page's.

A block holds commands (`$ `, continued by `> `) and what each of them prints. `tidegate` and
`python` run in this process, for speed; everything else goes to bash. Before a block may stand a
comment that says how it is compared: `<!-- numbers vary -->` or `<!-- needs Spark -->`.
"""

from __future__ import annotations

import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from tests.docs.block import ROOT
from tidegate.cli.main import invoke

VARY, SPARK = "numbers vary", "needs Spark"
_FENCE = re.compile(r"(?:^<!-- ([\w ]+) -->\n\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_VOLATILE = (
    (re.compile(r"\bafter [\d.]+ s;"), "after # s;"),
    (re.compile(r"[\d.,]+ s, [\d,]+ rows/s"), "# s, # rows/s"),
    (re.compile(r"\bp(\d\d) [\d,]+ ms"), r"p\1 # ms"),
    (re.compile(r"; the first [\d.,]+ m?s"), "; the first # ms"),
    (re.compile(r"switched in [\d.]+ ms"), "switched in # ms"),
    (re.compile(r"switch_ms [\d.]+"), "switch_ms #"),
    (re.compile(r"imbalance [\d.]+"), "imbalance #"),
    (re.compile(r"serial [\d.]+%.*"), "serial #"),
    (re.compile(r"\S+/python -m tidegate\b"), "tidegate"),
    (re.compile(r"(?<![\w.])/\S*/(?=\w+\b)"), "/path/to/"),
    (re.compile(r"\bnewest link [0-9a-f]{64}"), "newest link #"),
)
_MEASURED = (
    (re.compile(r"\d[\d.,:]*(?: (?:ns|us|ms|s|KiB|MiB)\b)?"), "#"),
    (re.compile(r"\bto more\b"), "to #"),
    (re.compile(r"(?<=\S)  +"), "  "),  # columns are as wide as their numbers
)
"""What differs where a page says that numbers vary."""


@dataclass(frozen=True)
class Command:
    """One command of a block, and what the page says that it prints."""

    text: str
    shown: tuple[str, ...]
    mark: str | None


@dataclass(frozen=True)
class File:
    """A block whose first line is a comment with a file's name."""

    name: str
    text: str


def steps(page: str) -> list[Command | File]:
    """The files and commands of a page in the order of reading."""
    found: list[Command | File] = []
    for mark, language, body in _FENCE.findall((ROOT / page).read_text(encoding="utf-8")):
        if language == "console":
            found += _commands(body, mark or None)
        elif name := re.match(r"(?:--|#) (\w+\.(?:sql|py))\n", body):
            found.append(File(name[1], body))
    return found


def _commands(body: str, mark: str | None) -> list[Command]:
    found: list[tuple[str, list[str]]] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> ") and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", [])
        else:
            found[-1][1].append(line)
    return [Command(text, tuple(shown), mark) for text, shown in found]


def run(command: Command) -> str:
    """What a command prints, on both channels, as a terminal would show it."""
    words = shlex.split(command.text)
    plain = not set("|&;<\n") & set(command.text)
    if words[0] in ("tidegate", "python") and plain:
        return _run_here(words)
    done = subprocess.run(
        ["bash", "-c", command.text],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={
            **os.environ,
            "LC_ALL": "C.UTF-8",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        },
        check=False,
    )
    return done.stdout


def _run_here(words: list[str]) -> str:
    terminal = io.StringIO()
    with ExitStack() as stack:
        out: io.TextIOBase = terminal
        if ">" in words:
            at = words.index(">")
            out = stack.enter_context(open(words[at + 1], "w", encoding="utf-8"))
            words = words[:at]
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(terminal))
        if words[0] == "python":
            runpy.run_path(words[1], run_name="__main__")
        else:
            invoke(words[1:])
    return terminal.getvalue()


def agrees(command: Command, printed: str) -> bool:
    """Whether a command printed what the page shows; `...` stands for any lines."""
    shown, got = (_normal(lines, command.mark) for lines in (command.shown, printed.splitlines()))
    pattern = "".join("(?:.*\n)*" if line == "..." else re.escape(f"{line}\n") for line in shown)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in got)) is not None


def _normal(lines: list[str] | tuple[str, ...], mark: str | None) -> list[str]:
    text = [line.rstrip() for line in lines]
    for volatile, plain in _VOLATILE:
        text = [volatile.sub(plain, line) for line in text]
    if mark == VARY:
        for volatile, plain in _MEASURED:
            text = [volatile.sub(plain, line) for line in text]
    return text
