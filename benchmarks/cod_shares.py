"""The error of shedding by concept and uniformly, by how much is shed: dissertation, figure 40.

    python benchmarks/cod_shares.py                    rides by route, 50 to 98 percent
    python benchmarks/cod_shares.py --rows 100000      a quick look

The stream, the query and the errors are those of the case `taxi` of `cod.py`; this is one run of
each share and way in this process, without Spark. Nothing depends on the speed of the machine.
Results go to benchmarks/results/cod_shares.json.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from cod import CASES, WAYS, accuracy, run
from grouped_case import write_input
from measure import DATA, write_report

import tidegate as tg

SHARES = (0.5, 0.75, 0.9, 0.98)


def errors(rows: int, data: Path) -> dict[str, Any]:
    """By share: the error, the groups that are missing and what was shed, by way."""
    case = CASES["taxi"].of_rows(rows, 8)
    write_input(case, data / f"cod-shares-{rows}")
    session, found = tg.Session(master="none"), {}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        exact, *ways = WAYS
        run(case, exact, session, data / f"cod-shares-{rows}", work / exact)
        for share in SHARES:
            found[f"{share:g}"] = of = {}
            for way in ways:
                out = work / f"{way}-{share}"
                told = run(case, way, session, data / f"cod-shares-{rows}", out, share)
                wrong = accuracy(work / exact / "out", out / "out", case.key)
                of[way] = {"shed": told["shed"], "processed": 1 - told["shed"], **wrong}
                print(f"{way}, {share:.0%}: error {wrong['mean_group_error']:.2%}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--data", default=str(DATA), help="where input is written, once")
    asked = parser.parse_args()
    found = errors(asked.rows, Path(asked.data))
    write_report("cod_shares", {"rows": asked.rows, "shares": found})


if __name__ == "__main__":
    main()
