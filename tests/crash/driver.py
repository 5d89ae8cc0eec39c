"""The process to be killed: runs a scene as a program would, with a fault planted in it.

    python tests/crash/driver.py '{"scene": "top", "inputs": ..., "out": ..., "checkpoint": ...}'

With `--serve` it takes such requests as lines on standard input and forks a process for each, which
saves the imports; it answers with the process id, and with the exit status once it has ended.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import traceback
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import obstore
from tools.compile_loops import loops

from tests.crash.process import wait_for
from tests.crash.scene import SCENES
from tidegate.driver.options import RunOptions
from tidegate.errors import TidegateError, UserError
from tidegate.execute.runner import JobRunner
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.sum.exact_sum import (
    add_sums,
    covariances,
    round_sums,
    sum_products,
    sum_values,
)
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.sink.address import Address
from tidegate.sink.registry import at
from tidegate.testing import FailAtChange, FullAtByte, KillAt, KillAtChange, KillInOperate, kill

BUCKETS = 16
IMPORTED_LATE = (
    "pyarrow.acero pyarrow.dataset tidegate.source.files tidegate.source.parquet "
    "tidegate.source.text.csv tidegate.source.text.json"
).split()
"""What a run imports when it needs it: each forked process would do so again."""


def run(request: dict[str, Any], executor: JobRunner | None = None) -> None:
    """Run a scene to its end, or to the fault's; tasks are those of an executor, if one is given.

    The request may name where else they run, and how.
    """
    scene = SCENES[request["scene"]]
    observer = observer_of(request.get("fault"))
    place = Place(
        request.get("master", "none"),
        exchange=request.get("exchange", "auto"),
        execution=request.get("execution", "auto"),
        conf=request.get("conf", {}),
    )
    outputs = scene.outputs(request["inputs"])
    plan = plan_for(outputs, place)
    options = RunOptions(
        instances=request.get("instances", scene.instances),
        buckets=BUCKETS,
        batch_rows=request.get("batch_rows", scene.batch_rows),
        switches={int(b): n for b, n in request.get("switches", scene.switches).items()},
    )
    format_ = request.get("format", scene.format)
    form = f"?format={format_}" if format_ else ""
    out = Address.parse(f"{request['out']}{form}", "--out")
    sinks = {o.name: at(out, o.name) for o in outputs}
    loop = prepare(
        plan, place.connected(), sinks, options, request["checkpoint"], observer=observer
    )
    loop.runner = executor or loop.runner
    if request.get("two_jobs"):
        from tidegate.execute.spark import task_exchange as spark_shared

        spark_shared.SMALL_ROWS = 0
    for number, more in enumerate(request.get("traps", ())):
        tally = f"{request['checkpoint']}-traps/{os.getpid()}-{number}"
        loop.runner = KillInOperate(loop.runner, tally=tally, **more)
    loop.run()
    if isinstance(observer, KillAtChange):
        print(json.dumps({"changes": observer.count, "bytes": observer.bytes}))
    if isinstance(observer, KillAtRequest):
        print(json.dumps({"requests": observer.count}))


@dataclass(frozen=True)
class Pause:
    """Says by a file `NAME.reached` that a step is reached, and goes on when NAME is there."""

    step: str
    batch: int
    file: str

    def __call__(self, step: str, batch: int) -> None:
        if (step, batch) == (self.step, self.batch):
            Path(f"{self.file}.reached").touch()
            wait_for(Path(self.file).exists, "the test lets the driver go on")


class KillAtRequest:
    """Kills before the n-th request that changes an object store, and counts them."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.count = 0
        for name in ("put", "copy", "delete"):
            self._count(name)

    def __call__(self, step: str, batch: int) -> None:
        """Steps are of no interest."""

    def _count(self, name: str) -> None:
        request = getattr(obstore, name)

        def counted(*arguments: Any, **more: Any) -> Any:
            if self.count == self.number:
                kill(os.getpid())
            self.count += 1
            return request(*arguments, **more)

        setattr(obstore, name, counted)


def observer_of(
    fault: dict[str, Any] | None,
) -> KillAt | KillAtChange | KillAtRequest | Pause | None:
    """The fault of a request: at a step, or at a change to a file from the start or a step on."""
    if fault is None:
        return None
    kinds = {
        "step": KillAt,
        "change": KillAtChange,
        "failure": FailAtChange,
        "full": FullAtByte,
        "pause": Pause,
        "request": KillAtRequest,
    }
    observer = kinds[fault["kind"]](**{k: v for k, v in fault.items() if k != "kind"})
    if isinstance(observer, KillAtChange) and observer.step is None:
        observer.arm()
    return observer


def main(request: dict[str, Any]) -> int:
    """Run a request; the exit code is that of the command line."""
    sys.dont_write_bytecode = True
    try:
        run(request)
    except TidegateError as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    return 0


def serve() -> None:
    """Answer requests until standard input ends."""
    for name in IMPORTED_LATE:
        import_module(name)
    load_loops()
    gc.collect()
    gc.freeze()  # what is here stays; forked processes need not look through it
    for line in sys.stdin:
        request = json.loads(line)
        for module in request.get("imports", ()):  # once, for all that are forked
            import_module(module)
        pid = os.fork()
        if pid == 0:
            os._exit(_child(request))
        print(json.dumps({"pid": pid}), flush=True)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(json.dumps({"status": status}), flush=True)


def load_loops() -> None:
    """Have machine code in memory before a process is forked; each would load it again."""
    one = Groups(np.zeros(1, np.int64), 1)
    x = sum_values(one, np.ones(1))
    xx = sum_products(one, np.ones(1), np.ones(1))
    round_sums(add_sums(one, x))
    covariances(np.ones(1, np.int64), 1, x, x, xx)
    for _, load in loops():
        load()


def _child(request: dict[str, Any]) -> int:
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for old, new in ((0, nothing), (1, log), (2, log)):
        os.dup2(new, old)
    try:
        code = main(request)
    except BaseException:
        traceback.print_exc()
        code = 70
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve()
    else:
        sys.exit(main(json.loads(sys.argv[1])))
