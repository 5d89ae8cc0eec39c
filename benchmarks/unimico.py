"""The response time of UniMiCo's three queries around a migration, and without one.

    python benchmarks/unimico.py                               five rounds
    python benchmarks/unimico.py --rounds 1 --seconds 6 --master none      a short look

The queries are those of chapter 4 of the dissertation: Q1 joins two streams over 10 seconds, Q2
sums the last five tuples of a stream, Q3 sums the last five pairs of the join. Streams are live, of
so many tuples a second each. In the middle of a run all buckets of all subqueries go from one
instance to another, by window recreation; the run beside it has no migration. Response time is that
from the arrival of the newest tuple of a batch to its commit. What counts are the batches from two
seconds before the migration to two seconds after it, as in figures 29, 31 and 32, and where there
is none those around the same batch. The rows of both runs are the same, which is checked.

Results go to benchmarks/results/unimico.json.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
from pathlib import Path
from typing import Any

from measure import MASTER, batches_of, common_arguments, give, in_child, write_report

RATE, SECONDS, NEAR_S, BUCKETS = 100, 20.0, 2.0, 16
STREAMS = "".join(
    f"CREATE STREAM {name} FROM 'generator:{name}?rows={{rows}}&pace={RATE}&domain=200&seed=7' "
    "TIME ts;\n"
    for name in ("r", "s")
)
PAIRS = "SELECT r.x AS k, r.y AS m FROM r [RANGE 10 SECONDS] JOIN s [RANGE 10 SECONDS] ON r.x = s.a"
QUERIES = {
    "Q1": PAIRS,
    "Q2": "SELECT SUM(y) AS total FROM r [ROWS 5 SLIDE 1]",
    "Q3": f"SELECT SUM(m) AS total FROM ({PAIRS}) [ROWS 5 SLIDE 1]",
}


class Migration:
    """Asks for the migration after a batch in the middle of a run, and knows which that was."""

    def __init__(self, at_s: float, migrates: bool, streams: int) -> None:
        self.at_s, self.migrates, self.streams = at_s, migrates, streams
        self.query: Any = None
        self.batch: int | None = None

    def __call__(self, step: str, batch: int) -> None:
        """Called by the loop, in its thread, at each step of a batch."""
        if step != "after publish" or self.query is None or self.batch is not None:
            return
        done_s = self.query.status()["rows_in"] / (self.streams * RATE)
        if done_s >= self.at_s:
            self.batch = batch + 1
            if self.migrates:
                self.query.move(range(BUCKETS), 1)


def run(name: str, migrates: bool, seconds: float, master: str, work: Path) -> dict[str, Any]:
    """One run: response times around the middle of it, and what it gave."""
    import tidegate as tg

    sql = STREAMS.format(rows=round(seconds * RATE)) + QUERIES[name] + ";"
    course = Migration(seconds / 2, migrates, streams=1 if name == "Q2" else 2)

    def whole() -> None:
        course.query = (
            tg.Session(master=master)
            .sql(sql)
            .start(
                sink=tg.sink.files(str(work / "out"), format="csv"),
                checkpoint=str(work / "checkpoint"),
                buckets=BUCKETS,
                mapping={0: range(BUCKETS), 1: []},
                handover="window",
                observer=course,
                batch_rows=course.streams * RATE,  # of a second at most, so that there is a middle
            )
        )
        course.query.wait()

    batches = batches_of(whole)
    assert course.batch is not None, "the run has a middle"
    times = [b["latency_ms"]["max"] if b["latency_ms"] else None for b in batches]
    near = _near(batches, course.batch)
    epochs = [e for e in course.query.status()["epochs"] if e.get("handover") == "window"]
    parts = sorted(Path(work / "out").rglob("*.csv"))
    # Batches of a live stream have other sizes every time, and each has the names of the columns.
    digest = hashlib.sha256(b"".join(path.read_bytes().partition(b"\n")[2] for path in parts))
    return {
        "response_ms": [times[i] for i in near if times[i] is not None],
        "migrations": len(epochs),
        "bytes_moved": sum(e["bytes_moved"] for e in epochs),
        "rows": sum(b["out"] for b in batches),
        "digest": digest.hexdigest(),
    }


def _near(batches: list[Any], middle: int) -> list[int]:
    """The batches within two seconds of one, by how long they took."""
    found = [min(middle, len(batches) - 1)]
    for step in (-1, 1):
        place, left_s = found[0] + step, NEAR_S
        while 0 <= place < len(batches) and left_s > 0:
            found.append(place)
            left_s -= batches[place]["seconds"]
            place += step
    return sorted(set(found))


def told(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean and the deviation of all response times near the middle of some runs."""
    every = [ms for one in runs for ms in one["response_ms"]]
    return {
        "batches": len(every),
        "mean_ms": round(statistics.fmean(every), 3),
        "deviation_ms": round(statistics.pstdev(every), 3),
        "migrations": sum(one["migrations"] for one in runs),
        "bytes_moved": sum(one["bytes_moved"] for one in runs),
        "rows": runs[0]["rows"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    common_arguments(parser, rounds=5)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of a run (default: 20)")
    parser.add_argument("--master", default=MASTER, help="or none, without Spark")
    options = parser.parse_args()
    if options.child:
        name, migrates = options.child.split("/")
        migrates = migrates == "True"
        give(run(name, migrates, options.seconds, options.master, Path(options.work)))
        return
    found: dict[str, Any] = {}
    for name in QUERIES:
        runs: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
        for _ in range(options.rounds):
            for migrates in (False, True):
                child = ("--child", f"{name}/{migrates}", "--seconds", str(options.seconds))
                child = (*child, "--master", options.master)
                runs[migrates].append(in_child(__file__, *child, cores=options.cores))
        digests = {one["digest"] for both in runs.values() for one in both}
        assert len(digests) == 1, f"{name}: rows depend on the migration"
        found[name] = {"without": told(runs[False]), "with": told(runs[True])}
        print(name, found[name], flush=True)
    write_report(
        "unimico",
        {"master": options.master, "seconds": options.seconds, "rate": RATE, "queries": found},
    )


if __name__ == "__main__":
    main()
