"""A real cluster of three workers, whose temporary folders are not those of the driver."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cluster.standalone import CONF, REPOSITORY, SPARK, Standalone, environment
from tests.docs.block import blocks
from tests.s3.server import KEYS, Server

pytestmark = pytest.mark.timeout(1500)  # many JVMs, on machines that have other things to do

HERE = Path(__file__).parent
COMMAND = (sys.executable, "-c", "from tidegate.cli.main import main; main()")
OURS = {"PYSPARK_DRIVER_PYTHON": sys.executable}
"""Which Python spark-submit starts; that of the executors is not said, as on the page."""
QUERY = "SELECT route, COUNT(*) AS n FROM rides [RANGE 1 MINUTE] GROUP BY route"
LEAN = tuple(word for item in CONF.items() for word in ("--conf", "=".join(item)))


def ran(
    *words: str | Path, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*map(str, words)],
        cwd=cwd,
        env=environment() | (env or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )


@pytest.fixture(scope="module")
def told(
    cluster: Standalone, rides: Path, server: Server, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What one program on the cluster said, after its last queries have written their output.

    Its executors follow the instances of its queries, and get keys as the page says.
    """
    alone, cwd = tmp_path_factory.mktemp("alone"), tmp_path_factory.mktemp("cwd")
    (server.folder / "rides.csv").write_bytes(rides.read_bytes())
    conf = {"spark.cores.max": "3", "spark.tidegate.executors": "follow"}
    conf |= {f"spark.executorEnv.{name}": value for name, value in KEYS.items()}
    more = (word for item in conf.items() for word in ("--conf", "=".join(item)))
    submit = (SPARK / "bin/spark-submit", "--master", cluster.url, *LEAN, *more)
    words = (HERE / "driver.py", cluster.shared, rides, alone, server.uri("{}"))
    done = ran(*submit, *words, cwd=cwd, env=OURS | KEYS)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("query", ["counts", "pairs", "dying"])
def test_the_output_has_the_bytes_of_a_run_on_one_host(
    query: str, cluster: Standalone, told: dict[str, Any]
) -> None:
    """Also where tuples go from task to task, and where a worker is killed in a batch."""
    exchanges, tasks = told[f"ran staying {query}"]
    assert exchanges == {"resident": 2}
    assert ("spark map job" in tasks) == (query != "counts"), "of a small batch each task reads all"
    assert told[f"ran here {query}"][0] == {}
    assert (cluster.shared / "died").exists()
    files = {
        place: {
            str(p.relative_to(cluster.shared / place)): p.read_bytes()
            for p in sorted((cluster.shared / place / query).rglob("*.parquet"))
        }
        for place in ("staying", "here")
    }
    assert len(files["here"]) > 1
    assert files["staying"] == files["here"]


def parts(folder: Path) -> dict[str, bytes]:
    """The files of results below a folder."""
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("batch=*/part-*.parquet"))
    }


def rows(folder: Path) -> pa.Table:
    files = sorted(folder.glob("batch=*/part-*.parquet"))
    return pa.concat_tables([pq.read_table(f, partitioning=None) for f in files])


def test_every_kind_of_operator_runs_and_nothing_need_be_shared_but_an_object_store(
    cluster: Standalone, server: Server, told: dict[str, Any]
) -> None:
    """With a switch, which the executors follow."""
    found = parts(server.folder / "every")
    assert {name.partition("/")[0] for name in found} == {"dear", "higher", "eights", "rises"}
    assert found == parts(cluster.shared / "here" / "every")
    assert told["segments nearby"] > 0
    assert told["executors"] == {"wanted": 2, "there": 2}


def test_the_page_of_a_query_on_a_cluster_opens(cluster: Standalone, told: dict[str, Any]) -> None:
    """Page, status, batches and metrics, of instances that are tasks on other hosts."""
    page = told["watched"]
    assert "<title>" in page[""]
    status = json.loads(page["api/status"])
    assert (status["state"], status["rows_in"]) == ("running", 1_000)
    assert status["executors"] is not None
    (batch,) = json.loads(page["api/batches"])["batches"]
    assert {task["instance"] for task in batch["tasks"]} == {0, 1}
    assert all(task["spans_ms"] for task in batch["tasks"])
    assert "tidegate_instances{" in page["metrics"]
    assert 'tidegate_rows_in_total{query="aggregate"} 1000' in page["metrics"]


@pytest.mark.long
def test_every_kind_of_operator_runs_on_shared_folders(
    cluster: Standalone, told: dict[str, Any]
) -> None:
    found = parts(cluster.shared / "cluster" / "every")
    assert found == parts(cluster.shared / "here" / "every")
    assert len(found) > 4


@pytest.mark.long
def test_many_rows_are_written_by_tasks_from_an_object_store(
    cluster: Standalone, server: Server, told: dict[str, Any]
) -> None:
    """Their way to those tasks was by objects, which are gone."""
    found = rows(server.folder / "many")
    assert found.num_rows > 400_000
    assert found.equals(rows(cluster.shared / "many"))
    assert len(list((server.folder / "many" / "batch=00000000").iterdir())) > 1
    assert list((server.folder / "state").rglob("*-rows-*")) == []


