"""Mistakes in the model that predicts latencies."""

from __future__ import annotations

from mutants.mutant import EVENTS, Mutant

MUTANTS = (
    Mutant(
        "a window of time has an interval too many",
        "model/operation.py",
        "np.interp(edges_s[1:] + min(passed_s, 0.0),",
        "np.interp(edges_s[:-1] + min(passed_s, 0.0),",
        EVENTS,
    ),
    Mutant(
        "work that is left over is forgotten",
        "model/join/work.py",
        "    left = surplus - np.minimum(np.minimum.accumulate(surplus), 0.0)\n",
        "    left = np.zeros_like(surplus)\n",
        EVENTS,
    ),
    Mutant(
        "work that is done late has no delay",
        "model/join/work.py",
        "values[m] + (i - m) * step_s",
        "values[m]",
        EVENTS,
    ),
    Mutant(
        "an instance scans what others keep",
        "model/join/work.py",
        "scan_latency(window_s / instances, costs)",
        "scan_latency(window_s, costs)",
        EVENTS,
    ),
    Mutant(
        "output waits for its own instance too",
        "model/join/work.py",
        "waits = (instances - 1) / instances * period_s",
        "waits = period_s",
        EVENTS,
    ),
    Mutant(
        "tuples that coincide make each other ready",
        "model/join/readiness.py",
        "missed = strict or group.sources[0] < source",
        "missed = False",
        EVENTS,
    ),
    Mutant(
        "tuples of batches wait for a later one of others only",
        "model/join/predict.py",
        "strict=batch is not None",
        "strict=False",
        EVENTS,
    ),
    Mutant(
        "tuples arrive when their batch starts",
        "model/join/micro_batch.py",
        "0.0, start - _mean_arrival(course, after, until))",
        "0.0, 0.0 * start)",
        EVENTS,
    ),
    Mutant(
        "a batch takes more rows than it may",
        "model/join/batch_run.py",
        "        if tuples - taken > most:\n",
        "        if False:\n",
        EVENTS,
    ),
)
