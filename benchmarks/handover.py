"""What moves at a switch on a cluster, how long it takes, and what exchanging tuples costs there.

    python benchmarks/handover.py                              1, 10 and 50 MB, two rounds
    python benchmarks/handover.py --sizes 1 --rounds 1         a short look
    python benchmarks/handover.py --parts exchange --rows 200000
    python benchmarks/handover.py --parts exchange --cores 16 --instances 1,2,4,8,16
    python benchmarks/handover.py --parts exchange --ways "one host"     needs no cluster

A standalone cluster of three workers and an S3 server run on this machine; see `make cluster` and
`make s3-server`. Executors share nothing but the server's bucket, where the checkpoint is.

handover: a band join of two streams is filled by large batches until its state has the size, and
goes on with small ones on three executors of one core. It is scaled from 2 instances to 3 and back,
by state recreation in one run and by window recreation in another. For each switch: how much longer
its batch took than the median of its neighbours, the bytes that instances loaded in it and how many
of these are of buckets that moved, those that they load in its neighbours (Spark gives an instance
to any executor, which has not got everything that the instance wrote elsewhere), and what is stored
of the buckets that moved.

exchange: the same join in large batches with 1, 2 and 3 instances, on one host whose tasks share
what they read (STRETCH's virtual shared-nothing, V_SN), on one executor of three cores, and on
executors of one core, which exchange tuples by a shuffle and over a grid (pure shared-nothing,
P_SN). The work of the stages comes from one instance, the overhead of each way from two, and
STRETCH's model then says what more should do, which is measured too. It is a sweep, see sweep.py,
in which all numbers of instances have the same cores. Where the machine has fewer than these, tasks
wait for each other, and the model does not know that: the result says how many there are.

Results go to benchmarks/results/handover.json.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from measure import (
    CORES_GIVEN,
    HERE,
    Batch,
    batches_of,
    check_count,
    common_arguments,
    figures_of,
    give,
    in_child,
    medians,
    middle,
    rows_written,
    write_report,
)
from reconfigure import QUERY, RATE, ROW_BYTES, Course
from sweep import sweep_arguments, swept

sys.path.insert(0, str(HERE.parent))  # the cluster is that of tools/, the server that of tests/

SIZES_MB = (1, 10, 50)
PARTS = ("handover", "exchange")
HANDOVERS = ("state", "window")
WAYS = ("one host", "one executor", "executors of one core")
CORES = CORES_GIVEN or 3
FILL_BATCHES, BATCH_ROWS, WARM, GAP, NEAR = 4, 2_000, 4, 5, 2
SWITCHES = (3, 2, 3, 2)
"""The instances that are asked for, one after the other, from 2 on."""

EXCHANGE_ROWS, EXCHANGE_BATCHES = 1_500_000, 6
EXCHANGE = QUERY.replace("30 DAYS", "20 SECONDS").replace("16777216", "1000000")
PROCESS = ("instance read state", "instance match", "instance output", "instance write")


@contextmanager
def site() -> Iterator[dict[str, Any]]:
    """A cluster and a server that end with the block; what a run must know of them."""
    from tools.cluster import Standalone

    from tests.s3.server import KEYS, Server

    with tempfile.TemporaryDirectory(prefix="tidegate-handover-") as folder:
        cluster, server = Standalone(Path(folder) / "cluster", CORES, "2g"), None
        try:
            cluster.start_master()
            cluster.start_workers(dict.fromkeys(("one", "two", "three"), False))
            server = Server(Path(folder))
            os.environ.update(KEYS)
            keys = {f"spark.executorEnv.{name}": value for name, value in KEYS.items()}
            yield {"master": cluster.url, "uri": server.uri("{}"), "keys": keys}
        finally:
            cluster.stop()
            if server is not None:
                server.close()


def session(at: Mapping[str, Any], executors: int) -> Any:
    """A session on the cluster with three cores in so many executors, once they are there."""
    import tidegate as tg

    conf = {
        "spark.cores.max": str(CORES),
        "spark.executor.cores": str(CORES // executors),
        "spark.executor.memory": "1g",
        "spark.shuffle.readHostLocalDisk": "false",  # which would see that they are on one host
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        **at["keys"],
    }
    return tg.Session(master=at["master"], conf=conf)


def run_handover(size_mb: int, handover: str, at: Mapping[str, Any], work: Path) -> dict[str, Any]:
    """One run with all switches, and what each of them cost."""
    import tidegate as tg

    fill = size_mb * 1_000_000 // ROW_BYTES["tidegate"]
    course = Course(FILL_BATCHES, 0)
    first = FILL_BATCHES + WARM
    course.switches = {first + GAP * i: n for i, n in enumerate(SWITCHES)}
    course.batches = first + GAP * len(SWITCHES)
    fill_rows = -(-fill // FILL_BATCHES)
    rows = fill + fill_rows + 2 * BATCH_ROWS * course.batches
    stream = session(at, executors=CORES).sql(QUERY.format(rows=rows // 2, rate=RATE))

    def run() -> None:
        course.query = stream.start(
            sink=tg.sink.files(str(work / "out")),
            checkpoint=at["uri"].format(f"{handover}-{size_mb}-{os.getpid()}"),
            batch_rows=fill_rows,
            instances=2,
            handover=handover,
            observer=course,
        )
        course.query.wait()

    batches = batches_of(run)
    epochs = {e["batch"]: e for e in course.query.status()["epochs"] if e["epoch"]}
    buckets = course.query._loop.manifest.buckets
    return {
        "state_bytes": batches[FILL_BATCHES - 1]["state_bytes"],
        "switches": [
            switched(course, batches, batch, epochs[batch], buckets) for batch in course.switches
        ],
    }


def switched(
    course: Course, batches: list[Batch], batch: int, epoch: Mapping[str, Any], buckets: int
) -> dict[str, Any]:
    """What one switch cost, beside the batches around it."""
    near = [*batches[batch - NEAR : batch], *batches[batch + 1 : batch + 1 + NEAR]]
    usual_s = statistics.median(b["seconds"] for b in near)
    usual_bytes = statistics.median(b["fetched_bytes"] for b in near)
    was = course.switches.get(batch - GAP, 2)
    stored = batches[batch - 1]["state_bytes"]
    return {
        "switch": f"{was} to {course.switches[batch]}",
        "handover": epoch["handover"],
        "batch_ms": round(batches[batch]["seconds"] * 1e3, 1),
        "extra_ms": round((batches[batch]["seconds"] - usual_s) * 1e3, 1),
        "bytes_loaded": batches[batch]["fetched_bytes"],
        "bytes_moved": epoch["bytes_moved"],
        "bytes_usual": usual_bytes,
        "bytes_of_moved_buckets": round(stored * epoch["buckets_moved"] / buckets),
        "state_bytes": stored,
    }


def run_exchange(
    way: str, instances: int, rows: int, at: Mapping[str, Any], work: Path
) -> dict[str, Any]:
    """One run without a switch: its speed, and the seconds of each stage for a tuple."""
    import tidegate as tg

    on = tg.Session(master=f"local[{CORES}]")
    if way != WAYS[0]:
        on = session(at, executors=1 if way == WAYS[1] else CORES)
    batch_rows = rows // EXCHANGE_BATCHES
    stream = on.sql(EXCHANGE.format(rows=rows // 2, rate=batch_rows // 5))

    def run() -> None:
        stream.start(
            sink=tg.sink.files(str(work / "out")),
            checkpoint=str(work / "checkpoint"),
            batch_rows=batch_rows,
            instances=instances,
            execution="jobs",
        ).wait()

    batches = batches_of(run)[1:-1]  # the first starts Python, the last flushes
    more = {"rows_out": rows_written(work / "out"), "stages": stages_of(batches, instances)}
    return {**figures_of(batches), **more}


def stages_of(batches: Sequence[Batch], instances: int) -> dict[str, float]:
    """Seconds for each tuple in the stages of STRETCH's model."""
    spans, tasks = medians(batches, "spans_ms"), medians(batches, "tasks_ms")
    per_tuple = 1e-3 / statistics.median(b["rows"] for b in batches)
    process_ms = sum(tasks.get(name, 0.0) for name in PROCESS) / instances
    return {
        "input_s": max(spans["operate"] - process_ms, 0.0) * per_tuple,
        "process_s": process_ms * per_tuple,
        "output_s": spans["collect"] * per_tuple,
    }