@pytest.mark.long
def test_executors_follow_instances_while_sources_come_and_go(
    cluster: Standalone, told: dict[str, Any]
) -> None:
    seen = told["elastic"]
    assert seen["executors"][0] == {"wanted": 2, "there": 2}
    assert [found["wanted"] for found in seen["executors"]] == [2, 3, 1]
    assert seen["with three"] == {"wanted": 3, "there": 3}
    assert [epoch["instances"] for epoch in seen["epochs"]] == [2, 3]
    assert rows(cluster.shared / "elastic").equals(rows(cluster.shared / "still"))


@pytest.mark.long
def test_executors_follow_a_policy(cluster: Standalone, told: dict[str, Any]) -> None:
    """For which whatever instances do is too much."""
    seen = told["led"]
    assert [epoch["instances"] for epoch in seen["epochs"]] == [1, 3]
    assert seen["epochs"][1]["by"] == "policy threshold"
    assert seen["executors"]["wanted"] == 3
    assert rows(cluster.shared / "led").equals(rows(cluster.shared / "still"))


@pytest.mark.parametrize(
    ("what", "parts"),
    [
        (
            "checkpoint",
            [
                "OptionError: checkpoint /proc/self/cwd/state: every executor must be able to read "
                "and write it; got no such file or directory on ",
                "Give a --checkpoint that all hosts share",
            ],
        ),
        (
            "output",
            [
                "OptionError: output /proc/self/cwd/results: every executor must be able to read "
                "and write it; got no such file or directory on ",
                "Give an --out that all hosts share.",
            ],
        ),
        (
            "source",
            [
                "OptionError: source /proc/self/cwd/rides.csv: every executor must be able to read "
                "it; got no such file or directory on ",
                "Put the input where all hosts have it under this name.",
            ],
        ),
        (
            "code",
            [
                "OptionError: executors: must be able to load the classes and functions of the "
                "query; got ModuleNotFoundError: No module named 'only_here' on ",
                "Send the module with --conf spark.submit.pyFiles=MODULE.py",
            ],
        ),
    ],
)
def test_what_executors_cannot_reach_is_told_before_the_first_batch(
    what: str, parts: list[str], told: dict[str, Any]
) -> None:
    for part in parts:
        assert part in told[what]


def run(cluster: Standalone, rides: Path, cwd: Path, *options: str) -> tuple[int, str]:
    """The exit code of a command on the cluster, and the one line that it says."""
    (cwd / "q.sql").write_text(QUERY)
    inputs = ("--stream", f"rides={rides}", "--master", cluster.url, *options)
    done = ran(*COMMAND, "run", "q.sql", *inputs, cwd=cwd)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    return done.returncode, done.stderr


def test_executors_without_tidegate_are_told_with_host_and_remedy(
    cluster: Standalone, rides: Path, tmp_path: Path
) -> None:
    bare = cluster.shared / "bare"
    venv.create(bare, symlinks=True)
    options = ["--conf", f"spark.pyspark.python={bare}/bin/python"]
    options += ["--conf", "spark.executorEnv.PYTHONPATH=", *LEAN]
    state = ("--checkpoint", str(cluster.shared / "bare-state"))
    code, said = run(cluster, rides, tmp_path, *options, *state)
    assert "got ModuleNotFoundError: No module named 'tidegate' on " in said
    assert f"with {bare}/bin/python. Install it there" in said
    assert code == 2


def test_a_cluster_without_room_for_an_executor_is_told(
    cluster: Standalone, rides: Path, tmp_path: Path
) -> None:
    """As one without workers: none will ever come up, and Spark would wait for ever.

    The command line is submitted as the page says, and takes the master from there.
    """
    (program,) = blocks("docs/cluster.md", "python")
    (tmp_path / "tide.py").write_text(program)
    (tmp_path / "q.sql").write_text(QUERY)
    large = ("--conf", "spark.executor.memory=900g")
    wait = ("--conf", "spark.scheduler.maxRegisteredResourcesWaitingTime=1s")
    submit = (SPARK / "bin/spark-submit", "--master", cluster.url, *LEAN, *large)
    words = ("tide.py", "run", "q.sql", "--stream", f"rides={rides}", *wait)
    done = ran(*submit, *words, cwd=tmp_path, env=OURS)
    assert (
        f"tidegate: {cluster.url}: an executor must come up within 1 s; got none. See that it has "
        "workers with 900g of memory free, and that they can reach the driver at "
    ) in done.stdout  # where spark-submit puts what Python says
    assert done.returncode == 1


def test_a_submitted_program_runs_where_and_as_it_was_submitted(
    cluster: Standalone, told: dict[str, Any]
) -> None:
    assert (told["master"], told["memory"], told["ui"]) == (cluster.url, "512m", True)
    assert (told["instances staying"], told["instances here"]) == (3, 1)


def test_the_repository_is_the_one_under_test() -> None:
    """Else the cluster would run another Tidegate than the tests do."""
    found = ran(sys.executable, "-c", "import tidegate; print(tidegate.__file__)", cwd=REPOSITORY)
    assert Path(found.stdout.strip()).is_relative_to(REPOSITORY)
