"""The gallery: twenty examples, whose pictures are what they give when they run."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tools import drawings, gallery
from tools.generated import stale

from tests.docs.block import ROOT


def test_there_are_twenty_each_with_an_idea_of_its_own() -> None:
    found = gallery.gallery()
    assert len(found) == len({one.name for one in found}) == len({one.idea for one in found}) == 20
    for one in found:
        assert (ROOT / "docs" / one.page.partition("#")[0]).exists(), one.page
        assert (gallery.EXAMPLES / one.path).exists(), one.path


def test_page_and_pictures_are_what_the_examples_give() -> None:
    assert stale(gallery.made) == [], "run `make gallery`"


def test_drawings_are_what_their_program_draws() -> None:
    assert stale(drawings.made) == [], "run `make reference`"


@pytest.mark.parametrize("folder", ["gallery", "drawings"])
def test_pictures_say_what_they_show_and_are_small(folder: str) -> None:
    paths: list[Path] = sorted((ROOT / "docs" / folder).glob("*.svg"))
    assert len(paths) >= 6
    for path in paths:
        assert path.stat().st_size < 16_000, path
        title = ET.parse(path).getroot().find("{http://www.w3.org/2000/svg}title")
        assert title is not None
        assert title.text, path
