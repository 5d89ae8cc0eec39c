"""A crew of real processes: who gets which work, and what happens when one dies, hangs or fails."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

import pytest

from tests.crash.process import wait_for
from tests.execute.resident import task
from tests.execute.resident.camp import SECRET, Camp
from tidegate import schedule
from tidegate.errors import RunError, TaskError
from tidegate.execute.resident.channel import admit, door_at
from tidegate.execute.resident.crew import Crew
from tidegate.execute.resident.message import (
    BYE,
    Hello,
    RaisedError,
    TaskAnswer,
    TaskRequest,
    packed,
    unpacked,
)
from tidegate.execute.resident.unit import DiedError
from tidegate.execute.work import SentWork

pytestmark = pytest.mark.timeout(240)  # what is wrong here mostly waits for ever


@pytest.fixture(scope="module")
def camp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Camp]:
    camp = Camp(tmp_path_factory.mktemp("camp"))
    yield camp
    camp.close()


def test_answers_come_in_order_and_numbers_have_their_own_workers(camp: Camp) -> None:
    camp.gather()
    said = [camp.run(task.told, b"work", count=5) for _ in range(3)]
    for answers in said:
        assert [(text, number) for text, number, _ in answers] == [("work", n) for n in range(5)]


def test_a_single_task_goes_to_the_same_process_each_time(camp: Camp) -> None:
    camp.gather()
    assert len({camp.run(task.told)[0][2] for _ in range(5)}) == 1


def test_what_was_sent_once_is_not_sent_again(camp: Camp) -> None:
    key = hashlib.sha256(b"big").hexdigest()
    camp.gather(b"big")
    (answer,) = camp.crew.run([(task.told, SentWork(key), 0, {})])
    assert answer[0] == "big"


def test_work_of_a_process_that_dies_is_done_by_the_next(camp: Camp, tmp_path: Path) -> None:
    mark = tmp_path / "died"
    assert camp.run(task.dies_first, str(mark).encode(), count=3) == [0, 1, 2]
    assert mark.exists()


def test_work_that_kills_every_process_is_given_up_with_a_message(camp: Camp) -> None:
    with pytest.raises(DiedError, match=socket.gethostname()):
        camp.run(task.dies)
    assert camp.run(task.told, b"after")[0][0] == "after"


def test_a_worker_that_stands_still_is_replaced(camp: Camp, tmp_path: Path) -> None:
    before = len(camp.replaced)
    assert camp.run(task.stands_still_first, str(tmp_path / "stopped").encode()) == [0]
    (worker,) = camp.replaced[before:]
    assert worker.process > 0


def test_failures_of_tasks_leave_the_workers_alone(camp: Camp) -> None:
    before = camp.gather()
    with pytest.raises(RaisedError, match=r"raises\.<locals>\.Local: number 0"):
        camp.run(task.raises)
    with pytest.raises(TaskError, match="task: must fail; got 1"):
        camp.crew.run([(task.refuses, SentWork("none"), 1, {})])
    assert camp.gather() == before


def test_what_may_come_later_comes_after_all_that_waits(camp: Camp, tmp_path: Path) -> None:
    camp.gather()
    pipes, file = [tmp_path / f"pipe-{number}" for number in range(2)], tmp_path / "order"
    for pipe in pipes:
        os.mkfifo(pipe)

    def begun(function: Any, text: str, numbers: range, later: bool = False) -> list[Future[Any]]:
        data = {hashlib.sha256(text.encode()).hexdigest(): text.encode()}
        asked = [(function, SentWork(next(iter(data))), number, data) for number in numbers]
        return camp.crew.begin(asked, later)

    held = begun(task.waits, str(tmp_path / "pipe"), range(2))
    first, second = (pipe.open("w") for pipe in pipes)  # both workers are at it
    waiting = begun(task.notes, str(file), range(10, 13), later=True)
    waiting += begun(task.notes, str(file), range(3))
    first.close()
    schedule.wait(waiting)
    second.close()
    schedule.wait(held)
    assert sorted(file.read_text().split()[:3]) == ["0", "1", "2"]
    assert sorted(file.read_text().split()[3:]) == ["10", "11", "12"]


def test_work_for_its_own_worker_waits_for_it_while_another_is_idle(
    camp: Camp, tmp_path: Path
) -> None:
    camp.gather()
    pipe = tmp_path / "pipe-0"
    os.mkfifo(pipe)
    work = str(tmp_path / "pipe").encode()
    data = {hashlib.sha256(work).hexdigest(): work}
    held = camp.crew.begin([(task.waits, SentWork(next(iter(data))), 0, data)])
    with pipe.open("w"):  # the worker of number 0 is at it
        told = {hashlib.sha256(b"own").hexdigest(): b"own"}
        asked = [(task.told, SentWork(next(iter(told))), number, told) for number in range(2)]
        own = camp.crew.begin(asked, own=True)
        other = own[1].result(120)
        (free,) = camp.run(task.told, b"free")
        assert not own[0].done()
    schedule.wait(held)
    assert other[2] == free[2] != own[0].result(120)[2]


def test_several_threads_may_ask(camp: Camp) -> None:
    def ask(name: int) -> list[str]:
        return [camp.run(task.told, f"{name}".encode())[0][0] for _ in range(20)]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == [[str(n)] * 20 for n in range(4)]


def test_who_does_not_know_the_secret_is_turned_away(
    camp: Camp, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(AuthenticationError, match="digest"):
        Client(camp.address, authkey=b"guessed")
    assert camp.run(task.told, b"still")[0][0] == "still"
    # The thread that turns somebody away writes its line after it has closed the connection.
    wait_for(lambda: "turned away" in caplog.text, "the line in the log")


def test_a_crew_without_workers_tells_whoever_waits(tmp_path: Path) -> None:
    crew = Crew(door_at(str(tmp_path / "c")), SECRET, 1, lambda hello: None)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(crew.run, [(task.told, SentWork("x"), 0, {})])
        crew.fail(RunError("spark", "must be there", "none"))
        with pytest.raises(RunError, match="spark: must be there"):
            waiting.result()
    with pytest.raises(RunError, match="spark: must be there"):
        crew.run([(task.told, SentWork("x"), 0, {})])
    crew.close()


def test_who_knocks_and_says_nothing_keeps_nobody_out(tmp_path: Path) -> None:
    door = door_at(str(tmp_path / "crew"))
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(str(tmp_path / "crew"))
        crew = Crew(door, SECRET, 1, lambda hello: None)
        worker = Client(str(tmp_path / "crew"), authkey=SECRET)
        worker.send_bytes(packed(Hello(0, os.getpid(), 0, "here")))
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(crew.run, [(task.told, SentWork("x"), 0, {})])
            request = unpacked(worker.recv_bytes())
            worker.send_bytes(packed(TaskAnswer(request.unit, "done")))
            assert asked.result() == ["done"]
        crew.close()
        assert worker.recv_bytes() == BYE
        worker.close()


def test_a_worker_that_takes_nothing_is_replaced(camp: Camp) -> None:
    """More than a socket holds: whoever sends it would wait for ever."""
    before = len(camp.replaced)
    for process in camp.gather():
        os.kill(process, signal.SIGSTOP)
    large = bytes(8 << 20)
    ((text, _, _),) = camp.run(task.told, large)
    assert len(text) == len(large)
    assert len(camp.replaced) > before


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[tuple[Camp, Future[Any]]]:
    """A crew that is inside a task which does not end, and who waits for that."""
    camp, pipes = Camp(tmp_path), [str(tmp_path / name) for name in ("begun", "never")]
    for pipe in pipes:
        os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(camp.run, task.hangs, "\n".join(pipes).encode())
        with open(pipes[0]) as begun:
            assert begun.read() == ""
        yield camp, asked


def test_no_process_stays_inside_a_task_when_the_driver_goes(
    hanging: tuple[Camp, Future[Any]],
) -> None:
    camp, asked = hanging
    camp.close()  # which sees that all processes have ended
    with pytest.raises(RunError, match="crew: must be open"):
        asked.result()


def test_an_abort_waits_for_no_task(hanging: tuple[Camp, Future[Any]]) -> None:
    camp, asked = hanging
    camp.crew.abort(RunError("batch", "must not be cancelled", "an abort"))
    with pytest.raises(RunError, match="got an abort"):
        asked.result()
    assert len(camp.replaced) == 1
    camp.close()


def test_a_worker_that_is_let_go_at_work_ends_in_order(tmp_path: Path) -> None:
    """Map tasks of a batch that nobody wants any more are at work when a query stops."""
    address, pipe = str(tmp_path / "door"), tmp_path / "pipe-0"
    os.mkfifo(pipe)
    door = door_at(address)
    door.setblocking(True)
    code = "import sys; from tidegate.execute.resident.worker import serve; "
    code += "serve(sys.argv[1], bytes.fromhex(sys.argv[2]), 0, 0, beat_s=60)"
    words = [sys.executable, "-c", code, address, SECRET.hex()]
    worker = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    channel = admit(door.accept()[0], SECRET, 60)
    assert isinstance(unpacked(channel.recv_bytes()), Hello)
    key = hashlib.sha256(b"").hexdigest()
    data = {key: str(tmp_path / "pipe").encode()}
    channel.send_bytes(packed(TaskRequest(1, task.waits, SentWork(key), 0, data)))
    with pipe.open("w"):  # it has begun
        channel.send_bytes(BYE)
        channel.close()
    door.close()
    said = worker.communicate(timeout=60)[1]
    assert (worker.returncode, said) == (0, "")
