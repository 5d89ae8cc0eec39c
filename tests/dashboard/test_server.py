"""The server of the page: what it tells of queries, and what it lets be changed by whom."""

from __future__ import annotations

import json
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tidegate as tg
from tests.dashboard.client import Client
from tests.driver.scene import memory, table
from tests.session.test_query import until
from tidegate.dashboard.address import DashboardAddress
from tidegate.dashboard.guard import TOKEN, user_token
from tidegate.dashboard.server import ShownQuery
from tidegate.errors import OptionError
from tidegate.testing.clock import ManualClock


class Scene:
    """A query that counts, with one batch done, and a client of its page."""

    def __init__(self, session: tg.Session, checkpoint: Path) -> None:
        self.source = memory((1, "a", 1), (12, "a", 2))
        counted = session.stream(self.source, time="ts", name="s").window(10).agg(n=tg.count())
        self.query = counted.start(
            sink=tg.sink.memory(), checkpoint=str(checkpoint), instances=2, dashboard=True
        )
        assert self.query.dashboard is not None
        self.client = Client(self.query.dashboard)
        until(lambda: self.query.status()["batch"] == 0, self.query)
        self.number = str(len(self.client.get("/api/queries")[1]) - 1)

    def batch(self, seconds: int) -> None:
        before = self.query.status()["batch"]
        self.source.append(table((seconds, "a", 3)))
        until(lambda: self.query.status()["batch"] > before, self.query)

    def picture(self) -> Any:
        status, found = self.client.get(f"/api/status?query={self.number}")
        assert status == 200
        return found


@pytest.fixture
def scene(session: tg.Session, tmp_path: Path) -> Iterator[Scene]:
    made = Scene(session, tmp_path / "c")
    yield made
    made.query.stop()


def test_status_and_batches_of_a_query(scene: Scene) -> None:
    client, number = scene.client, scene.number
    scene.batch(25)
    status, queries = client.get("/api/queries")
    assert status == 200
    told = queries[int(number)]
    assert (told["title"], told["state"], told["control"]) == ("aggregate", "running", True)
    until(lambda: scene.picture()["kept_batches"] == 2, scene.query)
    picture = scene.picture()
    assert (picture["instances"], picture["state"]) == (2, "running")
    assert [n["kind"] for n in picture["plan"]["nodes"]] == ["stream", "subquery", "output"]
    assert picture["newest_rows"]["output "]["columns"] == ["window_start", "window_end", "n"]
    status, found = client.get(f"/api/batches?query={number}")
    assert [record["batch"] for record in found["batches"]] == [0, 1]
    assert {task["instance"] for task in found["batches"][0]["tasks"]} == {0, 1}
    assert found["batches"][0]["driver_ms"]["operate"] > 0
    assert not found["more"]
    _, one = client.get(f"/api/batches?query={number}&most=1")
    assert ([record["batch"] for record in one["batches"]], one["more"]) == ([0], True)
    _, later = client.get(f"/api/batches?query={number}&after=0")
    assert [record["batch"] for record in later["batches"]] == [1]


def test_events_tell_batches_as_they_come_until_the_end(scene: Scene) -> None:
    events = scene.client.events(f"/api/events?query={scene.number}&after=-1")
    kind, record = next(events)
    assert (kind, record["batch"]) == ("batch", 0)
    assert next(events)[0] == "status"
    scene.batch(25)
    kind, record = next(e for e in events if e[0] == "batch")
    assert record["batch"] == 1
    scene.source.end()
    assert scene.query.wait(60).finished
    kinds = [(kind, data.get("state")) for kind, data in events if kind != "batch"]
    assert kinds[-2:] == [("status", "finished"), ("end", None)]


def test_a_change_needs_no_other_header_than_the_token(scene: Scene, token: str) -> None:
    """`curl -d` calls every body a form."""
    scale = {"query": scene.number, "command": "scale", "instances": 3}
    curl = {"Authorization": f"Bearer {token}", "Content_Type": "application/x-www-form-urlencoded"}
    status, answer = scene.client.post("/api/control", scale, **curl)
    assert (status, answer["done"]["request"]) == (200, "scale 3")


