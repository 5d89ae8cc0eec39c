"""Files that are listed and opened one by one: what is known of them, kept and let go."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.source.check import all_rows, fresh
from tests.source.test_files import connect, values, write
from tidegate.batch import MAX_US, MIN_US
from tidegate.errors import GateError
from tidegate.source import files
from tidegate.source.files import FilesConnector
from tidegate.source.text.source import TextSource

SECOND_US = 1_000_000
cells = st.sampled_from(
    ["1970-01-01T00:00:01", "1970-01-01T00:00:02Z", "1970-01-01", "", "never", '"1970-01-03"', '"x']
)
rows = st.lists(st.tuples(cells, st.sampled_from(["1", "", '"a\nb"', "x,y"])), max_size=3)


def names(found: list[files.ListedSource]) -> list[str]:
    return [Path(f.id).name for f in found]


@settings(max_examples=max(60, settings().max_examples))
@given(st.lists(rows, min_size=1, max_size=5), st.booleans())
def test_a_text_file_is_listed_with_the_time_of_its_first_row(
    folder: Path, contents: list[list[tuple[str, str]]], closed: bool
) -> None:
    """Whatever is wrong with the first rows of other files; MIN_US where it has no time."""
    place = fresh(folder, "texts")
    good = ["1970-01-01T00:00:09,word"]
    for number, drawn in enumerate([[], *contents]):
        lines = [",".join(line) for line in drawn]
        lines += good * (2 * len(lines) + 1) if lines or not number else []
        write(place / f"{number}.csv", "\n".join(["t,a", *lines]) + ("\n" if closed else ""))
    connector = connect(place)
    for found in connector.list_new():
        source = connector.open(found.id)
        if not all_rows(source):
            assert found.low_us == MAX_US
            continue
        numbers, valid = source.times(0, 1)
        assert found.low_us == (int(numbers[0]) if valid[0] else MIN_US)
        assert found.extent == Path(found.id).stat().st_size


def test_lines_of_json_too(tmp_path: Path) -> None:
    write(tmp_path / "1.json", '{"t": "1970-01-01T00:00:01", "i": 1}\n')
    write(tmp_path / "2.json", '{"i": 2}\n{"t": "1970-01-01T00:00:01", "i": 3}\n')
    write(tmp_path / "3.json", 'broken\n{"t": "1970-01-01T00:00:01", "i": 3}\n')
    found = connect(tmp_path).list_new()
    assert [f.low_us for f in found] == [SECOND_US, MIN_US, MIN_US]


def test_what_was_let_go_is_not_listed_again(tmp_path: Path) -> None:
    write(tmp_path / "5.csv", "t,i\n2024-01-01,5\n")
    write(tmp_path / "6.csv", "t,i\n2024-01-01,6\n")
    connector = connect(tmp_path, follow=True)
    first, second = connector.list_new()
    assert (first.grows, second.grows) == (False, True)
    assert connector.let_go(first.id) is None
    assert connector.list_new() == []
    write(tmp_path / "1.csv", "t,i\n2024-01-02,1\n")
    assert names(connector.list_new()) == ["1.csv"]
    assert [Path(s.id).name for s in connector.discover()] == ["6.csv", "1.csv"]
    (tmp_path / "5.csv").unlink()
    assert connector.list_new() == []
    assert not connector.has(first.id)


def test_a_file_that_grew_is_let_go_with_its_extent(tmp_path: Path) -> None:
    path = write(tmp_path / "1.csv", "t,i\n2024-01-01,5\n")
    connector = connect(tmp_path, follow=True)
    (found,) = connector.list_new()
    with path.open("a") as file:
        file.write("2024-01-01,6\n2024-01-01,7")
    write(tmp_path / "2.csv", "t,i\n2024-01-02,1\n")
    connector.list_new()
    extent = path.stat().st_size
    assert found.extent < extent
    changed = connector.let_go(found.id)
    assert changed is not None
    assert changed[0] == extent
    again = connect(tmp_path)
    source, position = again.open_beyond(found.id, found.extent, found.digest)
    assert (position, values(source)) == (1, [5, 6, 7])
    assert again.open_beyond(found.id, *changed)[1] == 3


def test_a_file_that_is_replaced_while_it_is_known_is_not_a_new_one(tmp_path: Path) -> None:
    path = write(tmp_path / "1.csv", "t,i\n2024-01-01,5\n")
    connector = connect(tmp_path, follow=True)
    connector.list_new()
    write(tmp_path / "2.csv", "t,i\n2024-01-02,6\n")
    connector.list_new()
    path.unlink()
    connector.list_new()
    write(path, "t,i\n2024-01-01,9\n2024-01-01,9\n")
    with pytest.raises(GateError, match="must not grow after a later file has appeared"):
        connector.list_new()


def test_a_few_finished_files_are_checked_at_each_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FINISHED_FILES", 3)
    checked: list[str] = []
    monkeypatch.setattr(files, "check_not_grown", lambda path, size: checked.append(path))
    for number in range(20):
        write(tmp_path / f"{number:02d}.csv", "t,i\n2024-01-01,5\n")
    connector = connect(tmp_path, follow=True)
    checked.clear()
    connector.list_new()
    assert [Path(p).name for p in checked] == ["16.csv", "17.csv", "18.csv"]


def test_the_first_block_is_small_and_blocks_grow(tmp_path: Path) -> None:
    line = "2024-01-01T00:00:00," + "x" * 79 + "\n"
    path = write(tmp_path / "a.csv", "t,s\n" + line * 80_000)
    (source,) = FilesConnector(str(path), str(path), "t").discover()
    assert isinstance(source, TextSource)
    source.extend(1)
    source.times(0, 1)
    known = [source.piece_end(0)]
    assert known[0] <= 64 * 1024 // len(line)
    while known[-1] < 80_000:
        source.extend(known[-1] + 1)
        known.append(source.piece_end(known[-1]))
    sizes = [(b - a) * len(line) // 1024 for a, b in zip([0, *known], known)]
    assert [round(s / 64) for s in sizes[:6]] == [1, 2, 4, 8, 16, 32]
    assert max(sizes) <= 2048
    breaks = source.breaks(0, 80_000)
    (again,) = FilesConnector(str(path), str(path), "t").discover()
    again.extend(80_000)
    assert again.breaks(0, 80_000) == breaks, "where blocks lie depends on the file alone"
