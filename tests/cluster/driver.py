"""A program for spark-submit that names no master: several queries, and what became of each.

    spark-submit ... driver.py SHARED RIDES HERE S3

HERE is a folder on the path of this process alone, S3 the URI of a folder with {} for its path.
Prints a JSON object of what was said. In the long mode of the tests there are more queries.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, ClassVar
from urllib.request import urlopen

import tidegate as tg
from tests.cluster.rides import write_rides
from tests.crash.process import wait_for
from tidegate.execute.spark import task_exchange as shared_exchange

OWN = "/proc/self/cwd"
"""The same name in every process, and another folder in each: what a driver does not share."""


def counts(session: tg.Session, rides: Path | str) -> Any:
    stream = session.stream(str(rides), time="ts")
    return stream.window("1 minute").group_by("route").agg(n=tg.count(), fare=tg.mean("fare"))


def pairs(session: tg.Session, rides: Path, on: Any = tg.left.fare < tg.right.fare) -> Any:
    stream = session.stream(str(rides), time="ts")
    joined = stream.join(stream, within="1 second", on=on)
    return joined.select(tg.left.fare.alias("one"), tg.right.fare.alias("other"))


EVERY = """
CREATE STREAM rides FROM '{rides}' TIME ts;

CREATE STREAM busy AS
SELECT route, COUNT(*) AS n, AVG(fare) AS fare
FROM rides [RANGE 30 SECONDS SLIDE 10 SECONDS] GROUP BY route;

INSERT INTO dear
SELECT r.route, r.fare - b.fare AS more, b.n
FROM rides [RANGE 5 SECONDS] AS r JOIN busy [RANGE 20 SECONDS] AS b
ON r.route = b.route AND r.fare > b.fare;

INSERT INTO higher
SELECT a.fare AS one, b.fare AS other
FROM rides [RANGE 1 SECOND] AS a JOIN rides [RANGE 1 SECOND] AS b ON a.fare < b.fare;