def test_changes_need_the_token_of_a_page_of_this_origin(scene: Scene, token: str) -> None:
    client, scale = scene.client, {"query": scene.number, "command": "scale", "instances": 3}
    assert client.post("/api/control", scale)[0] == 401
    assert client.post("/api/control", scale, Authorization="Bearer another")[0] == 401
    bearer = f"Bearer {token}"
    foreign = {"Authorization": bearer, "Origin": "http://elsewhere.example"}
    assert client.post("/api/control", scale, **foreign)[0] == 403
    fetched = {"Authorization": bearer, "Sec_Fetch_Site": "cross-site"}
    assert client.post("/api/control", scale, **fetched)[0] == 403
    assert client.get("/api/control", Authorization=bearer)[0] == 405
    plain = {"Authorization": bearer, "Content_Type": "text/plain"}
    assert client.post("/api/control", scale, **plain)[0] == 415
    assert client.post("/api/control", b"{", Authorization=bearer)[0] == 400
    form = {"Authorization": bearer, "Content_Type": "application/x-www-form-urlencoded"}
    assert client.post("/api/control", b"command=scale", **form)[0] == 400
    assert not scene.query.status()["pending"]
    status, answer = client.control(token, **scale)
    assert (status, answer["done"]["request"]) == (200, "scale 3")
    scene.batch(25)
    until(lambda: any("by" in e for e in scene.query.status()["epochs"]), scene.query)
    [epoch] = [e for e in scene.query.status()["epochs"] if "by" in e]
    assert (epoch["by"], epoch["instances"]) == ("page", 3)


def test_what_cannot_be_is_said_and_nothing_changes(scene: Scene, token: str) -> None:
    control = scene.client.control
    status, answer = control(token, query=scene.number, command="scale", instances=0)
    assert (status, answer["error"]) == (400, "scale: needs at least one instance; got 0.")
    status, answer = control(token, query=scene.number, command="scael")
    assert status == 400
    assert "Did you mean scale?" in answer["error"]
    assert control(token, query="999", command="pause")[0] == 404
    assert control(token, query="x", command="pause")[0] == 400
    assert not scene.query.status()["pending"]


def test_pause_resume_and_stop(scene: Scene, token: str, tmp_path: Path) -> None:
    client, query, number = scene.client, scene.query, scene.number
    assert client.control(token, query=number, command="pause")[1]["done"]["state"] == "paused"
    scene.source.append(table((25, "a", 3)))
    query.wait(1.0)
    assert query.status()["batch"] == 0
    client.control(token, query=number, command="resume")
    until(lambda: query.status()["batch"] == 1, query)
    assert client.control(token, query=number, command="stop")[0] == 200
    assert not query.wait(60).finished
    status, answer = client.control(token, query=number, command="scale", instances=4)
    assert status == 400
    assert "needs a query that runs" in answer["error"]
    noted = (tmp_path / "c" / "journal" / "requests.jsonl").read_text().splitlines()
    told = [(line["command"], line["by"], line["outcome"][:7]) for line in map(json.loads, noted)]
    assert told == [
        ("pause", "page", "done"),
        ("resume", "page", "done"),
        ("stop", "page", "done"),
        ("scale", "page", "refused"),
    ]


def test_only_names_of_this_host_are_answered(scene: Scene) -> None:
    assert scene.client.get("/api/queries", Host="elsewhere.example")[0] == 403
    assert scene.client.get("/api/queries", Host="localhost:1")[0] == 200
    assert scene.client.get("/api/queries", Host="[::1]:8123")[0] == 200


def test_what_is_not_there_is_not_found(scene: Scene, token: str) -> None:
    client = scene.client
    assert client.get("/api/nothing")[0] == 404
    assert client.get("/../server.py")[0] == 404
    assert client.get("/api/status?query=999")[0] == 404
    assert client.get("/api/batches?after=x")[0] == 400
    assert client.post("/api/status", {}, Authorization=f"Bearer {token}")[0] == 405


def test_a_page_may_load_nothing_from_elsewhere(scene: Scene) -> None:
    headers = scene.client.headers("/api/queries")
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in headers


def test_queries_of_a_process_share_a_page(session: tg.Session) -> None:
    source = memory((1, "a", 1), end=True)
    streams = [session.stream(source, time="ts", name=name) for name in ("one", "two")]
    started = [s.start(sink=tg.sink.memory(), dashboard=True) for s in streams]
    for query in started:
        query.wait(60)
    assert started[0].dashboard == started[1].dashboard
    assert started[0]._repr_html_().endswith(f'<a href="{started[0].dashboard}">dashboard</a>')


