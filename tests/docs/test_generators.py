"""The page about generators names every one of them, with its columns, parameters and defaults."""

from __future__ import annotations

import pytest

from tests.docs.block import ROOT
from tidegate.source.generator import described, names

PAGE = (ROOT / "docs" / "generators.md").read_text(encoding="utf-8")


def cells(name: str, width: int) -> list[str]:
    """The row of a name in the table that is so many columns wide."""
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in PAGE.splitlines()]
    (found,) = [r for r in rows if len(r) == width and f"`{name}`" in r[0].split(", ")]
    return found


@pytest.mark.parametrize("name", names())
def test_columns_and_defaults_are_as_the_page_says(name: str) -> None:
    about = described(name, "")
    _, _, time, columns = cells(name, 4)
    assert time == f"`{about.time}`"
    assert columns == ", ".join(f"`{column}`" for column in about.schema.names)
    defaults = {p.name: p.default for p in about.parameters}
    _, rate, start, keys, skew, burst = cells(name, 6)
    assert (rate, start) == (defaults["rate"], defaults["start"])
    assert keys.split()[0] == defaults.get("keys", "none")
    assert (skew, burst) == (defaults.get("skew", "none"), defaults.get("burst", "none"))
    for parameter in about.parameters:
        assert cells(parameter.name, 2)
