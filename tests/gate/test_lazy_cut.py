"""Folders that are opened bit by bit give the batches and frontiers of those that are open."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.gate.listing import File, MemoryFolder, PiecedSource
from tests.oracle.intake import PlainInlet, PlainIntake
from tidegate.batch import MAX_US, MIN_US
from tidegate.errors import SourceError
from tidegate.gate import cut as cut_module
from tidegate.gate import folder as folder_module
from tidegate.gate.cut import Cut
from tidegate.gate.intake import Intake


@st.composite
def files(draw: st.DrawFn) -> File:
    """Times around a start of their own: in order or not, with and without gaps and NULLs."""
    start = draw(st.integers(0, 60))
    step = st.integers(draw(st.sampled_from([0, -3])), 6)
    nulls = draw(st.sampled_from([0, 0, 0, 3]))
    value = start
    values: list[int | None] = []
    for _ in range(draw(st.integers(0, 9))):
        values.append(None if draw(st.integers(0, 5)) == 0 or len(values) < nulls else value)
        value += draw(step)
    pieces: list[int] = []
    while sum(pieces) < len(values):
        pieces.append(draw(st.integers(1, len(values) - sum(pieces))))
    stated = tuple(draw(st.integers(0, 3)) > 0 for _ in pieces)
    return File(values, tuple(pieces), stated)


def facts(cut: Cut | None) -> Any:
    """All that a batch takes over from the gate."""
    if cut is None:
        return None
    parts = [
        (
            p.stream,
            p.track.source.id,
            p.track.order,
            (p.slice.start, p.slice.new_from, p.slice.stop),
            None if p.slice.late is None else p.slice.late.tolist(),
            (p.slice.late_rows, p.slice.low_us, p.slice.high_us),
        )
        for p in cut.parts
    ]
    return parts, cut.rows, cut.previous_us, cut.frontier_us, cut.exhausted


class Twins:
    """The same folders before the lazy gate and before the plain one."""

    def __init__(self, data: st.DataObject, live: bool, most: int) -> None:
        self.hold = data.draw(st.booleans())
        self.disorder_us = data.draw(st.sampled_from([0, 4]))
        self.idle_us = data.draw(st.sampled_from([None, None, 0, 2_000_000]))
        self.promised_us = data.draw(st.sampled_from([MIN_US, 20]))
        self.streams = data.draw(st.lists(st.integers(0, 1), min_size=1, max_size=most))
        self.folders = [MemoryFolder(more=live) for _ in self.streams]
        self.lazy = Intake(self.hold)
        self.plain = PlainIntake(self.hold)
        self.plain.inlets = [
            PlainInlet(s, self.disorder_us, live, self.idle_us) for s in self.streams
        ]
        self.count = 0
        self.now = 0.0
        self.started = False

    def arrive(self, inlet: int, file: File) -> None:
        """A file comes; its name may sort before those that are there."""
        name = f"{inlet}/{(7 * self.count) % 100:02d}"
        self.count += 1
        self.folders[inlet].files[name] = file
        promised_us = MIN_US if self.started else self.promised_us
        self.plain.add(self.plain.inlets[inlet], PiecedSource(name, file), promised_us)

    def start(self) -> None:
        promised_us = MIN_US if self.started else self.promised_us
        self.started = True
        for stream, folder in zip(self.streams, self.folders, strict=True):
            self.lazy.add(stream, folder, self.disorder_us, self.idle_us, promised_us, now=self.now)

    def restart(self, forget: Callable[[], bool]) -> None:
        """Go on in a new process; of the consumed files some are gone."""
        frontier_us, saved = self.lazy.frontier_us, json.loads(json.dumps(self.lazy.saved()))
        for folder in self.folders:
            for name in [n for n in folder.files if n not in folder.kept and forget()]:
                del folder.files[name]
        self.folders = [folder.again() for folder in self.folders]
        self.lazy = Intake(self.hold)
        self.lazy.restore(frontier_us, saved)
        self.start()
        self.lazy.check_complete()
        for inlet in self.plain.inlets:
            inlet.spoke_at = self.now

    def step(self, limit_rows: int) -> bool:
        """One batch of both, a second later; whether there is nothing left to do."""
        self.now += 1.0
        fresh = [folder.unlisted() for folder in self.folders]
        self.lazy.discover(self.now)
        for inlet, new in zip(self.plain.inlets, fresh, strict=True):
            inlet.spoke_at = self.now if new and inlet.live else inlet.spoke_at
        self.lazy.look_ahead(limit_rows)
        found = self.lazy.next_cut(limit_rows, self.now)
        self.lazy.saved()
        assert facts(found) == facts(self.plain.next_cut(limit_rows, self.now))
        return found is None or found.exhausted


@settings(max_examples=max(150, settings().max_examples))
@given(st.data())
def test_a_folder_is_cut_as_if_all_of_it_were_open(data: st.DataObject) -> None:
    twins = Twins(data, live=False, most=3)
    for inlet in range(len(twins.streams)):
        for file in data.draw(st.lists(files(), min_size=1, max_size=6)):
            twins.arrive(inlet, file)
    twins.start()
    limit_rows = data.draw(st.integers(1, 12))
    while not twins.step(limit_rows):
        pass
    assert twins.lazy.frontier_us == twins.plain.frontier_us == MAX_US
    assert not any(folder.kept for folder in twins.folders), "all files are consumed"


@st.composite
def crowds(draw: st.DrawFn) -> File:
    """Very few times, each again and again, in pieces that statistics tell of or not."""
    pieces = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=5)))
    eights, nines = draw(st.integers(0, 4)), draw(st.integers(0, 2))
    values = [7] * sum(pieces) + [8] * eights + [9] * nines
    return File(values[-sum(pieces) :], pieces, tuple(draw(st.booleans()) for _ in pieces))


@settings(max_examples=max(60, settings().max_examples))
@given(st.data())
def test_rows_of_one_time_are_cut_by_the_order_of_their_files(data: st.DataObject) -> None:
    """A few rows are looked at in one go, so that it counts where the last one wanted is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cut_module, "_LEAST_LOOK_ROWS", data.draw(st.sampled_from([1, 2, 3])))
        for cost in ("_ROW_COST", "_SOURCE_COST", "_OPENING_COST"):
            patch.setattr(cut_module, cost, data.draw(st.sampled_from([0, 1, 1000])))
        twins = Twins(data, live=False, most=3)
        for inlet in range(len(twins.streams)):
            for file in data.draw(st.lists(crowds(), min_size=1, max_size=5)):
                twins.arrive(inlet, file)
        twins.start()
        limit_rows = data.draw(st.integers(1, 12))
        while not twins.step(limit_rows):
            pass
        assert twins.lazy.frontier_us == twins.plain.frontier_us == MAX_US


