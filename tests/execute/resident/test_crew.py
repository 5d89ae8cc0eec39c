"""A crew of real processes: who gets which work, and what happens when one dies, hangs or fails."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from pathlib import Path
from threading import Thread

import pytest

from tests.execute.resident import task
from tidegate.errors import RunError, TaskError
from tidegate.execute.resident.channel import door_at
from tidegate.execute.resident.crew import Crew, DiedError
from tidegate.execute.resident.message import Hello, RaisedError
from tidegate.execute.work import Sent

SIZE = 2
SECRET = b"between us"


class Camp:
    """A crew, and somebody who starts its workers, and starts them again when they end."""

    def __init__(self, folder: Path) -> None:
        self.replaced: list[Hello] = []
        self.address = str(folder / "crew")
        self.crew = Crew(door_at(self.address), SECRET, SIZE, self._replace, hung_s=1.0)
        self._ending = False
        self._keepers = [Thread(target=self._keep, args=(n,)) for n in range(SIZE)]
        for keeper in self._keepers:
            keeper.start()

    def run(self, function, data: bytes = b"", count: int = 1) -> list:
        key = hashlib.sha256(data).hexdigest()
        return self.crew.run([(function, Sent(key), n, {key: data}) for n in range(count)])

    def gather(self, data: bytes = b"") -> None:
        """Wait until all workers have come, and have been sent something."""
        while len({process for _, _, process in self.run(task.told, data, count=8)}) < SIZE:
            pass

    def close(self) -> None:
        self._ending = True
        self.crew.close()
        for keeper in self._keepers:
            keeper.join()

    def _keep(self, number: int) -> None:
        command = [sys.executable, "-m", task.__name__, self.address]
        while not self._ending:
            subprocess.run([*command, SECRET.hex(), str(number)], check=False)

    def _replace(self, worker: Hello) -> None:
        self.replaced.append(worker)
        os.kill(worker.process, signal.SIGKILL)


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
    (answer,) = camp.crew.run([(task.told, Sent(key), 0, {})])
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
    (_, _, before), *_ = camp.run(task.told)
    with pytest.raises(RaisedError, match=r"raises\.<locals>\.Local: number 0"):
        camp.run(task.raises)
    with pytest.raises(TaskError, match="task: must fail; got 1"):
        camp.crew.run([(task.refuses, Sent("none"), 1, {})])
    assert camp.run(task.told)[0][2] == before


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
    assert "turned away" in caplog.text


def test_a_crew_without_workers_tells_whoever_waits(tmp_path: Path) -> None:
    crew = Crew(door_at(str(tmp_path / "c")), SECRET, 1, lambda hello: None)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(crew.run, [(task.told, Sent("x"), 0, {})])
        crew.fail(RunError("spark", "must be there", "none"))
        with pytest.raises(RunError, match="spark: must be there"):
            waiting.result()
    with pytest.raises(RunError, match="spark: must be there"):
        crew.run([(task.told, Sent("x"), 0, {})])
    crew.close()
