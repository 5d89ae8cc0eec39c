"""Every command of a page runs, in its order, and prints what the page shows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.docs.block import ROOT, blocks
from tests.docs.console import SPARK, Command, File, agrees, run, steps
from tidegate.cli.main import commands

TUTORIAL = "docs/tutorial.md"
PAGES = {
    TUTORIAL: 33,
    "docs/approximation.md": 1,
    "docs/cli.md": 5,
    "docs/compare.md": 1,
    "docs/cutover.md": 7,
    "docs/dashboard.md": 2,
    "docs/generators.md": 2,
    "docs/partitioning.md": 1,
    "docs/planning.md": 4,
    "docs/proof.md": 5,
    "docs/replay.md": 4,
    "docs/run/changing.md": 6,
    "docs/shedding.md": 2,
    "docs/signing.md": 4,
    "docs/why.md": 2,
}
"""The pages whose commands need nothing else, and how many of these run without Spark."""
ELSEWHERE = {"docs/determinism.md", "docs/files.md", "docs/lakehouse.md", "docs/postgres.md"}
"""Pages with commands that tests of their own run."""


UNFOLLOWED = ("sh", "synopsis")
"""Commands that need what a test has not, as a cluster, and how a command is called: their names
and options must be there."""
IS_COMMAND = re.compile(r"(?:\$ )?(?:\S*/bin/)?(?:tidegate|python -m|pip|make)(?: |$)")
FENCE = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def fences(path: Path) -> list[tuple[str, str]]:
    """The language and the text of every block of a page."""
    found = FENCE.findall(path.read_text(encoding="utf-8"))
    return [(language.strip(), body) for _, language, body in found]


def told(words: list[str]) -> list[str]:
    """What a command of Tidegate has not, of the words behind its name."""
    command: click.Command = commands
    while isinstance(command, click.Group) and words and words[0].isalpha():
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            return [words[0]]
        command, words = found, words[1:]
        if isinstance(command, click.Group) and command.name == "ctl":
            words = words[1:]  # the checkpoint
    known = {o for p in command.params for o in (*p.opts, *p.secondary_opts)} | {"--help"}
    return [w for w in words if re.match(r"--?[a-z]", w) and w.partition("=")[0] not in known]


def missing(line: str) -> list[str]:
    """What a line of a shell names that is not there; comments and what is not ours may stand."""
    first, *words = shlex.split(line.removeprefix("$ "), comments=True) or [""]
    name = Path(first).name
    if name == "tidegate":
        return told(words)
    if name == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        return [w for w in words if "=" not in w and not re.search(rf"^{w}:", makefile, re.M)]
    if name == "python" and words[0] != "-m":
        return [words[0]] if not (ROOT / words[0]).is_file() else []
    return []


PROSE = sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))


def unmarked() -> Iterator[str]:
    """Commands of blocks that are neither followed nor say that they are not."""
    for path in PROSE:
        for language, body in fences(path):
            if language in ("", "text"):
                for line in body.splitlines():
                    if IS_COMMAND.match(line):
                        yield f"{path.relative_to(ROOT)}: {line}"


def follow(page: str, on_spark: bool) -> int:
    """Do in the current folder what a page says; gives the number of commands compared."""
    compared = 0
    for step in steps(page):
        if isinstance(step, File):
            Path(step.name).write_text(step.text, encoding="utf-8")
        elif step.mark != SPARK or on_spark:
            printed = run(step)
            assert agrees(step, printed), f"$ {step.text}\nshown: {step.shown}\nprinted:\n{printed}"
            compared += 1
    return compared


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert follow(page, on_spark=False) == PAGES[page]


def test_every_page_with_commands_is_followed() -> None:
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "docs").rglob("*.md")
        if blocks(str(path.relative_to(ROOT)), "console")
    }
    assert found == {*PAGES, *ELSEWHERE}


def test_every_command_is_followed_or_its_block_says_that_it_is_not() -> None:
    assert [*unmarked()] == [], f"write ```console, or one of {UNFOLLOWED}"


def test_commands_that_are_not_followed_are_there_with_their_options() -> None:
    looked_at = 0
    for path in PROSE:
        for language, body in fences(path):
            if language in UNFOLLOWED:
                for line in re.sub(r"\\\n\s*", " ", body).splitlines():
                    if "[" not in line:  # a synopsis; the command line has made it
                        assert missing(line) == [], f"{path.relative_to(ROOT)}: {line}"
                        looked_at += 1
    assert looked_at > 30


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("tidegate run q.sql --out x --switch 3=4  # a word", []),
        ("tidegate run q.sql --outt x", ["--outt"]),
        ("tidegate walk q.sql", ["walk"]),
        ("$ .venv/bin/tidegate ctl ckpt scale 4 --whyever x", ["--whyever"]),
        ("make demo CORES=2", []),
        ("make nothing", ["nothing"]),
        ("python benchmarks/nothing.py --x", ["benchmarks/nothing.py"]),
        ("curl http://127.0.0.1:9464/metrics", []),
    ],
)
def test_what_is_not_there_is_found(line: str, wrong: list[str]) -> None:
    assert missing(line) == wrong


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (("a", "b"), "a\nb\n", True),
        (("a", "..."), "a\nb\nc\n", True),
        (("...", "c"), "a\nb\nc\n", True),
        (("a", "c"), "a\nb\nc\n", False),
        (("a",), "a\nb\n", False),
        ((), "", True),
        (("1 batch in 0.04 s, 320,051 rows/s",), "", False),
        (("x after 0.1 s; y 12",), "x after 12.0 s; y 12", True),
        (("x after 0.1 s; y 12",), "x after 0.1 s; y 13", False),
    ],
)
def test_how_output_is_compared(shown: tuple[str, ...], printed: str, same: bool) -> None:
    assert agrees(Command("", shown, None), printed) is same


def test_numbers_vary_where_the_page_says_so() -> None:
    assert agrees(
        Command("", ("batch 21, 3 segments",), "numbers vary"), "batch 1,024, 30 segments"
    )
    assert not agrees(Command("", ("batch 21",), "numbers vary"), "epoch 21")