def test_metrics_of_queries_with_one_name_are_told_apart(session: tg.Session) -> None:
    source = memory((1, "a", 1))
    stream = session.stream(source, time="ts", name="same").window(10).agg(n=tg.count())
    started = [stream.start(sink=tg.sink.memory(), dashboard="localhost:0") for _ in range(2)]
    client = Client(str(started[0].dashboard))
    for query in started:
        until(lambda query=query: query.status()["batch"] == 0, query)
    for name, query in zip(("aggregate", "aggregate #2"), started, strict=True):
        counted = f'tidegate_rows_in_total{{query="{name}"}} 1'
        until(lambda counted=counted: counted in client.get("/metrics")[1].decode(), query)
    for query in started:
        query.stop()
    assert client.get("/metrics") == (200, b"")


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        (9464, "127.0.0.1", 9464),
        ("9464", "127.0.0.1", 9464),
        ("0.0.0.0:0", "0.0.0.0", 0),
        ("[::1]:65535", "::1", 65_535),
        ("a-host.example:80", "a-host.example", 80),
    ],
)
def test_an_address_is_read(address: str | int, host: str, port: int) -> None:
    assert DashboardAddress.parse(address, "dashboard") == DashboardAddress(host, port)


@pytest.mark.parametrize("address", ["", "65536", "x", "::1:9464", "a:b:1", -1, " 1", "h:", ":1"])
def test_what_is_no_address_is_refused(address: str | int) -> None:
    with pytest.raises(OptionError, match="must be a port from 0 to 65535, or HOST:PORT"):
        DashboardAddress.parse(address, "dashboard")


def test_nothing_is_left_listening_where_the_start_fails(
    session: tg.Session, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "file").write_text("")
    stream = session.stream(memory((1, "a", 1)), time="ts")
    with pytest.raises(Exception, match="file"):
        stream.start(sink=tg.sink.memory(), checkpoint=str(tmp_path / "file" / "c"), dashboard=port)
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_a_port_that_is_taken_is_refused_before_anything_runs(session: tg.Session) -> None:
    source = memory((1, "a", 1), end=True)
    stream = session.stream(source, time="ts", name="s")
    first = stream.start(sink=tg.sink.memory(), dashboard="127.0.0.1:0")
    first.wait(60)
    port = str(first.dashboard).rstrip("/").rpartition(":")[2]
    with pytest.raises(OptionError, match="dashboard: must be a port that is free"):
        stream.start(sink=tg.sink.memory(), dashboard=f"127.0.0.1:{port}")
    with pytest.raises(OptionError, match="must be a port from 0 to 65535, or HOST:PORT"):
        stream.start(sink=tg.sink.memory(), dashboard="q.sql")


def test_the_token_of_a_user_is_made_once_for_him_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(TOKEN)
    token, place = user_token()
    assert len(token) >= 32
    assert user_token() == (token, place)
    assert stat.S_IMODE(Path(place).stat().st_mode) == 0o600


def test_a_batch_pays_for_metrics_once_somebody_asks(scene: Scene) -> None:
    books = scene.query._loop.books
    before = len(books.observers)
    scene.picture()
    assert len(books.observers) == before
    for seconds in (25, 40):
        assert b"tidegate_rows_in_total" in scene.client.get("/metrics")[1]
        assert len(books.observers) == before + 1
        scene.batch(seconds)
    assert b'tidegate_batch_seconds_count{query="aggregate"} 3' in scene.client.get("/metrics")[1]


class SlowPicture:
    """A query whose pictures take a while to make."""

    title, checkpoint = "slow", None

    def __init__(self, clock: ManualClock, takes_s: float) -> None:
        self._clock, self._takes_s = clock, takes_s
        self.made = 0

    def picture(self) -> dict[str, int]:
        self._clock.sleep(self._takes_s)
        self.made += 1
        return {"made": self.made}

    def batches(self, after: int, most: int) -> list[bytes]:
        return []

    def wait(self, after: int, seconds: float) -> None:
        """There is nothing to wait for."""

    def ask(self, question: Any) -> Any:
        return question

    def metrics(self) -> None:
        return None


@pytest.mark.parametrize(("takes_s", "made"), [(0.001, 60), (0.05, 12), (0.5, 2)])
def test_pictures_take_a_hundredth_of_the_time(takes_s: float, made: int) -> None:
    """However many look at them, and however often."""
    clock = ManualClock()
    query = SlowPicture(clock, takes_s)
    shown = ShownQuery(query, clock)
    end = clock.now() + 60
    while clock.now() < end:
        assert shown.picture() is shown.picture()
        clock.sleep(0.01)
    assert made - 1 <= query.made <= made
    assert query.made * takes_s <= 0.6 + takes_s
