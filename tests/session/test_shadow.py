"""A query in the shadow of a checkpoint: the same rows, a switch at one watermark, and back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tidegate.cli.main import invoke
from tidegate.driver.metric.registry import COUNTERS
from tidegate.session.verification.rerun import RecordedRun
from tidegate.session.verification.shadow import Shadow, ShadowFacts
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store
from tidegate.storage.disk import using
from tidegate.testing.tap import DiskChange, TappedDisk

CREATE = "CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT) FROM 'in' TIME ts;\n"
OLD = "SELECT k, SUM(v) AS total FROM s [RANGE 10 SECONDS] GROUP BY k"
NEW = "SELECT k, SUM(v) AS total, MAX(v) AS top FROM s [RANGE 20 SECONDS] WHERE v > 2 GROUP BY k"


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five minutes of input, and a checkpoint of the old query that has read all of it."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    add("a", 0, 300)
    Path("old.sql").write_text(CREATE + OLD)
    Path("new.sql").write_text(CREATE + NEW)
    run("old", "ck", "out")
    return tmp_path


def add(name: str, first: int, last: int) -> None:
    """A file with a tuple a second."""
    rows = (
        f"2024-01-01T00:{i // 60:02d}:{i % 60:02d}Z,{'abc'[i % 3]},{i % 17}\n"
        for i in range(first, last)
    )
    Path(f"in/{name}.csv").write_text("ts,k,v\n" + "".join(rows))


def run(query: str, checkpoint: str, out: str, code: int = 0) -> None:
    words = f"run {query}.sql --master none --available-now --batch-rows 70"
    assert invoke([*words.split(), "--checkpoint", checkpoint, "--out", out]) == code


def rows(out: str) -> list[dict[str, object]]:
    parts = sorted(Path(out).glob("batch=*/*.parquet"))
    return [row for part in parts for row in pq.read_table(part).to_pylist()]


def control(query: str) -> list[dict[str, object]]:
    """All rows of a query over the input as it is now."""
    run(query, f"ck-{query}", f"out-{query}")
    return rows(f"out-{query}")


def compare(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> dict[str, object]:
    capsys.readouterr()
    assert invoke(["compare", *words, "--json"]) == code
    facts: dict[str, object] = json.loads(capsys.readouterr().out)
    return facts


def test_a_shadow_gives_the_published_rows(capsys: pytest.CaptureFixture[str]) -> None:
    """The checkpoint has read all, and input that came since is not for it."""
    same = OLD.replace(" GROUP", " WHERE v >= 0 GROUP")
    Path("same.sql").write_text(CREATE + same)
    add("b", 300, 400)
    before = {path: path.read_bytes() for path in Path("ck").rglob("*") if path.is_file()}
    facts = compare(capsys, 0, "ck", "same.sql")
    (output,) = facts["outputs"]  # type: ignore[misc]
    assert output["rows"] == {"old": 87, "new": 87}
    facts = compare(capsys, 1, "ck", "new.sql", "--most", "1")
    (output,) = facts["outputs"]  # type: ignore[misc]
    assert output["columns"]["added"] == {"top": "bigint"}
    assert {path: path.read_bytes() for path in Path("ck").rglob("*") if path.is_file()} == before


def test_the_shadow_takes_batches_within_a_limit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three files side by side, out of order by a second; another one has come since."""
    batches: list[int] = []

    def compared(shadow: Shadow, goal: Manifest, most: int) -> ShadowFacts:
        batches.append(shadow.manifest.counters["batches"])
        return compare_shadow(shadow, goal, most)

    compare_shadow = Shadow.compare
    monkeypatch.setattr(Shadow, "compare", compared)
    shutil.rmtree("ck")
    create = CREATE.replace("TIME ts", "TIME ts DISORDER 2 SECONDS")
    for name, text in (("old", OLD), ("new", NEW)):
        Path(f"{name}.sql").write_text(create + text)
    for name, span in {"b": (0, 90), "c": (40, 200), "d": (80, 120)}.items():
        add(name, *span)
        path = Path(f"in/{name}.csv")
        head, *lines = path.read_text().splitlines(keepends=True)
        lines[::2], lines[1::2] = lines[1::2], lines[::2]
        path.write_text(head + "".join(lines))
    run("old", "ck", "out-now")
    add("e", 0, 400)
    for name in ("ck", "out-now"):
        shutil.copytree(name, f"{name}-before")
    made = []
    for limit_rows in (1000, 70, 16):
        for name in ("ck", "out-now", "kept"):
            shutil.rmtree(name, ignore_errors=True)
        for name in ("ck", "out-now"):
            shutil.copytree(f"{name}-before", name)
        words = ["--cutover", "kept", "--batch-rows", str(limit_rows)]
        facts = compare(capsys, 0, "ck", "new.sql", *words)
        switched = Store.open("ck").latest()
        assert switched is not None
        assert switched.counters["rows_in"] == 590
        assert batches[-1] >= 590 / limit_rows
        committed = len(rows("out-now"))
        run("new", "ck", "out-now")
        assert len(rows("out-now")) > committed
        made.append((facts, rows("out-now")))
    assert made[1:] == made[:1] * 2


