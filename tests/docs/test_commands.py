"""Every command of a page runs, in its order, and prints what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.block import ROOT, blocks
from tests.docs.console import SPARK, Command, File, agrees, run, steps

TUTORIAL = "docs/tutorial.md"
PAGES = {
    TUTORIAL: 33,
    "docs/approximation.md": 1,
    "docs/cli.md": 1,
    "docs/compare.md": 1,
    "docs/cutover.md": 6,
    "docs/dashboard.md": 2,
    "docs/partitioning.md": 1,
    "docs/proof.md": 5,
    "docs/replay.md": 4,
    "docs/shedding.md": 2,
    "docs/why.md": 2,
}
"""The pages whose commands need nothing else, and how many of these run without Spark."""
ELSEWHERE = {"docs/determinism.md", "docs/files.md", "docs/lakehouse.md", "docs/postgres.md"}
"""Pages with commands that tests of their own run."""


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
