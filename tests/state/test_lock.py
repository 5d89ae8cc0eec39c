"""One run at a time has a checkpoint, and loses it when its process ends, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow.fs import _MockFileSystem

from tidegate.errors import CheckpointError
from tidegate.state.lock import LOCK, Lock
from tidegate.state.store import Store

HOLDER = """
import sys
from tidegate.state.lock import Lock
from tidegate.state.store import Store
lock = Lock(Store.open(sys.argv[1]))
lock.take()
print("taken", flush=True)
sys.stdin.read()
lock.release()
print("released", flush=True)
sys.stdin.close()
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store.open(str(tmp_path / "checkpoint"))
    made.create({"q": 1})
    return made


def hold(store: Store) -> subprocess.Popen[str]:
    """Another process that has taken the checkpoint."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, store.location],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "taken\n"
    return holder


def test_a_checkpoint_that_another_process_has(store: Store) -> None:
    holder = hold(store)
    lock = Lock(store)
    with pytest.raises(CheckpointError) as caught:
        lock.take()
    lock.release()
    assert caught.value.where == store.location
    assert caught.value.got == f"one that process {holder.pid} uses"
    assert "Wait until it has ended" in str(caught.value)
    assert holder.communicate("")[0] == "released\n"
    lock.take()
    lock.release()


def test_a_process_that_is_killed_lets_go(store: Store) -> None:
    holder = hold(store)
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    lock = Lock(store)
    lock.take()
    lock.release()


def test_another_query_of_this_process_is_refused(store: Store) -> None:
    """As when a cell of a notebook is run twice."""
    one, two = Lock(store), Lock(store)
    one.take()
    with pytest.raises(CheckpointError) as caught:
        two.take()
    two.release()
    assert caught.value.got == f"one that another query of this very process ({os.getpid()}) uses"
    assert "query.stop()" in str(caught.value)
    with pytest.raises(CheckpointError):
        two.take()
    one.release()
    one.release()
    two.take()
    two.release()


def test_other_code_that_opens_and_closes_the_file_does_not_end_it(store: Store) -> None:
    lock = Lock(store)
    lock.take()
    Path(store.files.full(LOCK)).read_bytes()
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.run(
            [sys.executable, "-c", HOLDER, store.location],
            check=True,
            env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
    lock.release()
    hold(store).communicate()


def test_a_remote_checkpoint_is_not_locked() -> None:
    store = Store.open((_MockFileSystem(), "some/checkpoint"))
    store.create({"q": 1})
    lock = Lock(store)
    lock.take()
    lock.release()
    assert [entry.name for entry in store.files.list("")] == ["meta.json"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    lock = Lock(Store.open(str(tmp_path / "none")))
    with pytest.raises(CheckpointError, match="lock: must be writable; got No such file"):
        lock.take()
