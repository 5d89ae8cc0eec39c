"""Which states of earlier batches must be there after files of theirs were damaged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.seed import SEED
from tests.simulation.check import CHECKPOINT, Wrong
from tests.simulation.course import Course, small_pieces
from tests.simulation.fault import DAMAGES, Damage
from tests.simulation.harm import damaged
from tests.simulation.scenario import LONG_US, Scenario, Start, scenario
from tidegate.state.archive.past import PastStates
from tidegate.state.store import Store
from tidegate.testing.simulation.life import Ended

Between = Callable[["Damaged"], None]


class Damaged(Course):
    """A course in which something happens between its first life and its second."""

    def __init__(self, scenario: Scenario, between: Between) -> None:
        super().__init__(scenario)
        self.between = between
        self.batches: list[int] = []
        """Those whose states are there in the end."""

    def live(self, name: str, start: Start) -> Ended:
        ended = super().live(name, start)
        if name == "life 0":
            self.between(self)
        return ended

    def files(self, folder: str) -> list[str]:
        return self.world.disk.files(f"{CHECKPOINT}/{folder}")

    def damage(self, path: str, kind: str) -> None:
        self.harmed(damaged(self.world, self.check, path, Damage(0, kind, 0.5, staged=False)))

    def remove(self, path: str) -> None:
        self.world.disk.remove(path)

    def run(self) -> None:
        super().run()
        with self.world.entered():
            self.batches = PastStates(Store.open(CHECKPOINT)).batches


def course(between: Between) -> Damaged:
    """Twelve batches or more, whose states are all kept; the first life makes nine of them."""
    one = next(
        s
        for s in (scenario(seed, faults=0) for seed in range(SEED, SEED + 100))
        if not s.follow and all(not stream.folder for stream in s.streams)
    )
    last = replace(one.starts[0], batch_rows=2, keep_us=LONG_US, asked=(), switches=())
    done = Damaged(one.with_starts([replace(last, batches=9), last]), between)
    with small_pieces():
        done.run()
    return done


@pytest.mark.parametrize("kind", DAMAGES)
def test_batches_of_a_damaged_file_of_the_archive_are_let_go(kind: str) -> None:
    done = course(lambda course: course.damage(course.files("archive")[1], kind))
    assert done.undo == []
    assert done.check.let_go == [{3, 4, 5}]
    assert done.batches == [0, 1, 2, *range(6, done.batches[-1] + 1)]


@pytest.mark.parametrize("kind", DAMAGES)
def test_with_a_manifest_those_before_it_are_let_go(kind: str) -> None:
    done = course(lambda course: course.damage(course.files("manifest")[-3], kind))
    assert done.check.let_go == [{6}]
    assert done.batches == [*range(6), *range(7, done.batches[-1] + 1)]


@pytest.mark.parametrize("newer", [1, 2])
def test_a_damaged_manifest_that_a_run_needs_is_told_and_repaired(newer: int) -> None:
    done = course(lambda course: course.damage(course.files("manifest")[-newer], "cut"))
    assert done.check.let_go == []
    assert any("StateError" in line for line in done.report.story)
    assert done.batches == list(range(done.batches[-1] + 1))


def test_an_archive_that_is_gone_undamaged_is_wrong() -> None:
    with pytest.raises(Wrong, match=r"the states of batches .* must be there"):
        course(lambda course: course.remove(course.files("archive")[1]))


def test_batches_go_together_or_not_at_all() -> None:
    def between(course: Damaged) -> None:
        course.check.let_go.append(frozenset(range(6)))
        course.remove(course.files("archive")[1])

    with pytest.raises(Wrong, match=r"the states of batches .* must be there"):
        course(between)