def test_a_switch_is_at_one_watermark_and_goes_back(capsys: pytest.CaptureFixture[str]) -> None:
    facts = compare(capsys, 0, "ck", "new.sql", "--cutover", "kept")
    assert facts["switched"] is True
    old, count = rows("out"), len(rows("out"))
    assert count == 87
    assert invoke(["verify", "ck"]) == 0
    assert "was cut over" in capsys.readouterr().out
    assert invoke(["replay", "ck", "--batch", "4"]) == 2  # the state is no more that of its query
    run("old", "ck", "out", code=2)
    add("b", 300, 600)
    run("new", "ck", "out")
    assert rows("out") == [*old, *control("new")[42:]]
    assert invoke(["verify", "ck"]) == 0
    whole = rows("out")
    compare(capsys, 0, "ck", "old.sql", "--begin", "kept", "--cutover", "kept-new")
    add("c", 600, 700)
    run("old", "ck", "out")
    assert rows("out") == [*whole, *control("old")[len(control("old")) - 30 :]]
    assert invoke(["state", "ck"]) == 0
    said = capsys.readouterr().out
    assert said.count("query changed: cut over; aggregate: ") == 2
    assert invoke(["digest", "ck"]) == 0
    assert f"{len(rows('out'))} rows" in capsys.readouterr().out


