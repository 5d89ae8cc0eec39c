"""The failure model: stop at every step of a batch, restart, and find one whole state."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyarrow.fs import _MockFileSystem

from tests.state.faulty import Crash, Steps, faulty
from tests.state.mapping import mappings
from tests.state.rows import rows, triples
from tidegate.errors import StateError
from tidegate.state.manifest import Manifest
from tidegate.state.segment.segment import Segment, read_segment, write_segment
from tidegate.state.store import Store
from tidegate.storage.whole_file import FileWriter, is_temporary

INSTANCES = 2
FOLDERS = ("manifest", "segment", "gate", "staged")


def batch(store: Store, number: int, before: Manifest | None) -> Manifest:
    """One batch as the loop does it: segments, staged output, commit, deletions."""
    made = []
    for instance in range(INSTANCES):
        table = rows([(instance, number, value) for value in range(20)])
        made.append(write_segment(store, f"{number:08d}-{instance:04d}", table, "pane", number))
    store.write(f"staged/{number:08d}.arrow", b"output %d" % number)
    held = before.operators["a"] if before else ()
    operators = {"a": (*held, *made)[-2 * INSTANCES :]}
    manifest = Manifest(number, mappings(0, 1), number * 100, operators=operators)
    store.publish(manifest)
    store.retire(before, manifest)
    store.delete(f"staged/{number - 1:08d}.arrow")
    return manifest


def restart(store: Store) -> Manifest | None:
    """What a start does; checks that the state found is whole, and that nothing else is left."""
    latest = store.latest()
    store.clean()
    assert latest == store.latest()
    held = [entry.name for f in FOLDERS for entry in store.files.list(f)]
    assert not any(map(is_temporary, held))
    assert store.unreferenced(store.kept()) == []
    for segment in latest.segments() if latest else ():
        number, instance = map(int, segment.name.split("-"))
        expected = [(instance, number, value) for value in range(20)]
        assert triples(read_segment(store, segment)) == expected
    return latest


def contents(store: Store) -> dict[str, bytes]:
    return {e.name: store.read(e.name) for f in FOLDERS for e in store.files.list(f)}


def go_on(store: Store, upto: int) -> dict[str, bytes]:
    """Restart and run up to a batch; what the store holds then."""
    latest = restart(store)
    for number in range(latest.batch + 1 if latest else 0, upto + 1):
        latest = batch(store, number, latest)
    store.clean()
    return contents(store)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Steps], None]]:
    """Puts the system calls that local writes and deletes make under the control of steps."""
    steps = [Steps()]

    def watch(owner: object, name: str, half: bool = False) -> None:
        real = getattr(owner, name)

        def call(*args: object, **kwargs: object) -> object:
            try:
                steps[0].take(name)
            except BaseException:
                if half:
                    real(args[0], bytes(args[1])[:3], *args[2:])  # type: ignore[call-overload]
                    args[0]._sink.flush()  # type: ignore[attr-defined]
                raise
            return real(*args, **kwargs)

        monkeypatch.setattr(owner, name, call)

    for name in ("fsync", "replace", "unlink"):
        watch(os, name)
    watch(FileWriter, "write", half=True)

    def control(new: Steps) -> None:
        steps[0] = new

    yield control
    steps[0] = Steps()


def _crash_everywhere(prepare: Callable[[], tuple[Store, Callable[[Steps], None]]]) -> None:
    golden_store, _ = prepare()
    golden = go_on(golden_store, 4)
    found = set()
    for step in itertools.count():
        store, control = prepare()
        before = restart(store)
        steps = Steps(step)
        control(steps)
        try:
            batch(store, 3, before)
        except Crash:
            control(Steps())
        else:
            break
        after = store.handle().open()
        latest = after.latest()
        assert latest is not None
        found.add(latest.batch)
        assert go_on(after, 4) == golden
    assert found == {2, 3}  # the old state up to the rename of the manifest, the new one after it
    assert step > 10


def test_a_local_run_killed_at_any_step(tmp_path: Path, watched: Callable[[Steps], None]) -> None:
    numbers = itertools.count()

    def prepare() -> tuple[Store, Callable[[Steps], None]]:
        store = Store.open(str(tmp_path / str(next(numbers))))
        store.create({"q": 1})
        go_on(store, 2)
        return store, watched

    _crash_everywhere(prepare)


def test_a_remote_run_killed_at_any_step() -> None:
    def prepare() -> tuple[Store, Callable[[Steps], None]]:
        fs = faulty(_MockFileSystem(), Steps())
        store = Store.open((fs, "ckpt"))
        store.create({"q": 1})
        go_on(store, 2)

        def control(steps: Steps) -> None:
            fs.handler.steps = steps

        return store, control

    _crash_everywhere(prepare)


def test_a_full_disk_at_any_step_is_an_error_with_a_remedy(
    tmp_path: Path, watched: Callable[[Steps], None]
) -> None:
    seen = 0
    for step in itertools.count():
        store = Store.open(str(tmp_path / str(step)))
        store.create({"q": 1})
        go_on(store, 2)
        before = contents(store)
        watched(_OnlyOnce(step, OSError(errno.ENOSPC, "No space left on device")))
        error = _error_of(lambda store=store: batch(store, 3, store.latest()))
        watched(Steps())
        if error is None:
            break
        seen += 1
        assert "got No space left on device" in str(error)
        assert "restart" in str(error)
        assert str(tmp_path) in error.where
        held = contents(store)
        assert not any(map(is_temporary, held))
        if "manifest/00000003.json" not in held:
            assert {name: held[name] for name in before} == before
        go_on(store, 4)
    assert seen > 10


def _error_of(action: Callable[[], object]) -> StateError | None:
    try:
        action()
    except StateError as error:
        return error
    return None


class _OnlyOnce(Steps):
    """The chosen step fails, and those after it work again, as cleaning up does on a full disk."""

    def take(self, kind: str) -> None:
        step, self.count = self.count, self.count + 1
        if step == self.fail_at:
            raise self.error


def test_creating_killed_at_any_step(tmp_path: Path, watched: Callable[[Steps], None]) -> None:
    for step in itertools.count():
        store = Store.open(str(tmp_path / str(step)))
        watched(Steps(step))
        try:
            store.create({"q": 1})
        except Crash:
            watched(Steps())
        else:
            break
        again = store.handle().open()
        assert again.meta() in (None, {"q": 1})
        again.create({"q": 1})
        again.clean()
        assert [entry.name for entry in again.files.list("")] == ["meta.json"]
    assert step > 3


def test_two_attempts_of_a_task_do_not_mix(tmp_path: Path) -> None:
    """A zombie that still writes the same segment changes nothing for its successor."""
    store = Store.open(str(tmp_path))
    made: list[Segment] = []
    table = rows([(0, 0, value) for value in range(50)])
    with store.files.create("segment/s.arrow") as zombie:
        zombie.write(b"half of it")
        made.append(write_segment(store, "s", table, "pane", 0))
        assert triples(read_segment(store, made[0])) == triples(table)
        zombie.write(store.read("segment/s.arrow"))  # another name until it is done
    write_segment(store, "s", table, "pane", 0)
    assert triples(read_segment(store, made[0])) == triples(table)


def test_a_writer_whose_temporary_file_was_cleaned_fails_alone(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    store.create({})

    def overtaken() -> None:
        with store.files.create("segment/s.arrow") as out:
            out.write(b"x")
            assert store.handle().open().clean().temporary == 1

    with pytest.raises(StateError, match="must be writable"):
        overtaken()
    assert store.files.list("segment") == []


CHILD = """
import sys, itertools
from tests.state.test_crash import batch, restart
from tidegate.state.store import Store
store = Store.open(sys.argv[1])
store.create({"q": 1})
latest = restart(store)
print("up", flush=True)
for number in itertools.count(latest.batch + 1 if latest else 0):
    latest = batch(store, number, latest)
    if number % 10 == 9:
        print(number, flush=True)
"""


@pytest.mark.whole
def test_a_process_that_is_killed(tmp_path: Path) -> None:
    reached = -1
    for pause_s in (0.003, 0.011, 0.02):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        child.stdout.readline()
        time.sleep(pause_s)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        latest = restart(Store.open(str(tmp_path)))
        assert latest is not None
        assert latest.batch > reached
        reached = latest.batch
    assert reached >= 29
