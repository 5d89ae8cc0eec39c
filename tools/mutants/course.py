"""Mistakes in the course of a run: batches, latency, going on."""

from __future__ import annotations

from mutants.mutant import Mutant

MUTANTS = (
    # Latency, and when batches start.
    Mutant(
        "what is taken counts for what arrives",
        "driver/report/source_watch.py",
        "return tuples if rows is None else max(tuples + rows",
        "return tuples if True else max(tuples + rows",
        "tests/driver/test_source_watch.py",
    ),
    Mutant(
        "the latency of a paced row counts from when it is read",
        "source/generator.py",
        "BEFORE, self._begun_at + due_s)",
        "BEFORE, self._clock.now())",
        "tests/driver/test_latency.py",
    ),
    Mutant(
        "the latency of tuples that wait for the watermark ends when they are read",
        "gate/track.py",
        "if not self.hold:\n            return AnsweredTuples",
        "if True:\n            return AnsweredTuples",
        "tests/driver/test_latency.py",
    ),
    Mutant(
        "late tuples have no latency",
        "gate/track.py",
        "        done[taken.new_from - taken.start :] |= aside[taken.new_from - taken.start :]\n",
        "",
        "tests/driver/test_latency.py",
    ),
    Mutant(
        "the latency of what a run finds when it starts goes back to before it",
        "driver/report/latency.py",
        "np.maximum(one.arrived_at, self._ready_at)",
        "one.arrived_at",
        "tests/driver/test_latency.py",
    ),
    Mutant(
        "a run that waits is not woken by input, and adds to latency",
        "driver/loop.py",
        "self._clock.wait(self._news, inputs.expected_s())",
        "self._clock.wait(self._stop, self.options.poll_s)",
        "tests/driver/test_trigger.py",
    ),
    Mutant(
        "a signal aborts the batch at hand",
        "cli/stop.py",
        "signals = 0",
        "signals = 1",
        "tests/cli/test_watch.py tests/cli/test_stop.py",
    ),
    # Metrics: how instances and batches fold.
    Mutant(
        "a counter leaves out all subqueries but the first",
        "driver/metric/metric.py",
        "return chain.from_iterable(work.outcomes)",
        "return chain.from_iterable(work.outcomes[:1])",
        "tests/driver/test_metric_table.py",
    ),
    Mutant(
        "the most state of a run is that of its newest batch",
        "driver/metric/fold.py",
        "max(self.most, value)",
        "value",
        "tests/driver/test_metrics.py",
    ),
    Mutant(
        "starting tasks is taken for their work",
        "driver/metric/serial.py",
        "min(worked_ms, waited_ms or math.inf)",
        "waited_ms or worked_ms",
        "tests/driver/test_serial.py",
    ),
    Mutant(
        "instances are proposed that wait longer than they work",
        "model/sizing/proposal.py",
        "if max(c.instances.values()) <= useful]",
        "if useful]",
        "tests/model/sizing/test_proposal.py",
    ),
    # Runs that go on another time.
    Mutant(
        "new input on a finished checkpoint is ignored",
        "driver/checkpoint/recovery.py",
        "if not new:",
        "if True:",
        "tests/cli/test_scheduled.py",
    ),
    Mutant(
        "a run over what is available finishes its windows",
        "driver/connection.py",
        "lasts = options.follow or options.available_now",
        "lasts = options.follow",
        "tests/property/test_available_now.py",
    ),
    Mutant(
        "a batch without rows is written",
        "driver/outlet.py",
        "if output.receipts is None and output.rows.num_rows:",
        "if output.receipts is None:",
        "tests/driver/test_trigger.py",
    ),
)