@settings(max_examples=max(150, settings().max_examples))
@given(st.data())
def test_restarts_and_files_that_come_later_change_nothing(data: st.DataObject) -> None:
    """Also where names do not sort as files arrive, and where consumed files are gone."""
    twins = Twins(data, live=True, most=2)
    for inlet in range(len(twins.streams)):
        twins.arrive(inlet, data.draw(files()))
    twins.start()
    restarts = 0
    for _ in range(data.draw(st.integers(1, 8))):
        for inlet in range(len(twins.streams)):
            for file in data.draw(st.lists(files(), max_size=3)):
                twins.arrive(inlet, file)
        twins.step(data.draw(st.integers(1, 12)))
        if data.draw(st.booleans()):
            twins.restart(lambda: data.draw(st.booleans()))
            restarts += 1
    event(f"restarts: {restarts}")


def spaced(files: int, rows: int, overlap: int) -> dict[str, File]:
    """Files that follow each other in time, each beginning before the one before it ends."""
    found = {}
    for number in range(files):
        first = number * (rows - overlap)
        found[f"{number:05d}"] = File(list(range(first, first + rows)), (rows,), (True,))
    return found


@pytest.mark.parametrize("overlap", [0, 200])
def test_a_small_batch_decodes_a_few_files_of_many(overlap: int) -> None:
    folder = MemoryFolder(spaced(200, 500, overlap))
    intake = Intake(hold=True)
    intake.add(0, folder, 0)
    opened = []
    for _ in range(20):
        before = len(folder.decoded)
        intake.look_ahead(100)
        assert intake.next_cut(100, 0.0) is not None
        opened.append(len(folder.decoded) - before)
    assert opened[0] <= 3
    assert max(opened) <= 2
    assert sum(opened) <= 2 + 20 * 100 // (500 - overlap) * 2


def test_a_later_piece_is_not_decoded_before_its_time() -> None:
    """The other file's rows all come before what the statistics say of the second piece."""
    folder = MemoryFolder(
        {
            "a": File([1, 2, 100, 101], (2, 2), (True, True)),
            "b": File(list(range(3, 53)), (50,), (True,)),
        }
    )
    intake = Intake(hold=True)
    intake.add(0, folder, 0)
    intake.next_cut(40, 0.0)
    assert "a[2]" not in folder.decoded
    assert intake.frontier_us == 2, "the first file holds the frontier at its newest time"