INSERT INTO eights SELECT route, SUM(fare) AS fare FROM rides [ROWS 8 SLIDE 3] GROUP BY route;
"""
"""Each kind of operator: an aggregate, a join by key of its rows and the stream, a join whose
tuples are dealt out, windows of tuples; `every` adds a process."""


class Rises(tg.Process):
    """How often a route had more than before."""

    output: ClassVar = {"route": "string", "times": "bigint"}

    def __init__(self) -> None:
        self.last: dict[str, float] = {}
        self.times: dict[str, int] = {}

    def on_tuple(self, tuple: Any, keys: Any) -> Any:
        for key in keys:
            if tuple.more > self.last.get(key, 0):
                self.times[key] = self.times.get(key, 0) + 1
                yield {"route": key, "times": self.times[key]}
            self.last[key] = tuple.more


def every(session: tg.Session, rides: Path | str, out: Path | str, **options: Any) -> Any:
    """Run all kinds of operators as one query; how many executors it had at its end."""
    outputs = session.queries(EVERY.replace("{rides}", str(rides)))
    outputs["rises"] = outputs["dear"].process(Rises, keys="route")
    sinks = {name: tg.sink.of(str(out), name) for name in outputs}
    query = session.start(outputs, sinks=sinks, batch_rows=600, **options)
    query.wait()
    return query.status()["executors"]


class Dying(tg.Process):
    """Passes fares on; the first process that comes to a certain tuple is killed."""

    output: ClassVar = {"fare": "double"}
    at, mark = 0.0, ""

    def on_tuple(self, tuple: Any, keys: Any) -> Any:
        if tuple.fare == self.at and not os.path.exists(self.mark):
            with open(self.mark, "x"):
                os.kill(os.getpid(), signal.SIGKILL)
        yield {"fare": tuple.fare}


def dying(session: tg.Session, rides: Path | str) -> Any:
    return session.stream(str(rides), time="ts").process(Dying, keys="route")


def on_s3(session: tg.Session, at: Any, cluster: Path) -> dict[str, Any]:
    """A query whose sources, output and checkpoint are on an S3 server, which is all it shares."""
    options = {"checkpoint": at("state/every"), "instances": 3, "switches": {1: 2}}
    executors = every(session, at("rides.csv"), at("every"), **options)
    segments = cluster.glob("*/local/**/tidegate-segments/*.arrow")
    return {"executors": executors, "segments nearby": len(list(segments))}


def large(session: tg.Session, at: Any) -> None:
    """So many rows that they do not come to the driver."""
    stream = session.stream(at("rides.csv"), time="ts")
    options = {"sink": tg.sink.of(at("many")), "checkpoint": at("state/many"), "instances": 3}
    many(stream).start(**options).wait()


def many(stream: Any) -> Any:
    joined = stream.join(stream, within="10 minutes", on=tg.left.fare < tg.right.fare)
    return joined.select(tg.left.fare.alias("one"), tg.right.fare.alias("other"))


def elastic(session: tg.Session, shared: Path) -> dict[str, Any]:
    """A query over files that arrive, whose executors follow its instances."""
    from pyspark.sql import SparkSession

    java = SparkSession.builder.getOrCreate().sparkContext._jsc.sc()
    folder, extra = shared / "arriving", shared / "extra.csv"
    folder.mkdir()
    write_rides(extra, 2_400, rows=100)
    write_rides(folder / "0.csv", 0, rows=800)
    options = {"sink": tg.sink.files(shared / "elastic"), "checkpoint": shared / "elastic-state"}
    query = arriving(session, folder).start(instances=2, follow=True, **options)
    rows, executors = 0, []

    def arrive(number: int, more: int = 0) -> None:
        nonlocal rows
        if number:
            write_rides(folder / f"{number}.csv", number * 800, rows=800)
        rows += 800 + more
        wait_for(lambda: query.status()["rows_in"] >= rows or not query.status()["running"], "rows")

    def there(count: int) -> None:
        wait_for(lambda: java.getExecutorIds().size() == count, f"{count} executors")
        executors.append(query.status()["executors"])

    arrive(0)
    there(2)
    query.scale(3)
    arrive(1)
    there(3)
    query.announce("rides", str(extra))
    arrive(3, more=100)
    status = query.status()
    query.scale(1)
    (source,) = (s["id"] for s in status["sources"] if "extra" in s["id"])
    query.remove(source)
    arrive(4)
    there(1)
    query.stop()
    arriving(session, folder).start(**options).wait()
    alone = arriving(tg.Session(master="none"), [folder, extra])
    alone.start(sink=tg.sink.files(shared / "still")).wait()
    return {"executors": executors, "with three": status["executors"], "epochs": status["epochs"]}


def led(session: tg.Session, shared: Path) -> dict[str, Any]:
    """A query over the same files whose instances a policy changes, and executors follow."""
    busy = tg.policy.threshold(
        upper=1e-6, target=1e-6, lower=1e-9, improvement=0.0, batches=2, seconds=0.0, maximum=3
    )
    query = arriving(session, [shared / "arriving", shared / "extra.csv"]).start(
        instances=1,
        batch_rows=300,
        sink=tg.sink.files(shared / "led"),
        checkpoint=shared / "led-state",
        policy=busy,
    )
    query.wait()
    status = query.status()
    return {"executors": status["executors"], "epochs": status["epochs"]}


def watched(session: tg.Session, rides: Path, shared: Path) -> dict[str, Any]:
    """What the page of a query that waits for more has, after a batch on the cluster."""
    query = counts(session, rides).start(
        sink=tg.sink.memory(),
        checkpoint=shared / "watched",
        instances=2,
        execution="resident",
        follow=True,
        dashboard=True,
    )
    wait_for(lambda: query.status()["batch"] >= 0, "the first batch")
    found = {}
    for path in ("", "api/status", "api/batches", "metrics"):
        with urlopen(f"{query.dashboard}{path}", timeout=60) as answer:
            found[path] = answer.read().decode()
    query.stop()
    return found


def arriving(session: tg.Session, source: Any) -> Any:
    places = [str(place) for place in source] if isinstance(source, list) else str(source)
    stream = session.stream(places, time="ts", name="rides")
    return stream.window("1 minute").group_by("route").agg(n=tg.count(), fare=tg.mean("fare"))


def failure(query: Any, **options: Any) -> str:
    """What a query that must fail says."""
    try:
        query.start(**{"sink": tg.sink.memory()} | options).wait()
    except tg.TidegateError as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def submitted() -> dict[str, Any]:
    """What the queries have run on."""
    from pyspark.sql import SparkSession

    context = SparkSession.builder.getOrCreate().sparkContext
    return {
        "master": context.master,
        "memory": context.getConf().get("spark.executor.memory"),
        "ui": context.uiWebUrl is not None,
    }


def main() -> None:
    shared, rides, here = (Path(word) for word in sys.argv[1:4])
    remote = sys.argv[4].format
    session = tg.Session()
    told: dict[str, Any] = {
        "checkpoint": failure(counts(session, rides), checkpoint=f"{OWN}/state"),
        "output": failure(
            counts(session, rides), checkpoint=shared / "1", sink=tg.sink.files(f"{OWN}/results")
        ),
    }
    (Path.cwd() / "rides.csv").write_bytes(rides.read_bytes())
    told["source"] = failure(counts(session, f"{OWN}/rides.csv"), checkpoint=shared / "2")
    (here / "only_here.py").write_text("def same(left, right):\n    return left['fare'] == 1\n")
    sys.path.insert(0, str(here))
    import only_here

    own = pairs(session, rides, on=only_here.same)
    told["code"] = failure(own, checkpoint=shared / "3")
    with rides.open() as file:
        Dying.at = float(list(file)[-10].split(",")[2])
    Dying.mark = str(shared / "died")
    for name, ask in (("counts", counts), ("pairs", pairs), ("dying", dying)):
        if name == "pairs":
            shared_exchange.SMALL_ROWS = 600  # of which batches have more, for two tasks
        alone = tg.Session(master="none")
        for place, on, execution in (("staying", session, "resident"), ("here", alone, "auto")):
            query = ask(on, rides).start(
                sink=tg.sink.files(shared / place / name),
                checkpoint=shared / f"{place}-{name}",
                batch_rows=500,
                instances=1 if place == "here" else 3,
                execution=execution,
            )
            summary = query.wait().as_dict()
            told[f"ran {place} {name}"] = summary["exchanges"], sorted(summary["tasks_ms"])
            told[f"instances {place}"] = query.status()["instances"]
    told["watched"] = watched(session, rides, shared)
    every(alone, rides, shared / "here" / "every")
    told |= on_s3(session, remote, shared.parent)
    if os.environ.get("TIDEGATE_TEST_MODE") == "long":
        out, state = shared / "cluster" / "every", shared / "cluster-every"
        every(session, rides, out, checkpoint=state, instances=3, switches={1: 2})
        many(alone.stream(str(rides), time="ts")).start(sink=tg.sink.files(shared / "many")).wait()
        large(session, remote)
        told["elastic"] = elastic(session, shared)
        told["led"] = led(session, shared)
    print(json.dumps(told | submitted()))


if __name__ == "__main__":
    main()
