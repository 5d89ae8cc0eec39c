"""How much there is to read: pages for users have 45,000 words at most, a how-to page 600.

Counted are the pages in the menu of the site under Overview, Tutorial, Gallery, How-to, Reference
and Ideas, generated reference included. A word is what stands between blanks and has a letter or a
digit: in prose, headings, lists, cells of tables, links and the alternative text of pictures; code
within a line counts too.

Not counted are blocks of code, comments, addresses of links, and the shelves that users need not
read: Inside (how it is built), Measured, Beside the papers, and the Archive of decisions. README,
CHANGELOG and CONTRIBUTING are not in the menu, so they are not counted either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.docs.block import ROOT

FOR_USERS = ("Overview", "Tutorial", "Gallery", "How-to", "Reference", "Ideas")
APART = ("Inside", "Measured", "Beside the papers", "Archive")
MOST_WORDS = 45_000
MOST_OF_HOW_TO = 600


def words(text: str) -> int:
    """The words of a page that a reader sees."""
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return sum(bool(re.search(r"\w", word)) for word in re.sub(r"https?://\S+", "", text).split())


def pages(shelf: Any) -> Iterator[str]:
    """The pages of a shelf of the menu, and of the shelves in it."""
    if isinstance(shelf, str):
        yield shelf
    else:
        for one in shelf.values() if isinstance(shelf, dict) else shelf:
            yield from pages(one)


def shelves() -> dict[str, list[str]]:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    menu = yaml.safe_load(text)["nav"]
    return {name: list(pages(below)) for shelf in menu for name, below in shelf.items()}


def count(page: str) -> int:
    return words((ROOT / "docs" / page).read_text(encoding="utf-8"))


def test_every_shelf_is_counted_or_named_as_apart() -> None:
    assert sorted(shelves()) == sorted([*FOR_USERS, *APART])


def test_pages_for_users_are_short_enough_to_read() -> None:
    found = shelves()
    total = sum(count(page) for shelf in FOR_USERS for page in found[shelf])
    assert 20_000 < total <= MOST_WORDS, f"{total:,} words"


@pytest.mark.parametrize("page", shelves()["How-to"])
def test_a_how_to_is_short(page: str) -> None:
    assert count(page) <= MOST_OF_HOW_TO


def test_what_counts_as_a_word() -> None:
    text = "One [two](three.md) `four` | five |\n\n```sql\nSELECT six\n```\n<!-- seven --> - eight"
    assert words(text) == 5