def test_files_without_statistics_are_looked_into_once_and_not_kept_open() -> None:
    unstated = {f"{n:03d}": File([10 * n, 10 * n + 1], (2,), (False,)) for n in range(50)}
    folder = MemoryFolder(unstated)
    intake = Intake(hold=False)
    intake.add(0, folder, 0)
    intake.next_cut(2, 0.0)
    assert len(folder.decoded) == 50
    assert len(intake.inlets[0].tracks) <= 2
    decodes = folder.decoded.total()
    while (cut := intake.next_cut(2, 0.0)) is not None and not cut.exhausted:
        pass
    assert folder.decoded.total() - decodes <= 2 * 50


def test_one_time_for_all_rows_costs_no_more_than_the_batch() -> None:
    """Rows with equal keys count by their files; nobody looks for the end of the time."""
    pieces = (2000,) * 50
    folder = MemoryFolder({n: File([7] * 100_000, pieces, (True,) * 50) for n in "ab"})
    intake = Intake(hold=False)
    intake.add(0, folder, 0)
    cut = intake.next_cut(1000, 0.0)
    assert cut is not None
    assert [p.track.source.id for p in cut.parts] == ["a"]
    assert len(intake.inlets[0].tracks["a"].keys) < 3000


@pytest.mark.parametrize("stated", [True, False])
def test_files_decoded_side_by_side_make_the_same_cuts(
    stated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cuts(at_once: int) -> tuple[list[list[tuple[str, int]]], Counter[str]]:
        monkeypatch.setattr(folder_module, "_AT_ONCE", at_once)
        monkeypatch.setattr(folder_module, "_LARGE_ROWS", 1)
        times = {f"{n:02d}": [10 * n + i // 2 for i in range(24)] for n in range(12)}
        files = {name: File(of, (12, 12), (stated, stated)) for name, of in times.items()}
        folder = MemoryFolder(files)
        intake = Intake(hold=False)
        intake.add(0, folder, 0)
        found = []
        while (cut := intake.next_cut(20, 0.0)) is not None:
            found.append([(p.track.source.id, p.slice.stop) for p in cut.parts])
            if cut.exhausted:
                break
        return found, folder.decoded

    (alone, decoded), (together, decoded_together) = cuts(1), cuts(4)
    assert together == alone
    assert sum(len(parts) for parts in together) > 12
    assert decoded_together.total() <= decoded.total() + (0 if stated else 4)


def test_a_file_that_cannot_be_read_is_told_at_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(at_once: int) -> int:
        monkeypatch.setattr(folder_module, "_AT_ONCE", at_once)
        monkeypatch.setattr(folder_module, "_LARGE_ROWS", 1)
        files = {f"{n}": File([10 * n, 10 * n + 1], (2,), (True,)) for n in range(6)}
        folder = MemoryFolder(files, broken="4[0]")
        intake = Intake(hold=False)
        intake.add(0, folder, 0)
        rows = 0
        for _ in range(6):
            try:
                cut = intake.next_cut(2, 0.0)
            except SourceError:
                return rows
            rows += 0 if cut is None else cut.rows
        raise AssertionError("nobody was told")

    assert taken(4) == taken(1) > 0


@given(st.lists(st.lists(st.integers(-9, 9)), min_size=1, max_size=5), st.data())
def test_the_first_rows_of_sorted_runs(runs: list[list[int]], data: st.DataObject) -> None:
    """By searching and by partition, as by sorting all."""
    rows = sorted((key, run) for run, keys in enumerate(runs) for key in keys)
    keys = [np.array(sorted(run), np.int64) for run in runs]
    if not rows:
        return
    limit_rows = data.draw(st.integers(1, len(rows)))
    first = rows[:limit_rows]
    wanted = [sum(of == run for _, of in first) for run in range(len(runs))]
    for searched_rows in (0, 8192):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cut_module, "_SEARCHED_ROWS", searched_rows)
            assert cut_module._first_rows(keys, limit_rows) == (wanted, first[-1])


@settings(max_examples=settings().max_examples // 2)
@given(st.lists(files(), min_size=1, max_size=6), st.integers(1, 9))
def test_a_file_that_is_unread_can_leave(chosen: list[File], limit_rows: int) -> None:
    """What was taken before is flushed; the others go on as if it had never been there."""
    names = [f"{n:03d}" for n in range(len(chosen))]
    folder = MemoryFolder(dict(zip(names, chosen, strict=True)))
    intake = Intake(hold=True)
    intake.add(0, folder, 0)
    gone = names[-1]
    if chosen[-1].values:
        intake.remove(gone)
    taken: dict[str, int] = {}
    for _ in range(200):
        cut = intake.next_cut(limit_rows, 0.0)
        if cut is None:
            break
        for part in cut.parts:
            taken[part.track.source.id] = part.slice.stop
        if cut.exhausted:
            break
    wanted = {n: len(f.values) for n, f in zip(names[:-1], chosen) if f.values}
    assert taken == wanted
    assert intake.frontier_us == MAX_US
