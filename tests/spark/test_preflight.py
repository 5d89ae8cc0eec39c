"""What executors are asked before the first batch, and what is said of their answers."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tidegate.errors import OptionError
from tidegate.execute.spark import preflight
from tidegate.execute.spark.probe import CHECKPOINT, CODE, OUTPUT, PYTHON, SOURCE, look
from tidegate.version import __version__


def asked(folders: Any = (), files: Any = (), code: Any = ()) -> list[tuple[str, str, str]]:
    (answer,) = look((folders, files, pickle.dumps(list(code))), [0])
    assert answer["versions"]["tidegate"] == __version__
    found: list[tuple[str, str, str]] = answer["problems"]
    return found


def test_what_is_there_is_no_problem_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(b"mine")
    folder = (CHECKPOINT, "state", f"{tmp_path}/token", b"mine")
    assert asked([folder], [f"{tmp_path}/token"], [(CODE, "", partial(int, "1"))]) == []
    assert [p.name for p in tmp_path.iterdir()] == ["token"]


def test_each_thing_that_is_missing_is_told(tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(b"of another host")
    found = asked(
        [
            (CHECKPOINT, "state", f"{tmp_path}/token", b"mine"),
            (OUTPUT, "out", f"{tmp_path}/no/token", b"mine"),
        ],
        [f"{tmp_path}/rides.csv"],
        [(CODE, "", partial(int, "x"))],
    )
    assert found == [
        (CHECKPOINT, "state", "another folder of the same name"),
        (OUTPUT, "out", "no such file or directory"),
        (SOURCE, f"{tmp_path}/rides.csv", "no such file or directory"),
        (CODE, "", "ValueError: invalid literal for int() with base 10: 'x'"),
    ]


def report(host: str, *problems: tuple[str, str, str], **versions: str) -> dict[str, Any]:
    return {
        "host": host,
        "python": "/bin/python",
        "versions": {"pyarrow": "1", "numpy": "1", "pandas": "1", **versions},
        "problems": list(problems),
    }


def test_one_message_has_all_hosts_that_have_the_first_problem() -> None:
    missing = (SOURCE, "/rides.csv", "no such file or directory")
    reports = [
        report("a", missing, tidegate=__version__),
        report("b", missing, tidegate=__version__),
        report("c", (OUTPUT, "/out", "permission denied"), tidegate=__version__),
    ]
    with pytest.raises(OptionError) as caught:
        preflight._judge(reports)
    assert str(caught.value) == (
        "source /rides.csv: every executor must be able to read it; got no such file or directory "
        "on a, b. Put the input where all hosts have it under this name."
    )


def test_another_version_of_tidegate_is_told_first() -> None:
    reports = [report("a", (OUTPUT, "/out", "permission denied"), tidegate="0.0.1")]
    with pytest.raises(OptionError) as caught:
        preflight._judge(reports)
    assert f"must have tidegate {__version__} and what it needs; got tidegate 0.0.1 on a" in str(
        caught.value
    )


def test_other_versions_of_libraries_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    preflight._judge([report("a", tidegate=__version__)])
    assert any("pyarrow 1 on a" in record.getMessage() for record in caplog.records)
    assert PYTHON not in caplog.text
