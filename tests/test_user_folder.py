from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.storage.user_folder import user_folder


@pytest.mark.parametrize("given", [None, "", "state", "~/state"])
def test_without_an_absolute_path_it_is_below_the_home(
    given: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    if given is None:
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_STATE_HOME", given)
    assert user_folder() == tmp_path / ".local" / "state" / "tidegate"


def test_an_absolute_path_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert user_folder() == tmp_path / "tidegate"
