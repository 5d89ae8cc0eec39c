"""What the digest and the signature of an output cost, as shares of the CPU time of a run.

    .venv/bin/python benchmarks/proof_cost.py [--rounds 5]

Every thread's CPU time in the two is added up, within the run that it is a share of: so it does not
matter what else the machine does. It counts from the end of the first batch on, in which modules
are loaded. Windows have few rows in their output, and `rows` has every row of the input.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

from durability_cost import written
from measure import CORES, DATA, give, in_child, write_report

WINDOWS = "SELECT name, COUNT(*) AS n, SUM(v) AS v FROM s [RANGE 60 SECONDS] GROUP BY name;"
EVERY = "SELECT v, name FROM s WHERE v >= 0;"
CASES = {
    "windows, large batches": (WINDOWS, 1_000_000, 100_000),
    "windows, small batches": (WINDOWS, 50_000, 1_000),
    "rows, large batches": (EVERY, 1_000_000, 100_000),
    "rows, small batches": (EVERY, 50_000, 1_000),
}


class ThreadTime:
    """The CPU time of all threads in some functions."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._lock = Lock()

    def of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*given: Any, **named: Any) -> Any:
            begun = time.thread_time()
            try:
                return function(*given, **named)
            finally:
                with self._lock:
                    self.seconds += time.thread_time() - begun

        return timed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", default=str(DATA), help="where input is written, once")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        give(run(arguments.child, Path(arguments.data), Path(arguments.work)))
        return
    found: dict[str, Any] = {case: [] for case in CASES}
    for number in range(arguments.rounds):
        for case, runs in found.items():
            runs.append(in_child(__file__, "--child", case, "--data", arguments.data))
            print(f"{case}, round {number}: {runs[-1]}", flush=True)
    medians = {
        case: {name: statistics.median(r[name] for r in runs) for name in runs[0]}
        for case, runs in found.items()
    }
    write_report("proof_cost", {"cases": found, "medians": medians})


def run(case: str, data: Path, work: Path) -> dict[str, float]:
    """One signed run in this process; the milliseconds are of one batch."""
    from tidegate.cli.main import invoke
    from tidegate.driver.checkpoint.signing import ChainSigner
    from tidegate.sink.digest.digest import Digest

    digest, signing, begun = ThreadTime(), ThreadTime(), 0.0
    Digest.of = staticmethod(digest.of(Digest.of))  # type: ignore[method-assign]
    sign = signing.of(ChainSigner.committed)

    def committed(self: ChainSigner, batch: Any) -> None:
        nonlocal begun
        sign(self, batch)
        if not begun:
            digest.seconds = signing.seconds = 0.0
            begun = time.process_time()

    ChainSigner.committed = committed  # type: ignore[method-assign]
    query, rows, batch_rows = CASES[case]
    key = work / "key.pem"
    made = ["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(key)]
    subprocess.run(made, check=True, capture_output=True)
    script = work / "query.sql"
    script.write_text(f"CREATE STREAM s FROM '{written(data, rows)}' TIME ts;\n{query}")
    words = ["run", script, "--master", "none", "--out", work / "out", "--checkpoint", work / "ck"]
    words += ["--batch-rows", batch_rows, "--instances", CORES, "--sign", key]
    if invoke([str(w) for w in words]):
        raise SystemExit("the run has failed")
    whole, batches = time.process_time() - begun, rows / batch_rows - 1
    return {
        "cpu_ms": whole * 1e3 / batches,
        "digest_ms": digest.seconds * 1e3 / batches,
        "digest_percent": 100 * digest.seconds / whole,
        "signature_ms": signing.seconds * 1e3 / batches,
        "signature_percent": 100 * signing.seconds / whole,
    }


if __name__ == "__main__":
    main()
