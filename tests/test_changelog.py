"""A user reads the changelog in two minutes: it has 60 lines at most."""

from __future__ import annotations

from pathlib import Path

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"
MOST_LINES = 60


def test_the_changelog_is_short() -> None:
    lines = CHANGELOG.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# Changelog"
    assert 20 < len(lines) <= MOST_LINES