def test_the_summary_counts_what_the_checkpoint_has_put_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Rows and batches before the switch are those of the old query, not of the shadow."""
    before = Store.open("ck").latest()
    compare(capsys, 0, "ck", "new.sql", "--cutover", "kept")
    after = Store.open("ck").latest()
    assert before is not None
    assert after is not None
    totals = {metric.name for metric in COUNTERS} & {*before.counters, *after.counters}
    assert {"batches", "rows_in", "rows_out"} <= totals
    assert {n: after.counters.get(n) for n in totals} == {n: before.counters.get(n) for n in totals}
    add("b", 300, 400)
    capsys.readouterr()
    run("new", "ck", "out")
    said = capsys.readouterr().err
    assert f"400 rows in, {len(rows('out'))} out" in said
    assert f"after {before.counters['batches']} before this run" in said


def test_a_run_at_work_is_ended_and_switched(capsys: pytest.CaptureFixture[str]) -> None:
    query = (
        tg.Session(master="none")
        .sql(CREATE + OLD)
        .start(sink="out", checkpoint="ck", follow=True, batch_rows=70)
    )
    add("b", 300, 450)
    facts = compare(capsys, 0, "ck", "new.sql", "--cutover", "kept")
    query.wait()
    assert facts["switched"] is True
    old, watermark = rows("out"), facts["frontier_us"]
    add("c", 450, 600)
    run("new", "ck", "out")
    new = control("new")

    def end_us(row: dict[str, object]) -> int:
        return int(row["window_end"].timestamp() * 1e6)  # type: ignore[attr-defined]

    assert all(end_us(row) <= watermark for row in old)  # type: ignore[operator]
    expected = [row for row in new if end_us(row) > watermark]  # type: ignore[operator]
    assert rows("out") == [*old, *expected]


class DeadAt(TappedDisk):
    """Refuses the n-th change to some folders and all after it, as if the process had ended."""

    def __init__(self, change: int, folders: tuple[str, ...]) -> None:
        super().__init__()
        self.left, self._folders = change, folders

    def before(self, change: DiskChange) -> None:
        if change.path.startswith(self._folders):
            self.left -= 1
            if self.left <= 0:
                raise Dead


class Dead(BaseException):
    """The end of a process."""


def deaths(work: Path) -> Iterator[tuple[int, bool]]:
    """Cut over again and again, ended at each change; whether it was done tells when to stop."""
    shutil.copytree("ck", "ck-before")
    for change in range(1, 1000):
        for name in ("ck", "kept"):
            shutil.rmtree(name, ignore_errors=True)
        shutil.copytree("ck-before", "ck")
        dead = DeadAt(change, (str(work / "ck"), str(work / "kept")))
        with suppress(Dead), using(dead):
            invoke(["compare", "ck", "new.sql", "--cutover", "kept"])
        yield change, dead.left > 0
        if dead.left > 0:
            return


def test_a_kill_at_any_change_leaves_the_old_query_or_the_new_one(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    was = RecordedRun("ck").fingerprint
    shutil.copytree("out", "out-before")
    add("b", 300, 400)
    run("old", "ck-old", "out-old")
    run("new", "ck-new", "out-new")
    both = {"old": rows("out-old"), "new": [*rows("out")[:87], *rows("out-new")[42:]]}
    seen: list[str] = []
    for change, done in deaths(work):
        query = "old" if RecordedRun("ck").fingerprint == was else "new"
        seen.append(query)
        assert query == "new" or not done
        if seen[-2:-1] != [query] or change % 10 == 0:  # at the switch, and now and then
            shutil.rmtree("out")
            shutil.copytree("out-before", "out")
            run(query, "ck", "out")
            assert rows("out") == both[query], change
    assert seen == sorted(seen, reverse=True)  # one step divides them: n, o
    assert {"old", "new"} == set(seen)
    assert len(seen) > 20


def test_lost_output_is_not_made_again_by_the_new_query(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The newest batch is of the old one: without its output nothing is switched, or started."""
    lost = sorted(Path("out").glob("batch=*"))[-1]
    aside = Path("aside")
    lost.rename(aside)
    assert invoke(["compare", "ck", "new.sql", "--cutover", "kept0"]) == 1
    assert "must have published its newest batch" in capsys.readouterr().err
    aside.rename(lost)
    compare(capsys, 0, "ck", "new.sql", "--cutover", "kept")
    shutil.rmtree(lost)
    run("new", "ck", "out", code=1)
    assert "was made by another query, which alone can make it again" in capsys.readouterr().err


MISTAKES: dict[str, Callable[[], list[str]]] = {
    "must be to another query": lambda: ["ck", "old.sql", "--cutover", "kept"],
    "must be a new or an empty folder; got ": lambda: ["ck", "new.sql", "--cutover", "in"],
    "needs a checkpoint that is compared": lambda: ["old.sql", "new.sql", "--cutover", "kept"],
    "takes none of these with a checkpoint": lambda: ["ck", "new.sql", "--conf", "a=b"],
    "must be a state that --cutover has kept": lambda: ["ck", "new.sql", "--begin", "none"],
    "must read the streams of the checkpoint": lambda: [
        "ck",
        _query("x", NEW, "'in' TIME ts DISORDER 1 SECOND"),
    ],
    "must have a query of the same kind": lambda: [
        "ck",
        _query("y", "SELECT k, v, LAG(v) OVER (PARTITION BY k ORDER BY ts) AS w FROM s"),
    ],
    "must have all outputs of the checkpoint": lambda: [
        "ck",
        _query("z", f"INSERT INTO a {NEW}; INSERT INTO b {OLD}"),
    ],
}


def _query(name: str, text: str, source: str = "'in' TIME ts") -> str:
    create = f"CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT) FROM {source};\n"
    Path(f"{name}.sql").write_text(create + text)
    return f"{name}.sql"


@pytest.mark.parametrize("must", MISTAKES)
def test_mistakes_change_nothing(must: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in Path("ck").rglob("*") if path.is_file()}
    assert invoke(["compare", *MISTAKES[must]()]) == 2
    assert must in capsys.readouterr().err
    assert {path: path.read_bytes() for path in Path("ck").rglob("*") if path.is_file()} == before


