"""Events on their way to a server of HTTP and to a file, which may fail in any way they like."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lineage.published import check
from tests.lineage.receiver import Server
from tidegate.cli.main import invoke
from tidegate.clock import SystemClock
from tidegate.driver.lineage.delivery import (
    MOST_WAITING,
    EventDelivery,
    FileReceiver,
    HttpReceiver,
)

PAUSES_S = (0.0, 0.0)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def delivery_to(url: str, timeout_s: float = 10.0) -> EventDelivery:
    receiver = HttpReceiver(f"{url}/api/v1/lineage", "hunter2", timeout_s)
    return EventDelivery(receiver, SystemClock(), PAUSES_S)


def posted(delivery: EventDelivery, *events: int, patience_s: float = 60.0) -> dict[str, int]:
    for number in events:
        delivery.post({"n": number})
    delivery.close(patience_s)
    return delivery.counts()


@pytest.fixture
def refusing() -> Iterator[str]:
    """A port of this host at which nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def query(folder: Path) -> list[str]:
    folder.joinpath("q.sql").write_text(
        "CREATE STREAM rides FROM 'generator:taxi?rows=200' TIME dropoff_time; "
        "SELECT route FROM rides"
    )
    return ["run", str(folder / "q.sql"), "--master", "none", "--out", str(folder / "o")]


def test_a_run_posts_its_events_with_the_key_of_the_environment(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.joinpath("key").write_text("hunter2\n")
    monkeypatch.setenv("OPENLINEAGE_API_KEY_FILE", str(tmp_path / "key"))
    assert invoke([*query(tmp_path), "--lineage", server.url]) == 0
    assert [check(event).eventType.name for _, _, event in server.got] == ["START", "COMPLETE"]
    assert {path for path, _, _ in server.got} == {"/api/v1/lineage"}
    assert {key for _, key, _ in server.got} == {"Bearer hunter2"}


def test_a_run_whose_server_is_gone_does_its_work_and_counts(
    refusing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "s.json"
    words = [*query(tmp_path), "--lineage", f"{refusing}/own/path", "--summary", str(summary)]
    assert invoke(words) == 0
    found = json.loads(summary.read_text())
    assert (found["rows_out"], found["lineage"]) == (200, {"sent": 0, "lost": 2})
    said = capsys.readouterr().err
    assert "2 lineage events lost; the log says why" in said


def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "hunter2\nX-Other: 1")
    assert invoke([*query(tmp_path), "--lineage", "http://127.0.0.1:1"]) == 2
    said = capsys.readouterr().err
    assert "OPENLINEAGE_API_KEY: must be one line of ASCII" in said
    assert "hunter2" not in said
    monkeypatch.setenv("OPENLINEAGE_API_KEY_FILE", str(tmp_path / "none"))
    assert invoke([*query(tmp_path), "--lineage", "http://127.0.0.1:1"]) == 2
    assert "OPENLINEAGE_API_KEY_FILE: must name a file" in capsys.readouterr().err


def test_events_come_in_order_and_are_tried_again_while_it_helps(server: Server) -> None:
    server.answers = [503, 429, 200]
    assert posted(delivery_to(server.url), 1, 2) == {"sent": 2, "lost": 0}
    assert [body["n"] for _, _, body in server.got][-2:] == [1, 2]


def test_what_a_server_refuses_for_good_is_tried_once(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers = [401, 302, 200]
    assert posted(delivery_to(server.url), 1, 2, 3) == {"sent": 1, "lost": 2}
    assert [path for path, _, _ in server.got] == ["/api/v1/lineage"] * 3  # no redirect
    assert "got status 401 Unauthorized. The query goes on; 1 lost so far." in caplog.text
    assert "hunter2" not in caplog.text


def test_a_server_that_never_answers_holds_nobody(silent: str) -> None:
    clock = SystemClock()
    delivery = delivery_to(silent, timeout_s=600.0)
    began = clock.now()
    for number in range(MOST_WAITING + 5):
        delivery.post({"n": number}, dispensable=True)
    assert clock.now() - began < 60
    assert 4 <= delivery.lost <= 5  # one may be on its way
    delivery.close(patience_s=0.05)
    assert delivery.counts() == {"sent": 0, "lost": MOST_WAITING + 5}


def test_a_line_that_a_crash_has_cut_short_stays_alone(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    path.write_bytes(b'{"n": 0}\n{"n": 1')
    delivery = EventDelivery(FileReceiver(str(path)), SystemClock(), PAUSES_S)
    assert posted(delivery, 2, 3) == {"sent": 2, "lost": 0}
    assert path.read_bytes() == b'{"n": 0}\n{"n": 1\n{"n": 2}\n{"n": 3}\n'


def test_a_file_that_cannot_be_written_is_logged_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    delivery = EventDelivery(FileReceiver(str(tmp_path)), SystemClock(), PAUSES_S)
    assert posted(delivery, 1) == {"sent": 0, "lost": 1}
    assert "Is a directory" in caplog.text
