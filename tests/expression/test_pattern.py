from __future__ import annotations

import pytest

from tidegate.expression.pattern import ONE, like_parts


def test_wildcards_stand_apart_from_characters() -> None:
    assert like_parts("a%%_b", "\\") == ["a", None, ONE, "b"]
    assert like_parts("\\%\\_\\\\", "\\") == ["%", "_", "\\"]
    assert like_parts("!%%", "!") == ["%", None]


@pytest.mark.parametrize("pattern", ["a\\b", "a\\"])
def test_a_stray_escape_is_a_mistake(pattern: str) -> None:
    with pytest.raises(ValueError):
        like_parts(pattern, "\\")
