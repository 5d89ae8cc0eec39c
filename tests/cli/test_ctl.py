"""`tidegate ctl`: a query that runs in another process is looked at, changed, killed and gone."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tidegate.cli.main import invoke
from tidegate.control.address import read_record, write_record
from tidegate.state.store import Store

COUNTS = """
CREATE STREAM rides FROM 'rides.csv' TIME ts;
SELECT MAX(n) AS most FROM (
  SELECT route, COUNT(*) AS n FROM rides [RANGE 10 SECONDS] GROUP BY route
) [RANGE 20 SECONDS]
"""
RUN = ["run", "q.sql", "--master", "none", "--checkpoint", "c", "--out", "o", "--buckets", "8"]


def rides(first: int, last: int) -> str:
    seconds = range(first, last)
    return "".join(f"2024-01-01T00:{i // 60:02d}:{i % 60:02d}Z,{'abc'[i % 3]}\n" for i in seconds)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("rides.csv").write_text("ts,route\n" + rides(0, 100))
    Path("q.sql").write_text(COUNTS)
    return tmp_path


@contextmanager
def followed(folder: Path) -> Iterator[Terminal]:
    """A run that has taken all there is, and waits for more; killed at the end."""
    run = Terminal([*RUN, "--follow", "--instances", "2", "--log", "debug"], folder, width=200)
    try:
        run.read_until("batch 0: 100 rows in")
        yield run
    finally:
        with suppress(ProcessLookupError):  # it has ended by itself
            run.signal(signal.SIGKILL)
        run.finish()


def more(first: int, last: int) -> None:
    with Path("rides.csv").open("a") as file:
        file.write(rides(first, last))


def ctl(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command says that succeeds."""
    code = invoke(["ctl", "c", *words])
    shown = capsys.readouterr()
    assert (code, shown.err) == (0, "")
    return shown.out


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line that a mistake is answered with."""
    assert invoke(["ctl", *words]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    return shown.err.removeprefix("tidegate: ").rstrip("\n")


MISTAKES = {
    ("scale", "0"): "scale: needs at least one instance; got 0.",
    ("scale", "-1"): "scale: numbers must not be negative; got -1.",
    ("scale", "two"): "scale: must be a whole number; got two.",
    ("scale", "9"): (
        "scale: instances must not outnumber the 8 buckets; got 9. Ask for fewer instances, or "
        "start a new checkpoint with more --buckets."
    ),
    ("scale", "2", "--subquery", "agregate"): (
        "scale: must name a subquery of the query; got agregate. Did you mean aggregate or "
        "aggregate2? There are: aggregate, aggregate2."
    ),
    ("scale", "2", "--subqery", "a"): (
        "--subqery: no option of `tidegate ctl CHECKPOINT scale` has this name. Did you mean "
        "--subquery? There are: --subquery, --why, --json, --help."
    ),
    ("move", "3,9-8", "1"): ("move: buckets must be ranges such as 10-12, below 65,536; got 9-8."),
    ("move", "3", "7"): (
        "move: must name an instance that is there, 0 to 1; got 7. `scale` changes how many there "
        "are."
    ),
    ("switch", "[0, 1, 0]"): (
        "switch: a mapping must give an owner to each of the 8 buckets; got none for buckets 3-7. "
        "Add what is missing; nothing changed."
    ),
    ("switch", "none.json"): (
        "switch: needs a mapping as JSON, or a readable file with one; got none.json: No such "
        "file or directory. Write for example '[0, 0, 1, 1]', the owner of each bucket."
    ),
    ("policy", "threshold?upper=2"): (
        "policy threshold: lower must be below upper, both between 0 and 1; got lower 0.45 and "
        "upper 2."
    ),
    ("policy", "treshold"): (
        "policy: must be a known word; got treshold. Did you mean threshold? There are: fixed, "
        "threshold, model, auto."
    ),
    ("scael", "3"): (
        "ctl: no such command 'scael'. Did you mean 'scale'? `tidegate ctl --help` lists what "
        "there is."
    ),
    (): "ctl: needs a command; got none. `tidegate ctl --help` lists what there is.",
}


def test_a_query_is_looked_at_and_changed_while_it_runs(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with followed(folder) as run:
        with monkeypatch.context() as patch:
            patch.setattr("os.geteuid", lambda: 4711)
            said = refused(capsys, "c", "scale", "2")
        owner = pwd.getpwuid(os.geteuid()).pw_name
        assert said == (
            f"{folder}/c: must be the checkpoint of a query of this user; got one of user {owner}. "
            f"Run `tidegate ctl` as {owner}."
        )
        said = ctl(capsys, "status").splitlines()
        assert said[0] == "batch 0, watermark 2024-01-01 00:01:39 UTC"
        assert said[1] == "100 rows in, 4 out, 0 late, 0 rejected"
        assert "aggregate: 2 instances, epoch 0" in said
        for words, message in MISTAKES.items():
            assert refused(capsys, "c", *words) == message
        moves = "aggregate: 3 instances (2 before), 2 buckets moved, from the next batch on\n"
        assert ctl(capsys, "scale", "3", "--subquery", "aggregate") == moves
        said = ctl(capsys, "scale", "4", "--why", "rush hour")
        assert said.splitlines() == [
            f"{name}: 4 instances (2 before), 4 buckets moved, from the next batch on"
            for name in ("aggregate", "aggregate2")
        ]
        pending = [
            line for line in ctl(capsys, "status").splitlines() if line.startswith("pending")
        ]
        assert [re.sub(r"at \S+Z", "at T", line) for line in pending] == [
            f"pending for {name}: scale 4, asked by ctl at T: rush hour"
            for name in ("aggregate", "aggregate2")
        ]
        more(100, 130)
        run.read_until("batch 1: 30 rows in")
        found = json.loads(ctl(capsys, "status", "--json"))
        assert found["pending"] == []
        assert found["subqueries"] == {
            name: {"epoch": 1, "instances": 4} for name in ("aggregate", "aggregate2")
        }
        told = [(e["subquery"], e["by"], e["why"]) for e in found["epochs"] if e["epoch"]]
        assert told == [(name, "ctl", "rush hour") for name in ("aggregate", "aggregate2")]
        Path("m.json").write_text(json.dumps(found["buckets"]["aggregate"]))
        stays = "aggregate: stays as it is, with 4 instances\n"
        assert ctl(capsys, "switch", "m.json", "--subquery", "aggregate") == stays
        said = ctl(capsys, "move", "0-2,5", "3", "--subquery", "aggregate2")
        assert said.startswith("aggregate2: 4 instances, ")
        more(130, 160)
        run.read_until("batch 2: 30 rows in")
        said = ctl(capsys, "status").splitlines()
        assert said[said.index("switches") + 3].startswith(
            "  aggregate2 epoch 2: 4 instances from batch 2, switched in "
        )
        assert ctl(capsys, "rebalance", "--subquery", "aggregate2").startswith("aggregate2: ")
        said = ctl(capsys, "policy", "threshold?maximum=4")
        assert said == "threshold decides after the next batch and all that follow\n"
        assert "policy threshold" in ctl(capsys, "status").splitlines()
        run.signal(signal.SIGINT)
        run.read_until("Run the same command to continue.")


def test_a_query_that_does_not_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with followed(folder):
        store = Store.open("c")
        address = read_record("c/control.json", store)
        shutil.copytree("c", "copy")
        assert "one whose query has ended" in refused(capsys, "copy", "scale", "3")
    assert address is not None
    here = folder / "c"
    assert refused(capsys, "c", "status") == (
        f"{here}: must be the checkpoint of a query that runs; got one whose query has ended "
        f"(process {address.process}, without a word). Start it again with the same command, "
        "which continues it."
    )
    write_record("c/control.json", replace(address, process=7, host="far"))
    assert refused(capsys, "c", "scale", "2") == (
        f"{here}: must be the checkpoint of a query on this host; got one of process 7 on far. "
        "Run `tidegate ctl` on far."
    )
    write_record("c/control.json", address)
    assert invoke(RUN) == 0
    assert not Path(address.socket).parent.exists()
    assert not Path("c/control.json").exists()
    capsys.readouterr()
    assert refused(capsys, "c", "scale", "2") == (
        f"{here}: must be the checkpoint of a query that runs; got one whose query has finished. "
        "There is nothing left to change."
    )
    assert refused(capsys, "nowhere", "status") == (
        f"{folder}/nowhere: must be a Tidegate checkpoint; got no such folder. Give the folder "
        "that a run had as --checkpoint."
    )
    assert refused(capsys) == (
        "ctl: needs CHECKPOINT; got none. `tidegate ctl --help` lists what there is."
    )
    assert refused(capsys, "scale", "4") == (
        "ctl: needs CHECKPOINT before the command; got scale 4. Write `tidegate ctl CHECKPOINT "
        "scale 4`."
    )


@pytest.mark.parametrize("words", [("scale", "--help"), ("c", "scale", "--help")])
def test_help_of_a_command(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["ctl", *words]) == 0
    assert "Usage: tidegate ctl CHECKPOINT scale [OPTIONS] N\n" in capsys.readouterr().out
