"""Remedies of refused commands, options and streams: each, followed, gives what was asked for."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.mistake import command, option, simulate, stream
from tests.cli.mistake.correction import BEFORE, CORRECTIONS, ELSEWHERE, PLAIN
from tests.cli.mistake.kind import COUNT, run_line
from tests.cli.test_mistakes import ROWS, put
from tidegate.cli.main import invoke

CATALOGUE = {
    f"{table.__name__.rpartition('.')[2]}: {name}": mistake
    for table in (option, command, stream, simulate)
    for name, mistake in table.MISTAKES.items()
}
MORE: dict[str, str | bytes] = {
    "rides.csv": ROWS,
    "good.sql": f"CREATE STREAM rides FROM 'rides.csv'; {COUNT}",
    "many.sql": f"CREATE STREAM rides FROM 'generator:taxi?rows=30000' TIME dropoff_time; {COUNT}",
    "trace.csv": "t,r,s\n0,100,100\n1,200,100\n2,100,100\n",
}
COUNTED = r"00:00:00.*00:00:10.*\b2\b"
TO_RUN = re.compile(r"--\w|`|Did you mean|OPTIONS|CREATE|\[R|for example")
"""What a message says that can be typed."""


def remedy(message: str) -> str:
    """What a message says after what it got, and the examples before that."""
    required, _, rest = message.partition("; got ")
    return " ".join(re.findall("for example .*", required)) + rest.partition(". ")[2]


def corrected(name: str, text: str, other: str) -> tuple[list[str], dict[str, str | bytes]]:
    """The command and the files of a mistake with one text in one of them replaced."""
    mistake = CATALOGUE[name]
    line = shlex.join(mistake.command or run_line(mistake.options))
    files = {**MORE, "q.sql": mistake.sql, **mistake.files}
    if text in line:
        return shlex.split(line.replace(text, other, 1)), files
    for file, content in files.items():
        if isinstance(content, str) and text in content and file not in MORE:
            return shlex.split(line), {**files, file: content.replace(text, other, 1)}
    raise AssertionError(f"{text} is not in {line} or its files")


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    """What a command has said, and the names and rows of all files that are there."""
    said = capsys.readouterr()
    found = [said.out, said.err]
    for file in sorted(p for p in Path().rglob("*") if p.is_file() and str(p) not in MORE):
        if file.suffix == ".parquet":
            rows = pq.read_table(file.absolute(), partitioning=None)
            values = [" ".join(str(v) for v in row.values()) for row in rows.to_pylist()]
        else:
            values = file.read_text(errors="replace").splitlines()
        found += [f"{file} {value}" for value in values]
    return "\n".join(found)


def test_every_refusal_is_in_one_list() -> None:
    listed = [*dict.fromkeys(name for name, *_ in CORRECTIONS), *ELSEWHERE, *PLAIN]
    assert len(listed) == len(set(listed))
    assert [name for name in CATALOGUE if name not in listed] == []
    assert [name for name in listed if name not in CATALOGUE] == []
    assert len(CORRECTIONS) > 150


@pytest.mark.parametrize(
    ("correction"), [pytest.param(c, id=" -> ".join(map(str, c))) for c in CORRECTIONS]
)
def test_a_remedy_gives_what_was_asked_for(
    correction: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    name, text, other, *gives = correction
    arguments, files = corrected(name, text, other.replace("{folder}", str(tmp_path)))
    put(files)
    Path("empty").mkdir()
    if name in BEFORE:
        assert invoke(shlex.split(BEFORE[name])) == 0, capsys.readouterr()
    if before := CATALOGUE[name].before:
        put({"q.sql": before.sql})
        assert invoke(run_line(before.options)) == 0
        put(files)
    capsys.readouterr()
    assert invoke(arguments) == 0, (arguments, capsys.readouterr())
    assert re.search(gives[0] if gives else COUNTED, shown(capsys)), arguments


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_requirement_has_nothing_to_type(name: str) -> None:
    assert not TO_RUN.search(remedy(CATALOGUE[name].message))


def test_results_that_were_moved_away_on_purpose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    mistake = option.MISTAKES["--checkpoint with another --out"]
    assert "make an empty folder batch=00000000" in mistake.message
    put({**MORE, "q.sql": COUNT})
    assert mistake.before is not None
    assert invoke(run_line(mistake.before.options)) == 0
    Path("o2/batch=00000000").mkdir(parents=True)
    capsys.readouterr()
    assert invoke(run_line(mistake.options)) == 0
    assert "2 rows in, 1 out" in capsys.readouterr().err
