"""The simulated schedule: one thread at a time, one course to a seed, processes that die whole."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tidegate import schedule
from tidegate.testing.simulation.process import Killed
from tidegate.testing.simulation.schedule import Deadlock
from tidegate.testing.simulation.world import World


def race(seed: int) -> list[str]:
    """The order in which four threads of two processes do their steps."""
    world, done = World(seed), list[str]()

    def steps(name: str) -> Callable[[], None]:
        def work() -> None:
            for number in range(5):
                done.append(f"{name}{number}")
                world.schedule.step("a step")

        return work

    def main(name: str) -> None:
        beside = schedule.current().start("beside", steps(f"{name} beside "))
        steps(f"{name} ")()
        schedule.wait([beside])

    with world.entered():
        futures = [world.begin(name, lambda name=name: main(name))[1] for name in ("a", "b")]
        world.schedule.run(lambda: all(f.done() for f in futures))
    return done


def test_a_seed_gives_one_course_and_others_give_others() -> None:
    courses = [race(seed) for seed in range(8)]
    assert courses == [race(seed) for seed in range(8)]
    assert len({tuple(course) for course in courses}) == 8
    assert all(sorted(course) == sorted(courses[0]) for course in courses)


def test_a_process_dies_at_its_next_step_with_all_its_threads_and_its_cleanup_is_void() -> None:
    world, seen = World(1), list[str]()

    def beside() -> None:
        try:
            schedule.current().clock.sleep(1000)
        finally:
            seen.append("beside unwound")

    def main() -> None:
        world.disk.create("/kept").close()
        running = schedule.current().start("beside", beside)
        try:
            while True:
                world.schedule.step("a step")
        finally:
            seen.append("main unwound")
            world.disk.unlink("/kept")
            seen.append("never")
            running.result()

    with world.entered():
        process, future = world.begin("victim", main)
        process.at_step = lambda number, name: world.kill(process) if number == 9 else None
        world.schedule.run(future.done)
        assert isinstance(future.exception(), Killed)
        assert world.disk.files("/") == ["/kept"]
    assert sorted(seen) == ["beside unwound", "main unwound"]


def test_locks_of_a_dead_process_are_let_go_and_those_of_one_that_stands_still_are_not() -> None:
    world = World(1)

    def main() -> None:
        world.disk.claim("/lock", b"first")
        while True:
            world.schedule.step("a step")

    def second() -> None:
        world.disk.claim("/lock", b"second")

    with world.entered():
        first, _ = world.begin("first", main)
        first.at_step = lambda number, name: world.pause(first) if number == 5 else None
        world.schedule.run(lambda: first.paused)
        _, refused = world.begin("second", second)
        world.schedule.run(refused.done)
        assert isinstance(refused.exception(), BlockingIOError)
        world.kill(first)
        _, taken = world.begin("second", second)
        world.schedule.run(taken.done)
        assert taken.exception() is None


def test_what_stands_still_goes_on_after_so_many_steps_of_others() -> None:
    world, seen = World(3), list[str]()

    def slow() -> None:
        world.schedule.step("a step")
        seen.append("slow")

    def busy() -> None:
        for _ in range(200):
            world.schedule.step("a step")
        seen.append("busy")

    with world.entered():
        process, future = world.begin("slow", slow)
        process.at_step = lambda number, name: world.pause(process, 120)
        _, other = world.begin("busy", busy)
        world.schedule.run(lambda: future.done() and other.done())
    assert sorted(seen) == ["busy", "slow"]
    assert world.schedule.steps >= 200


def test_threads_that_wait_for_each_other_are_told() -> None:
    world = World(1)
    one, two = threading.Lock(), threading.Lock()

    def main(first: threading.Lock, second: threading.Lock) -> None:
        with schedule.current().hold(first):
            schedule.current().clock.sleep(1)
            with schedule.current().hold(second):
                pass

    def enter() -> None:
        world.schedule.run(futures[0].done)

    with world.entered():
        futures = [
            world.begin("driver", lambda a=a, b=b: main(a, b))[1]
            for a, b in ((one, two), (two, one))
        ]
        with pytest.raises(Deadlock, match=r"driver 1, driver: waits for a lock\ndriver 2, driver"):
            enter()


def test_time_passes_when_all_sleep_and_a_wait_can_be_over() -> None:
    world = World(1)

    def main() -> float:
        clock = schedule.current().clock
        began = clock.now()
        late = schedule.current().start("late", lambda: clock.sleep(60))
        with pytest.raises(TimeoutError):
            late.result(10)
        assert 10 <= clock.now() - began < 11
        late.result()
        return clock.now() - began

    with world.entered():
        _, future = world.begin("driver", main)
        world.schedule.run(future.done)
        assert 60 <= future.result() < 61


def test_a_line_does_one_after_the_other() -> None:
    world, seen = World(5), list[int]()

    def work(number: int) -> None:
        for _ in range(10):
            world.schedule.step("a step")
        seen.append(number)

    def main() -> None:
        line = schedule.current().line("line")
        for number in range(4):
            line.submit(work, number)
        line.shutdown()
        assert seen == [0, 1, 2, 3]

    with world.entered():
        _, future = world.begin("driver", main)
        world.schedule.run(future.done)
        future.result()
