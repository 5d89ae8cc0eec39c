"""Looking again at a followed folder: what is new, and what looking costs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.source.check import fresh
from tidegate.source.listing import paths_of
from tidegate.source.notices import Notices
from tidegate.source.watch import Watch
from tidegate.testing import ManualClock


@pytest.fixture(params=["told", "listed"])
def told(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the system tells what happens in folders; where it cannot, both are the same."""
    if request.param == "listed":
        monkeypatch.setattr(Notices, "open", classmethod(lambda cls: None))
    return bool(request.param == "told" and Notices.open() is not None)


def touch(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return str(path)


def looked(watch: Watch, folder: Path) -> list[str]:
    return sorted(os.path.relpath(p, folder) for p in watch.look())


def test_new_files_are_found_once(tmp_path: Path, told: bool) -> None:
    for name in ("a.csv", "sub/b.csv", "_side/x.csv", ".hidden/y.csv", "_z.csv"):
        touch(tmp_path / name)
    watch = Watch(str(tmp_path))
    assert looked(watch, tmp_path) == ["a.csv", "sub/b.csv"]
    assert looked(watch, tmp_path) == []
    touch(tmp_path / "sub" / "deep" / "c.csv")
    touch(tmp_path / "d.csv")
    assert looked(watch, tmp_path) == ["d.csv", "sub/deep/c.csv"]
    assert watch.has(str(tmp_path / "sub" / "b.csv"))
    assert not watch.has(str(tmp_path / "sub" / "z.csv"))


def test_a_name_whose_file_was_seen_to_be_gone_is_new_again(tmp_path: Path, told: bool) -> None:
    path = Path(touch(tmp_path / "sub" / "a.csv"))
    watch = Watch(str(tmp_path))
    watch.look()
    path.unlink()
    assert looked(watch, tmp_path) == []
    assert not watch.has(str(path))
    touch(path)
    assert looked(watch, tmp_path) == ["sub/a.csv"]
    path.unlink()
    path.parent.rmdir()
    assert looked(watch, tmp_path) == []
    touch(path)
    assert looked(watch, tmp_path) == ["sub/a.csv"]


@pytest.mark.parametrize("pattern", ["*.csv", "[ab]*", "*/*.csv", "**/*.csv", "**"])
def test_a_glob_finds_what_it_matches(tmp_path: Path, pattern: str, told: bool) -> None:
    for name in ("a.csv", "b/1.csv", "b/2.txt", "c.csv", ".a.csv", "_a.csv"):
        touch(tmp_path / name)
    path = str(tmp_path / pattern)
    watch = Watch(path)
    assert sorted(watch.look()) == sorted(paths_of(path))
    touch(tmp_path / "a2.csv")
    touch(tmp_path / "b" / "3.csv")
    fresh_ones = {str(tmp_path / "a2.csv"), str(tmp_path / "b" / "3.csv")}
    assert set(watch.look()) == set(paths_of(path)) & fresh_ones


def test_a_folder_that_did_not_change_is_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Notices, "open", classmethod(lambda cls: None))
    listed: list[str] = []
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: listed.append(path) or listdir(path))
    touch(tmp_path / "a.csv")
    clock = ManualClock()
    watch = Watch(str(tmp_path), clock)
    watch.look()
    clock.sleep(5)
    watch.look()
    assert len(listed) == 2, "a file may have come within the tick in which it was listed first"
    clock.sleep(5)
    for _ in range(10):
        assert watch.look() == []
    assert len(listed) == 2
    touch(tmp_path / "b.csv")
    assert looked(watch, tmp_path) == ["b.csv"]
    clock.sleep(5)
    watch.look()
    clock.sleep(31)
    watch.look()
    assert len(listed) == 5, "now and then it is listed, whatever its time of change says"


