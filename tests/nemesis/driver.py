"""The driver under the nemesis, as a program: forked for each life, which saves the imports.

It takes requests as lines on standard input, answers with a process id, and with the exit status
once that process has ended: 0, 1 for an error that Tidegate tells users, 3 for any other one.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import traceback
from importlib import import_module
from typing import Any

import tidegate as tg
from tests.crash.driver import load_loops
from tests.nemesis.query import OUTPUTS, STREAM
from tidegate.errors import TidegateError

IMPORTED_LATE = (
    "confluent_kafka obstore psycopg pyarrow.parquet tidegate.sink.kafka.sink "
    "tidegate.sink.postgres.sink tidegate.source.kafka.feed tidegate.source.kafka.fetch"
).split()

TOLD, UNTOLD = 1, 3


def run(asked: dict[str, Any]) -> None:
    session = tg.Session(master=asked["master"], conf=asked["conf"])
    outputs = session.queries(STREAM.format(kafka=asked["kafka"]) + OUTPUTS)
    query = session.start(
        outputs,
        sinks={name: tg.sink.of(uri) for name, uri in asked["sinks"].items()},
        checkpoint=asked["checkpoint"],
        instances=asked["instances"],
        buckets=16,
        follow=True,
        trigger=asked["trigger"],
    )
    query.wait()


def main(asked: dict[str, Any]) -> int:
    with open(asked["log"], "a") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    try:
        run(asked)
    except TidegateError as error:
        print(f"ended: {type(error).__name__}: {error}", flush=True)
        return TOLD
    except BaseException:
        traceback.print_exc()
        return UNTOLD
    return 0


def serve() -> None:
    for name in IMPORTED_LATE:
        import_module(name)
    load_loops()
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os._exit(main(json.loads(line)))
        print(json.dumps({"pid": pid}), flush=True)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(json.dumps({"status": status}), flush=True)


if __name__ == "__main__":
    serve()