def child(arguments: argparse.Namespace) -> None:
    """One run, in the process made for it."""
    at, work = json.loads(arguments.at), Path(arguments.work)
    part, *words = arguments.child.split(",")
    if part == "handover":
        give(run_handover(int(words[0]), words[1], at, work))
    else:
        give(run_exchange(words[0], arguments.instances[0], arguments.rows, at, work))


def modelled(runs: Mapping[int, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """What STRETCH's model makes of one way with the first two numbers of instances, for all."""
    from tidegate.model.scalability import Stages, StageWork, overhead_of, scales_to, stages

    found = {
        n: {
            name: statistics.median(r["stages"][name] for r in done)
            for name in ("input_s", "process_s", "output_s")
        }
        for n, done in runs.items()
    }
    one, two, *_ = sorted(found)
    work = StageWork(**{**found[one], "process_s": found[one]["process_s"] * one})
    overhead = overhead_of(Stages(**found[two]), work, two)
    expected = {n: stages(work, overhead, n) for n in found}
    return {
        "rows_per_second": {n: middle([r["rows_per_second"] for r in d]) for n, d in runs.items()},
        "stages": found,
        "overhead": {"hand_out_s": overhead.hand_out_s, "merge_s": overhead.merge_s},
        "model": {n: {"batch_rate": e.batch_rate, "rate": e.rate} for n, e in expected.items()},
        "measured": {n: {"batch_rate": Stages(**of).batch_rate} for n, of in found.items()},
        "scales_to": scales_to(work, overhead),
    }


def reduced(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """All switches of a size and a handover together."""
    every = [s for run in runs for s in run["switches"]]
    names = [name for name, value in every[0].items() if isinstance(value, int | float)]
    return {**{name: middle([s[name] for s in every]) for name in names}, "switches": len(every)}


def handover_table(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The table of docs/cluster.md, in Markdown."""
    heads = ("state", "handover", "batch of the switch", "longer by", "loaded", "of moved buckets")
    yield f"| {' | '.join((*heads, 'without a switch', 'stored of its buckets'))} |"
    yield "|---|---|---|---|---|---|---|---|"
    for size, by in found.items():
        for handover, case in by.items():
            extra = case["extra_ms"]
            yield (
                f"| {size} MB | {handover} | {case['batch_ms']['median']:,.0f} ms | "
                f"{extra['median']:+,.0f} ms ({extra['low']:+,.0f} to {extra['high']:+,.0f}) | "
                f"{case['bytes_loaded']['median'] / 1e6:,.2f} MB | "
                f"{case['bytes_moved']['median'] / 1e6:,.2f} MB | "
                f"{case['bytes_usual']['median'] / 1e6:,.2f} MB | "
                f"{case['bytes_of_moved_buckets']['median'] / 1e6:,.2f} MB |"
            )


def exchange_table(found: Mapping[str, Any]) -> Iterator[str]:
    """The same of the exchange: rows a second, and what the model expects."""
    for way, case in found.items():
        cells = []
        for n, rate in case["rows_per_second"].items():
            ratio = case["model"][n]["batch_rate"] / case["measured"][n]["batch_rate"]
            cells.append(f"{n}: {rate['median']:,.0f}, model {ratio * rate['median']:,.0f}")
        yield f"| {way} | {' | '.join(cells)} | scales to {case['scales_to']} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    common_arguments(parser, rounds=2)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES_MB), metavar="MB")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--rows", type=int, default=EXCHANGE_ROWS, help="of the exchange")
    parser.add_argument("--at", help=argparse.SUPPRESS)
    sweep_arguments(parser, [1, 2, CORES])
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the cluster ends with it
    moved: dict[str, dict[str, list[Any]]] = {}
    exchanged: dict[str, dict[int, list[Any]]] = {}
    apart = "handover" in arguments.parts or arguments.ways != [WAYS[0]]
    with site() if apart and not arguments.draw else nullcontext({}) as at:
        for number in range(arguments.rounds if "handover" in arguments.parts else 0):
            for size in arguments.sizes:
                for handover in HANDOVERS:
                    done = ran(at, arguments, "handover", size, handover)
                    moved.setdefault(str(size), {}).setdefault(handover, []).append(done)
                    print(f"round {number} {size} MB by {handover}: {_said(done)}", flush=True)
        if "exchange" in arguments.parts:
            ways = {way: partial(exchange, at, arguments, way) for way in arguments.ways}
            exchanged = swept("handover", ways, arguments)
    if not arguments.draw:
        check_same(exchanged)
        report(moved, exchanged)


def exchange(
    at: Mapping[str, Any], arguments: argparse.Namespace, way: str, instances: int, cores: int
) -> Any:
    """One way with so many instances; the cores are always the same, as executors are."""
    return ran(at, arguments, "exchange", way, instances=instances)


def ran(
    at: Mapping[str, Any],
    arguments: argparse.Namespace,
    *words: object,
    instances: int | None = None,
) -> Any:
    """A run in a process of its own."""
    options = ("--at", json.dumps(at), "--rows", str(arguments.rows))
    name = ",".join(map(str, words))
    return in_child(__file__, "--child", name, *options, instances=instances, cores=CORES)


def check_same(exchanged: Mapping[str, Mapping[int, list[Any]]]) -> None:
    """Every way must put out as many rows."""
    counts = [r["rows_out"] for by in exchanged.values() for done in by.values() for r in done]
    for count in counts:
        check_count("exchange", counts[0], count)


def _said(run: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{s['switch']} {s['extra_ms']:+,.0f} ms, {s['bytes_moved']:,} bytes"
        for s in run["switches"]
    )


def report(
    moved: Mapping[str, Mapping[str, list[Any]]], exchanged: Mapping[str, Mapping[int, list[Any]]]
) -> None:
    """Write what was found, and print its tables."""
    handovers = {
        size: {handover: reduced(runs) for handover, runs in by.items()}
        for size, by in moved.items()
    }
    ways = {way: modelled(by) for way, by in exchanged.items()}
    write_report(
        "handover",
        {
            "query": QUERY.strip(),
            "exchange_query": EXCHANGE.strip(),
            "executors": CORES,
            "handover": handovers,
            "exchange": ways,
            "runs": {"handover": moved, "exchange": exchanged},
        },
    )
    print("\n".join([*handover_table(handovers), "", *exchange_table(ways)]))


if __name__ == "__main__":
    main()