def test_a_folder_whose_time_of_change_never_changes_is_listed_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Notices, "open", classmethod(lambda cls: None))
    clock = ManualClock()
    watch = Watch(str(tmp_path), clock)
    for number in range(4):
        touch(tmp_path / f"{number}.csv")
        os.utime(tmp_path, ns=(0, 1_700_000_000_000_000_000))
        assert looked(watch, tmp_path) == [f"{number}.csv"]
        clock.sleep(10)


def series_is_seen(root: Path, data: st.DataObject) -> None:
    root.mkdir()
    names = ["a", "b", "s/a", "s/b", "s/t/a"]
    watch, there = Watch(str(root)), set[str]()
    for _ in range(data.draw(st.integers(1, 6))):
        wanted = set(data.draw(st.lists(st.sampled_from(names), unique=True)))
        for name in there - wanted:
            (root / name).unlink()
        for name in wanted - there:
            touch(root / name)
        assert looked(watch, root) == sorted(wanted - there)
        there = wanted
        assert all(watch.has(str(root / name)) == (name in there) for name in names)


@settings(max_examples=40)
@given(st.data())
def test_any_series_of_changes_is_seen(folder: Path, data: st.DataObject) -> None:
    series_is_seen(fresh(folder, "watched"), data)


@settings(max_examples=40)
@given(st.data())
def test_any_series_of_changes_is_seen_by_listing(folder: Path, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Notices, "open", classmethod(lambda cls: None))
        series_is_seen(fresh(folder, "watched"), data)


def test_what_is_told_is_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notices = Notices.open()
    is_told = notices is not None and notices.follow(str(tmp_path))
    listed: list[str] = []
    listdir = os.listdir
    touch(tmp_path / "a.csv")
    watch = Watch(str(tmp_path))
    watch.look()
    monkeypatch.setattr(os, "listdir", lambda path: listed.append(path) or listdir(path))
    for number in range(50):
        touch(tmp_path / f"{number}.csv")
        assert looked(watch, tmp_path) == [f"{number}.csv"]
    (tmp_path / "7.csv").unlink()
    assert looked(watch, tmp_path) == []
    assert not watch.has(str(tmp_path / "7.csv"))
    assert bool(listed) != is_told


def test_notices_that_were_lost_are_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch(tmp_path / "s" / "a.csv")
    watch = Watch(str(tmp_path))
    watch.look()
    touch(tmp_path / "s" / "b.csv")
    with monkeypatch.context() as patch:
        patch.setattr(Notices, "take", lambda self: None)
        assert looked(watch, tmp_path) == ["s/b.csv"]
    assert looked(watch, tmp_path) == []


def test_a_folder_that_is_moved_away_and_back_holds_nothing_new(tmp_path: Path, told: bool) -> None:
    folder = tmp_path / "in"
    touch(folder / "a.csv")
    touch(folder / "s" / "b.csv")
    watch = Watch(str(folder))
    watch.look()
    for moved in (folder, folder / "s"):
        moved.rename(tmp_path / "away")
        (tmp_path / "away").rename(moved)
        assert looked(watch, folder) == []
    touch(folder / "s" / "c.csv")
    touch(folder / "d.csv")
    assert looked(watch, folder) == ["d.csv", "s/c.csv"]


def test_another_folder_in_the_place_of_one(tmp_path: Path, told: bool) -> None:
    folder = tmp_path / "in"
    touch(folder / "a.csv")
    watch = Watch(str(folder))
    watch.look()
    folder.rename(tmp_path / "away")
    touch(folder / "b.csv")
    assert looked(watch, folder) == ["b.csv"]
    touch(folder / "c.csv")
    touch(tmp_path / "away" / "x.csv")
    assert looked(watch, folder) == ["c.csv"]


def test_a_followed_folder_may_be_gone_for_a_while(tmp_path: Path, told: bool) -> None:
    folder = tmp_path / "in"
    touch(folder / "a.csv")
    watch = Watch(str(folder))
    watch.look()
    (folder / "a.csv").unlink()
    folder.rmdir()
    assert watch.look() == []
    touch(folder / "a.csv")
    assert looked(watch, folder) == ["a.csv"]
