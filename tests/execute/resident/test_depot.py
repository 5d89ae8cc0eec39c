"""Parcels from worker to worker over TCP: the same as through files, for those who know the secret.

The depots are of one process here, and share no files; tests/crash has some in processes of their
own, which are killed.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.crash.process import wait_for
from tests.execute.test_exchange import SUBQUERY
from tidegate.batch import MAX_US, MIN_US
from tidegate.errors import LostParcelsError, OptionError
from tidegate.execute import exchange
from tidegate.execute.job import LATE, ROWS, START, Job, Parcel
from tidegate.execute.resident.channel import door_on, visit
from tidegate.execute.resident.depot import Depot, DepotPlan
from tidegate.execute.resident.parcel_door import ParcelDoor
from tidegate.execute.resident.parcel_fetch import AHEAD, ParcelFetch
from tidegate.route.mapping import even
from tidegate.route.partitioner import EVERY_INSTANCE
from tidegate.state.store import Store

HOST = "127.0.0.1"
SECRET = b"between us"
FAR = DepotPlan(distant=True, shares_disk=False)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    handle = Store.open(tmp_path / "state").handle()
    return Job(3, SUBQUERY, (), even(4, 2), MIN_US, MAX_US, {}, handle)


@pytest.fixture
def depots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Depot]]:
    """Depots below a folder of the test, as on the disk of an executor."""
    (tmp_path / "blockmgr-1").mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/blockmgr-1")
    made = []

    def make(number: int, secret: bytes = SECRET, plan: DepotPlan = FAR) -> Depot:
        made.append(Depot(plan, secret, number, HOST))
        return made[-1]

    yield make
    for depot in made:
        depot.close()
    assert list((tmp_path / "blockmgr-1").glob("*/*")) == []


def parcels(split: int, size: int = 100) -> list[Parcel]:
    """What a map task may send: for one, for all, nothing, and what is between two others."""
    data = np.random.default_rng(split).bytes(4 * size + 1)
    return [
        Parcel(0, split, ROWS, data[:size], "left"),
        Parcel(1, split, ROWS, data[size : 2 * size + 1]),
        Parcel(0, split, START, b""),
        Parcel(1, split, LATE, data[2 * size :], "late"),
        Parcel(EVERY_INSTANCE, split, ROWS, data[:1], "right"),
    ]


def plain(found: list[Parcel]) -> list[tuple[int, int, int, str, bytes]]:
    return sorted((p.instance, p.split, p.kind, p.label, bytes(p.data)) for p in found)


@pytest.mark.parametrize("instance", [0, 1, 2])
@pytest.mark.parametrize("shares_disk", [True, False])
def test_an_instance_gets_from_other_workers_what_it_would_get_from_files(
    instance: int, shares_disk: bool, job: Job, depots: Callable[..., Depot], tmp_path: Path
) -> None:
    workers = [depots(n, plan=DepotPlan(True, shares_disk=shares_disk)) for n in range(AHEAD + 3)]
    sent = [parcels(split) for split in range(2 * len(workers))]
    exchange.begin(job)
    files = [exchange.ship(job, f"split-{n}", some) for n, some in enumerate(sent)]
    shipped = [workers[n // 2].ship(job, f"split-{n}", some) for n, some in enumerate(sent)]
    shipped = [exchange.Shipment.of(json.loads(json.dumps(vars(s)))) for s in shipped]
    expected = plain(exchange.receive(files, instance))
    assert len(expected) == {0: 3, 1: 3, 2: 1}[instance] * len(sent)
    for worker in (workers[0], workers[-1]):
        for _ in range(2):  # the second time over connections that are there
            assert plain(worker.receive(shipped, instance)) == expected


def test_many_bytes_are_received_into_a_file_without_a_name(
    job: Job, depots: Callable[..., Depot], tmp_path: Path
) -> None:
    one = depots(1)
    assert one.address is not None
    sent = parcels(0, size=1 << 20)
    shipment = one.ship(job, "split-0", sent)
    fetch = ParcelFetch(SECRET, str(tmp_path), in_memory_bytes=1 << 20)
    found = fetch.fetch({one.address: [shipment]}, 1)
    assert plain(found) == plain([sent[1], sent[3], sent[4]])
    maps = Path("/proc/self/maps").read_text()
    assert f"{tmp_path}/" in maps, "they are mapped"
    assert "(deleted)" in maps
    fetch.close()


def test_who_does_not_know_the_secret_gets_nothing(
    job: Job, depots: Callable[..., Depot], caplog: pytest.LogCaptureFixture
) -> None:
    shipment = depots(0).ship(job, "split-0", parcels(0))
    stranger = depots(1, secret=b"guessed")
    with pytest.raises(
        LostParcelsError, match="must give the parcels of its map tasks; got digest"
    ):
        stranger.receive([shipment], 0)
    # The thread that turns somebody away writes its line after it has closed the connection.
    wait_for(lambda: "somebody who is no worker got no parcels" in caplog.text, "the line")


@pytest.mark.parametrize("name", ["../../state/manifest", "/etc/hostname", "split-1"])
def test_only_what_was_shipped_can_be_asked_for(
    name: str, job: Job, depots: Callable[..., Depot]
) -> None:
    one = depots(0)
    shipment = one.ship(job, "split-0", parcels(0))
    assert one.address is not None
    with visit(one.address, SECRET, 60) as channel:
        for asked, missing in ((name, name), (os.path.basename(shipment.path), "")):
            channel.send_bytes(json.dumps([[asked, [[0, 64]]]]).encode())
            assert channel.recv_bytes().decode() == missing


def test_parcels_of_a_batch_that_is_done_are_gone(job: Job, depots: Callable[..., Depot]) -> None:
    one, other = depots(0), depots(1)
    shipment = one.ship(job, "split-0", parcels(0))
    assert len(other.receive([shipment], 0)) == 3
    one.drop(["another job"])
    assert len(other.receive([shipment], 0)) == 3
    one.drop([job.name])
    assert not os.path.exists(os.path.dirname(shipment.path))
    with pytest.raises(LostParcelsError, match="got a worker that has them no more"):
        other.receive([shipment], 0)
    with pytest.raises(LostParcelsError, match="must be on this host"):
        one.receive([shipment], 0)


def test_a_worker_that_is_gone_is_told_from_one_that_has_closed_a_connection(
    job: Job, depots: Callable[..., Depot], tmp_path: Path
) -> None:
    path = exchange.write_parcels(str(tmp_path / "file"), parcels(0)).path
    shipment = exchange.write_parcels(path, parcels(0))
    patience_s = 0.2
    door = ParcelDoor(door_on(HOST, 0), SECRET, {"file": path}.get, patience_s)
    fetch = ParcelFetch(SECRET, str(tmp_path))
    assert len(fetch.fetch({door.address: [shipment]}, 0)) == 3
    wait_for(lambda: not door._open, "the door to close a connection that nobody uses")
    assert len(fetch.fetch({door.address: [shipment]}, 0)) == 3
    door.close()
    with pytest.raises(LostParcelsError, match="refused"):
        fetch.fetch({door.address: [shipment]}, 0)


def test_a_door_that_closes_in_the_middle_of_an_answer_loses_the_parcels(tmp_path: Path) -> None:
    shipment = exchange.write_parcels(str(tmp_path / "file"), parcels(0, size=1 << 20))
    os.truncate(shipment.path, 1 << 20)
    with_less = ParcelDoor(door_on(HOST, 0), SECRET, {"file": shipment.path}.get)
    with pytest.raises(LostParcelsError):
        ParcelFetch(SECRET, str(tmp_path)).fetch({with_less.address: [shipment]}, 1)
    with_less.close()


def test_a_slow_reader_takes_no_memory_of_the_sender(tmp_path: Path) -> None:
    """It is the kernel that copies, as far as the buffers of the connection go."""
    size, step = 256 << 20, 16 << 20
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(size)
    door = ParcelDoor(door_on(HOST, 0), SECRET, {"file": str(path)}.get)
    before = anonymous_bytes()
    with visit(door.address, SECRET, 60) as channel:
        channel.send_bytes(json.dumps([["file", [[0, size]]]]).encode())
        assert channel.recv_bytes() == b""
        piece = memoryview(bytearray(1 << 16))
        with socket.socket(fileno=os.dup(channel.fileno())) as end:
            read = 0
            while read < size:
                if read % step < len(piece):
                    assert anonymous_bytes() - before < step
                read += end.recv_into(piece[: min(len(piece), size - read)])
    door.close()


def anonymous_bytes() -> int:
    (line,) = (x for x in Path("/proc/self/status").read_text().splitlines() if "RssAnon" in x)
    return int(line.split()[1]) * 1024


def test_what_an_earlier_worker_of_the_number_left_is_removed(
    job: Job, depots: Callable[..., Depot], tmp_path: Path
) -> None:
    first, other = depots(0), depots(1)
    left, stays = first.ship(job, "split-0", parcels(0)), other.ship(job, "split-1", parcels(1))
    depots(0)
    assert not os.path.exists(left.path)
    assert os.path.exists(stays.path)


def test_a_port_that_is_taken_has_others_after_it(depots: Callable[..., Depot]) -> None:
    first = depots(0)
    assert first.address is not None
    port = first.address[1]
    second = depots(1, plan=DepotPlan(distant=True, port=port, more=16))
    assert second.address is not None
    assert port < second.address[1] <= port + 16
    with pytest.raises(OptionError) as caught:
        depots(2, plan=DepotPlan(distant=True, port=port))
    assert "spark.tidegate.executor.port must be a port that executors can open" in str(
        caught.value
    )
    assert "in use" in str(caught.value)
