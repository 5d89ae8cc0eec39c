"""Strikes real processes with real faults, by a seed, and checks every row that comes out.

A query reads Kafka and writes to Kafka, Postgres and S3, with its checkpoint on S3. `cluster` runs
it on three executors, each on a host of its own; `alone` runs it without Spark and kills its driver
about once a second. Namespaces keep everything apart from this machine; root is needed for them.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.fault_count import add
from tests.nemesis.campaign import Report
from tests.nemesis.launch import campaign
from tests.nemesis.schedule import SETTINGS


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m tests.nemesis", description=__doc__)
    parser.add_argument("setting", nargs="?", choices=SETTINGS, default="cluster")
    parser.add_argument("--minutes", type=float, default=20.0, help="of rounds of faults (20)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=Path, metavar="FILE", help="add what happened to it")
    asked = parser.parse_args(arguments)
    begun = time.monotonic()
    report = campaign(asked.setting, asked.seed, 60 * asked.minutes)
    if asked.count is not None:
        wrong = [f"seed {asked.seed}"] if report.wrong else []
        add(asked.count, asked.setting, 1, report.faults, report.kills, wrong)
    print(told(report), f"in {time.monotonic() - begun:.0f} s")
    return int(bool(report.wrong))


def told(report: Report) -> str:
    lines = [*report.story]
    for name, text in report.logs.items():
        lines += [f"== {name}", text]
    lines += [f"wrong: {wrong}" for wrong in report.wrong]
    return "\n".join(
        [
            *lines,
            f"seed {report.seed}: faults {dict(report.faults)}, kills {dict(report.kills)}, "
            f"{report.lives} lives {dict(report.ends)}, rows {report.rows}, all of them "
            f"{report.recovered_s} s after the last fault, {len(report.wrong)} wrong,",
        ]
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
