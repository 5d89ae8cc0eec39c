"""A live query that gets more instances while it runs, is stopped, and goes on where it was.

Shows: scale, stop, a restart from a checkpoint, and that the rows are those of a quiet run.
Run:   python examples/rescale_and_restart.py
       python examples/rescale_and_restart.py "local[*]"
"""

import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

import tidegate as tg

PACKETS = "generator:packets?rows=15000&rate=500"


def busiest(session, uri):
    packets = session.stream(uri, time="ts", name="packets")
    counted = packets.window("5 seconds", slide="1 second").group_by("src").agg(n=tg.count())
    return counted.top(5, by="n")


def wait_until(query, holds):
    while (status := query.status())["running"] and not holds(status):
        time.sleep(0.01)


def main(master: str = "none") -> None:
    session = tg.Session(master=master)
    with tempfile.TemporaryDirectory() as folder:
        out, checkpoint = f"{folder}/out", f"{folder}/checkpoint"

        # 15,000 packets a second of wall time: a stream that is read as it comes.
        live = busiest(session, f"{PACKETS}&pace=15000")
        place = {"sink": tg.sink.files(out), "checkpoint": checkpoint, "batch_rows": 1000}
        query = live.start(instances=1, **place)
        wait_until(query, lambda status: status["batch"] >= 1)
        query.scale(4)
        wait_until(query, lambda status: status["instances"] == 4)
        query.stop()
        status = query.status()
        print(f"stopped after batch {status['batch']} with {status['instances']} instances")

        query = live.start(instances=2, **place)
        summary = query.wait()
        print(f"finished: {summary.counters['rows_in']:,} rows in")

        quiet = tg.sink.memory()
        busiest(session, PACKETS).start(sink=quiet).wait()
        files = sorted(Path(out).glob("batch=*/*.parquet"))
        same = pq.read_table(files, partitioning=None).equals(quiet.table())
        print("the same rows as a quiet run" if same else "other rows than a quiet run")


if __name__ == "__main__":
    main(*sys.argv[1:])
