"""Mistakes in the costs that are estimated, and in what plans make of them."""

from __future__ import annotations

from mutants.mutant import Mutant

ESTIMATES = "tests/model/cost/test_estimator.py"

MUTANTS = (
    Mutant(
        "batches that are far off count as others do",
        "model/cost/fit.py",
        "            robust = (np.abs(errors) < _BISQUARE * scatter).astype(np.float64)\n",
        "            robust = np.ones(len(y))\n",
        ESTIMATES,
    ),
    Mutant(
        "what cannot be told apart is told with confidence",
        "model/cost/fit.py",
        "covariance[np.ix_(usable, usable)] = scatter**2 * inverse * unit",
        "covariance[np.ix_(usable, usable)] = scatter**2 * np.diag(np.diag(inverse)) * unit * 0.1",
        ESTIMATES,
    ),
    Mutant(
        "costs may be negative",
        "model/cost/fit.py",
        "        if (parts >= 0).all():\n            break\n",
        "        break\n",
        ESTIMATES,
    ),
    Mutant(
        "what was before never fades",
        "model/cost/estimator.py",
        "kept = DRIFTED if changed else 0.5 ** (KEPT / HALF_LIFE)",
        "kept = 1.0",
        ESTIMATES,
    ),
    Mutant(
        "a second in which the machine is slow is a change of costs",
        "model/cost/estimator.py",
        "changed = fit.drift >= DRIFT and fit.off >= OFF",
        "changed = fit.drift >= DRIFT",
        ESTIMATES,
    ),
    Mutant(
        "every instance is taken to see all tuples",
        "model/cost/estimator.py",
        "seen = of.tuples if self.everywhere else of.tuples / instances",
        "seen = of.tuples",
        ESTIMATES,
    ),
    Mutant(
        "map tasks count as work of instances",
        "model/observation.py",
        "max(load.cpu_s - shared_s, 0.0)",
        "load.cpu_s",
        "tests/model/test_observation.py",
    ),
    Mutant(
        "filters before a join are not known to a plan",
        "model/sizing/workload.py",
        "arriving[side] += rate * self.passed[side]",
        "arriving[side] += rate",
        "tests/session/test_calibrate.py",
    ),
    Mutant(
        "tuples do not wait for their batch",
        "model/pace.py",
        "latency_s = cycle_s / 2 + self.fixed_s",
        "latency_s = self.fixed_s",
        "tests/model/sizing/test_steady.py",
    ),
)
