"""A program for spark-submit that names no master: several queries, and what became of each.

    spark-submit ... driver.py SHARED RIDES HERE

HERE is a folder on the path of this process alone. Prints a JSON object of what was said.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import tidegate as tg
from tidegate.execute.spark import shared as shared_exchange

OWN = "/proc/self/cwd"
"""The same name in every process, and another folder in each: what a driver does not share."""


def counts(session: tg.Session, rides: Path | str) -> Any:
    stream = session.stream(str(rides), time="ts")
    return stream.window("1 minute").group_by("route").agg(n=tg.count(), fare=tg.mean("fare"))


def pairs(session: tg.Session, rides: Path, on: Any = tg.left.fare < tg.right.fare) -> Any:
    stream = session.stream(str(rides), time="ts")
    joined = stream.join(stream, within="1 second", on=on)
    return joined.select(tg.left.fare.alias("one"), tg.right.fare.alias("other"))


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
    shared, rides, here = (Path(word) for word in sys.argv[1:])
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
    for name, ask in (("counts", counts), ("pairs", pairs)):
        if name == "pairs":
            shared_exchange.SMALL_ROWS = 600  # of which its batches have more, on two sides
        alone = tg.Session(master="none")
        for place, on, execution in (
            ("cluster", session, "auto"),
            ("staying", session, "resident"),
            ("here", alone, "auto"),
        ):
            query = ask(on, rides).start(
                sink=tg.sink.files(shared / place / name),
                checkpoint=shared / f"{place}-{name}",
                batch_rows=500,
                execution=execution,
            )
            told[f"tasks {place} {name}"] = sorted(query.wait().as_dict()["tasks_ms"])
            told[f"instances {place}"] = query.status()["instances"]
    print(json.dumps(told | submitted()))


if __name__ == "__main__":
    main()
