"""STRETCH's model with the costs of its table 1, and its table 2 by the policy `threshold`.

    python benchmarks/stretch_model.py

Nothing runs and no clock is read. Figure 3: how fast the three stages are with n threads, for
virtual and for pure shared-nothing parallelism, and up to how many threads each scales; rates are
those of the input stage with one thread. Table 2: 5, 9, 18, 30 and 40 instances at 70 percent of
what they can do get a load of 120 percent, and one of 30; the policy with its defaults, which are
STRETCH's thresholds, says how many there are to be, with the 1,000 buckets that STRETCH takes.
Results go to benchmarks/results/stretch_model.json.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from measure import write_report

from tidegate.elastic.threshold import Threshold
from tidegate.model.scalability import Overhead, StageWork, pure, scales_to, stages, virtual
from tidegate.testing import drive

THREADS = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32)
STARTS = (5, 9, 18, 30, 40)
CALM, MORE, FEWER = 0.7, 1.2, 0.3
BUCKETS, BEFORE, AFTER = 1_000, 10, 30
WORK = StageWork(input_s=1.0, process_s=16.0, output_s=1.0)


def scaling(overhead: Overhead) -> dict[str, Any]:
    """Figure 3: the rates of the stages by threads, and up to how many it scales."""
    by_threads = {n: stages(WORK, overhead, n) for n in THREADS}
    return {
        "scales_to": scales_to(WORK, overhead),
        "most": max(of.rate for of in by_threads.values()),
        "threads": {
            str(n): {
                "input": 1 / of.input_s,
                "process": 1 / of.process_s,
                "output": 1 / of.output_s,
                "rate": of.rate,
            }
            for n, of in by_threads.items()
        },
    }


def answered(before: int, share: float) -> int:
    """How many instances there are when the load has become this share of what they can do."""
    loads = [np.full(BUCKETS, CALM * before / BUCKETS)] * BEFORE
    loads += [np.full(BUCKETS, share * before / BUCKETS)] * AFTER
    return drive(Threshold(), loads, instances=before)[-1].instances


def main() -> None:
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    table = {str(n): {"more": answered(n, MORE), "fewer": answered(n, FEWER)} for n in STARTS}
    ways = {"virtual": scaling(virtual(WORK.input_s)), "pure": scaling(pure(WORK.input_s))}
    for name, of in ways.items():
        print(f"{name}: scales to {of['scales_to']} threads, {of['most']:.2f} of the input's rate")
    print(table)
    write_report("stretch_model", {"figure 3": ways, "table 2": table})


if __name__ == "__main__":
    main()