OTHER_KINDS = [
    "SELECT k, SUM(v) AS total FROM s [SESSION GAP 2 SECONDS] GROUP BY k",
    "SELECT k, SUM(v) AS total FROM s [ROWS 4] GROUP BY k",
    "SELECT k, v AS total FROM s",
    "SELECT a.k, a.v AS total FROM s AS a [RANGE 1 SECOND] JOIN s AS b [RANGE 1 SECOND] "
    "ON a.k = b.k",
]


@pytest.mark.parametrize("text", OTHER_KINDS)
def test_another_kind_of_query_is_refused_by_its_name(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Aggregates over windows of time are one kind, and all other queries the other one."""
    assert invoke(["compare", "ck", _query("x", text)]) == 2
    said = capsys.readouterr().err
    assert "got an aggregate over windows of time there, and a query of another kind in" in said
    assert "order of its tuples" not in said


@pytest.mark.parametrize("place", ["other", "file"])
def test_a_state_is_kept_in_an_empty_folder_only(
    work: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not among the output of another run, which has no file of a checkpoint at its top."""
    run("new", "ck-other", "other")
    Path("file").write_text("a")
    before = {path for path in work.rglob("*") if not path.is_relative_to(work / "ck")}
    assert invoke(["compare", "ck", "new.sql", "--cutover", place]) == 2
    assert f"must be a new or an empty folder; got {work / place}" in capsys.readouterr().err
    assert {path for path in work.rglob("*") if not path.is_relative_to(work / "ck")} == before
    Path("empty").mkdir()
    assert compare(capsys, 0, "ck", "new.sql", "--cutover", "empty")["switched"]


def test_a_finished_checkpoint_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", "old.sql", "--master", "none", "--checkpoint", "ck", "--out", "out"]) == 0
    capsys.readouterr()
    assert invoke(["compare", "ck", "new.sql"]) == 2
    assert "must have a run that goes on" in capsys.readouterr().err


def test_joins_tables_and_several_outputs_are_switched(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whatever has state: the rows after the switch are those of the new query alone."""
    Path("t.csv").write_text("k,w\na,1\nb,2\nc,3\n")
    table = "CREATE TABLE t FROM 't.csv';\n"
    join = (
        "SELECT l.k, l.v, r.v AS w FROM s AS l [RANGE {0} SECONDS] JOIN s AS r [RANGE {0} SECONDS] "
        "ON l.k = r.k AND l.v < r.v"
    )
    pairs = [
        (join.format(5), join.format(9)),
        (
            "SELECT t.w, COUNT(*) AS n FROM s [RANGE 10 SECONDS] JOIN t ON s.k = t.k GROUP BY t.w",
            "SELECT t.w, SUM(s.v) AS n FROM s [RANGE 30 SECONDS] JOIN t ON s.k = t.k GROUP BY t.w",
        ),
        (f"INSERT INTO a {OLD}; INSERT INTO b {OLD}", f"INSERT INTO b {NEW}; INSERT INTO a {NEW}"),
    ]
    for number, texts in enumerate(pairs):
        for folder in ("in", "out", "ck", "ck-new", "out-new", "kept"):
            shutil.rmtree(folder, ignore_errors=True)
        Path("in").mkdir()
        add("a", 0, 300)
        for name, text in zip(("old", "new"), texts, strict=True):
            Path(f"{name}.sql").write_text(CREATE + (table if "t.w" in text else "") + text)
        run("old", "ck", "out")
        run("new", "ck-new", "out-new")
        compare(capsys, 0, "ck", "new.sql", "--cutover", "kept")
        add("b", 300, 400)
        run("new", "ck", "out")
        run("new", "ck-new", "out-new")
        for output in ("/a", "/b") if number == 2 else ("",):
            after = {
                name: [pq.read_table(p) for p in sorted(Path(name + output).glob("batch=*/*"))][-1]
                for name in ("out", "out-new")
            }
            assert after["out"].num_rows >= 3
            assert after["out"].equals(after["out-new"]), (number, output)
