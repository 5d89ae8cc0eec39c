"""Random loads and random faults for an hour: what `auto` must keep, alone and under a budget.

    python benchmarks/controller_chaos.py [--seeds 0:300] [--seconds 3600] [--jobs 2] [--keep FILE]
    python benchmarks/controller_chaos.py --world mild

No query runs and no clock is read (`elastic/simulated_query.py`). A seed draws one query with a
COST, or two or three that share a budget. Their loads have levels, spikes, noise, hot keys, state
and costs of a tuple that change; some may split keys, and some have a trigger that is too long.
Batches pause, tasks are run again, executors are lost (a task is run
again, an instance is slow, there are fewer slots), the clock jumps forward, measured times are off,
and figures are missing. The end has no faults and one load for each query, which may be too much
for what there is.

Wrong is: an exception; more instances than the budget or the COST; more error than is allowed; a
decision after a batch in which a task was run again; and a query that misses its target in the last
half minute. In `harsh` worlds many do miss it: loads are about as much as what there is, and the
backlog of an hour is not worked off in three minutes. There it is wrong to miss it without saying
why the target cannot be held; that tuples are late is no reason. In `mild` ones each query has at
most three fifths of its part to do, and must be within its target ten minutes after the last fault.
Results go to benchmarks/results/controller_chaos.json and controller_chaos_mild.json.
"""

from __future__ import annotations

import argparse
import heapq
import json
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measure import write_report

from tidegate.elastic.auto.forecast import MOST_MEMORY
from tidegate.elastic.auto.policy import ByTarget
from tidegate.elastic.budget.instance_need import AskedInstances
from tidegate.elastic.budget.ledger import BudgetHolder, BudgetLedger
from tidegate.elastic.simulated_query import (
    SimulatedBatch,
    SimulatedFault,
    SimulatedLoad,
    SimulatedQuery,
    SimulatedState,
)
from tidegate.model.observation import Observation

TARGET_S, ERROR, HALF_ERROR = 4.0, 0.1, 0.02
TRIGGER_S, BATCH_TUPLES, BATCH_S = 1.0, 20_000.0, 0.4
JUDGED_S = 30
"""How much of the end is judged, which is calm for longer: a backlog may be minutes of work."""
SLOTS = 24
LEAST_SEEDS = 300
"""Of fewer no results are written."""

MEMORY_BYTES = 2**30
"""What the process of an instance may hold."""


@dataclass(frozen=True)
class Misread:
    """At `at_s` the clock jumps or figures are missing, or for `seconds` there are fewer slots."""

    kind: str
    at_s: float
    seconds: float
    amount: float


@dataclass
class Course:
    """One query of a world, on its way."""

    policy: ByTarget
    state: SimulatedState
    misread: list[Misread]
    draw: np.random.Generator
    memory: Mapping[str, Any] = field(default_factory=dict)
    asked: AskedInstances = field(default_factory=AskedInstances)
    batch: SimulatedBatch | None = None
    decisions: int = 0
    batches: int = 0
    late_s: float = 0.0
    """The longest latency of the time that is judged, and of what no reason was given for."""
    silent_s: float = 0.0

    def seen(self, observed: Observation) -> Observation:
        """A batch as it was measured: never quite as it was, and sometimes not at all."""
        noise = self.draw.gamma(400, 1 / 400, len(observed.instances))
        loads = tuple(
            replace(load, cpu_s=load.cpu_s * float(times))
            for load, times in zip(observed.instances, noise, strict=True)
        )
        seen = replace(observed, instances=loads)
        end_s = self.state.now_s
        for one in list(self.misread):
            if one.at_s > end_s:
                continue
            if one.kind != "fewer slots" or one.at_s + one.seconds < end_s:
                self.misread.remove(one)
            seen = _misread(seen, one)
        return seen

    def decide(self, limit: int | None) -> None:
        """After a batch: what the policy asks for, from the next one on."""
        assert self.batch is not None
        seen = replace(self.seen(self.batch.observed), limit=limit)
        decision = self.policy.decide((seen,), self.memory)
        self.batches += 1
        # As through a manifest, now and then.
        again = self.batches % 50 == 0
        self.memory = json.loads(json.dumps(decision.memory)) if again else decision.memory
        self.asked = self.asked.after((seen,), decision)
        parts = (decision.share, decision.cadence, decision.splits)
        changes = bool(decision.requests) or any(part is not None for part in parts)
        assert not (changes and seen.disturbed), "decides after a batch that was disturbed"
        self.decisions += changes
        self.state = self.state.after(decision, (seen.buckets / seen.period_s).tolist())
        self.judge()

    def begin(self, instances: int) -> float:
        """The next batch, with so many instances at most; when it ends."""
        if instances < self.state.mapping.instances:
            self.state = self.state.scaled(instances)
        self.state, self.batch = self.state.step()
        share = self.batch.share
        assert HALF_ERROR * np.sqrt(share / (1 - share)) <= ERROR + 1e-9, "too much is shed"
        assert self.policy.cost is None or self.batch.instances <= self.policy.cost, "beyond COST"
        return self.batch.end_s

    def judge(self) -> None:
        """After the decision about a batch at the end: whether it was late, and that was said."""
        assert self.batch is not None
        end_s, late_s = self.state.course.end_s, self.batch.end_s - self.batch.after_s
        judged = self.batch.start_s > end_s - JUDGED_S and self.batch.end_s <= end_s
        if not judged or late_s <= TARGET_S:
            return
        self.late_s = max(self.late_s, late_s)
        if not self.memory.get("machine", {}).get("stuck"):
            self.silent_s = max(self.silent_s, late_s)


@dataclass(frozen=True)
class World:
    """How much there is to do: `works` gives the most work of a query, outside of spikes and at the
    end, for its fair part of the instances. The end is calm for `calm_s`. `wrong_s` is how late a
    query ended that must not."""

    name: str
    calm_s: int
    works: Callable[[float], tuple[float, float]]
    wrong_s: Callable[[Course], float]


WORLDS = {
    world.name: world
    for world in (
        World("harsh", 180, lambda fair: (12.0, 8.0), lambda one: one.silent_s),
        World(
            "mild",
            600,
            lambda fair: (max(0.6 * fair, 1.0), max(0.5 * fair, 0.8)),
            lambda one: one.late_s,
        ),
    )
}


def _misread(seen: Observation, one: Misread) -> Observation:
    if one.kind == "clock":
        late_s = None if seen.latency_s is None else seen.latency_s + one.amount
        seconds, period_s = seen.seconds + one.amount, seen.period_s + one.amount
        return replace(seen, seconds=seconds, period_s=period_s, latency_s=late_s)
    if one.kind == "fewer slots":
        return replace(seen, slots=max((seen.slots or SLOTS) - int(one.amount), 1))
    inputs = tuple(replace(load, arrived=None) for load in seen.inputs)
    return replace(seen, latency_s=None, backlog=None, inputs=inputs)


def course(
    draw: np.random.Generator, seconds: int, cost: int | None, world: World, fair: float
) -> Course:
    """A query with its load, its faults and its target; `fair` is its part of the instances."""
    most_work, calm_work = world.works(fair)
    work = np.empty(seconds)
    start = 0
    while start < seconds:
        length = int(draw.integers(5, 120))
        work[start : start + length] = draw.uniform(0.3, most_work)
        start += length
    for at in draw.integers(0, seconds, seconds // 60):
        work[at : at + int(draw.integers(1, 20))] *= draw.uniform(1.0, 4.0)
    work *= draw.gamma(50, 1 / 50, seconds)
    work[-world.calm_s :] = draw.uniform(0.5, calm_work)
    each_s = np.repeat(draw.uniform(0.5e-3, 2e-3, seconds // 300 + 1), 300)[:seconds]
    each_s[-world.calm_s :] = each_s[-world.calm_s]
    merging = float(draw.uniform(0.02, 0.2)) if draw.integers(0, 2) else None
    hot = 0.05 if merging is None else 0.4
    hottest = np.repeat(draw.uniform(0.0, hot, seconds // 60 + 1), 60)[:seconds]
    needed = np.repeat(draw.uniform(0.0, fair / 2, seconds // 300 + 1), 300)[:seconds]
    faults, misread = _faults(draw, seconds - world.calm_s)
    sheds = bool(draw.integers(0, 2))
    query = SimulatedQuery(
        load=SimulatedLoad(
            tuples=work / each_s,
            work_s=work,
            hottest=hottest,
            state_bytes=needed * MOST_MEMORY * MEMORY_BYTES,
        ),
        batch_s=BATCH_S,
        trigger_s=float(draw.choice([0.2, TRIGGER_S, 2 * TARGET_S])),
        merging=merging,
        memory_bytes=MEMORY_BYTES,
        batch_tuples=BATCH_TUPLES,
        slots=SLOTS,
        most_share=0.9 if sheds else None,
        half_error=HALF_ERROR,
        faults=faults,
    )
    policy = ByTarget(latency=TARGET_S, error=ERROR if sheds else None, cost=cost)
    return Course(policy, query.start(2), misread, draw)


def _faults(draw: np.random.Generator, seconds: int) -> tuple[list[SimulatedFault], list[Misread]]:
    """All are over after so many seconds."""
    faults, misread = list[SimulatedFault](), list[Misread]()
    for at in draw.uniform(0, seconds, seconds // 25):
        at_s, lasts_s = float(at), float(draw.uniform(0.2, 3.0))
        kind = str(draw.choice(["slow", "pause", "retry", "lost executor", "clock", "missing"]))
        instance, times = int(draw.integers(0, 16)), float(draw.uniform(1.5, 4.0))
        if kind == "lost executor":
            gone_s = min(20 * lasts_s, seconds - at_s)
            faults.append(SimulatedFault("retry", at_s, lasts_s))
            faults.append(SimulatedFault("slow", at_s, gone_s, times, instance))
            misread.append(Misread("fewer slots", at_s, gone_s, float(draw.integers(1, 9))))
        elif kind in ("clock", "missing"):
            misread.append(Misread(kind, at_s, 0.0, 20 * lasts_s))
        else:
            faults.append(SimulatedFault(kind, at_s, lasts_s, times, instance))
    return faults, misread


@dataclass(frozen=True)
class Told:
    """What became of a seed; `wrong` is empty where all is as it must be."""

    seed: int
    queries: int
    batches: int
    decisions: int
    faults: Mapping[str, int]
    most: int
    budget: int
    held: int
    said_why: int
    wrong: str = ""


def run(seconds: int, seed: int, world: World = WORLDS["harsh"]) -> Told:
    """A world to its end; what must be so at any time is asserted on the way."""
    draw = np.random.default_rng([seed, 75])
    count = 1 + seed % 3
    budget = int(draw.integers(8, 21)) if count == 1 else int(draw.integers(4, 11)) * count
    cost = budget if count == 1 else None
    courses = [course(draw, seconds, cost, world, budget / count) for _ in range(count)]
    kinds = Counter(fault.kind for one in courses for fault in one.state.query.faults)
    kinds += Counter(one.kind for of in courses for one in of.misread)
    told = partial(Told, seed, count, faults=dict(kinds), budget=budget)
    try:
        most = _run(courses, budget if count > 1 else None)
    except Exception as error:
        wrong = f"{type(error).__name__}: {error}"
        return told(batches=0, decisions=0, most=0, held=0, said_why=0, wrong=wrong)
    late = [one for one in courses if one.late_s]
    silent = [one for one in late if one.silent_s]
    wrong_s = max(map(world.wrong_s, courses))
    reasons = len(late) - len(silent)
    wrong = f"{wrong_s:.2f} s at the end, {reasons} of {len(late)} said why" if wrong_s else ""
    return told(
        batches=sum(one.batches for one in courses),
        decisions=sum(one.decisions for one in courses),
        most=most,
        held=count - len(late),
        said_why=reasons,
        wrong=wrong,
    )


def _run(courses: list[Course], budget: int | None) -> int:
    """All batches in the order of time; the most instances that ran at once."""
    ledger = BudgetLedger(budget or SLOTS)
    for number in range(len(courses)):
        ledger = ledger.joined(number, BudgetHolder(1, 1)).admitted(number, 2, 1)
    running, most = [0] * len(courses), 0
    due = [(one.state.start_s, number) for number, one in enumerate(courses)]
    heapq.heapify(due)
    while due:
        _, number = heapq.heappop(due)
        one = courses[number]
        if running[number]:  # a batch ends
            running[number] = 0
            ledger = ledger.ended(number)
            one.decide(None if budget is None else ledger.limit(number))
            ledger = ledger.wanting(number, one.asked.instances)
            ledger = ledger.reserved(number, one.state.mapping.instances)
            if not one.state.over:
                heapq.heappush(due, (one.state.start_s, number))
            continue
        wanted = one.state.mapping.instances
        if budget is not None:
            ledger = ledger.begun(number, wanted)
            wanted = ledger.holders[number].running
        heapq.heappush(due, (one.begin(wanted), number))
        assert one.batch is not None
        running[number] = one.batch.instances
        most = max(most, sum(running))
        assert budget is None or sum(running) <= budget, "beyond the budget"
    return most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:300", help="from A on and before B (0:300)")
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--world", choices=WORLDS, default="harsh")
    parser.add_argument("--keep", type=Path, help="a file for what is done, to go on another time")
    asked = parser.parse_args()
    first, _, last = asked.seeds.partition(":")
    lines = asked.keep.read_text().splitlines() if asked.keep and asked.keep.exists() else []
    found = [Told(**json.loads(line)) for line in lines]
    seeds = sorted(set(range(int(first), int(last))) - {told.seed for told in found})
    with ProcessPoolExecutor(asked.jobs) as pool:
        for told in pool.map(partial(ran, asked.seconds, asked.world), seeds):
            found.append(told)
            if asked.keep:
                with asked.keep.open("a") as file:
                    print(json.dumps(asdict(told)), file=file, flush=True)
            print(f"seed {told.seed}: {told.wrong or 'all is as it must be'}", flush=True)
    content = figures(found, asked.seconds)
    print(json.dumps(content, indent=1))
    if len(found) >= LEAST_SEEDS:
        suffix = "" if asked.world == "harsh" else f"_{asked.world}"
        write_report(f"controller_chaos{suffix}", content)
    if content["wrong"]:
        raise SystemExit(1)


def ran(seconds: int, world: str, seed: int) -> Told:
    """`run` by the name of a world, in a process of a pool."""
    return run(seconds, seed, WORLDS[world])


def figures(found: list[Told], seconds: int) -> dict[str, Any]:
    """What all seeds add up to."""
    kinds = sum((Counter(one.faults) for one in found), Counter[str]())
    return {
        "seeds": len(found),
        "simulated_seconds": seconds,
        "target_s": TARGET_S,
        "worlds": dict(Counter(f"{one.queries} queries" for one in found)),
        "batches": sum(one.batches for one in found),
        "decisions": sum(one.decisions for one in found),
        "faults": dict(sorted(kinds.items())),
        "queries": sum(one.queries for one in found),
        "within_target_at_the_end": sum(one.held for one in found),
        "late_and_said_why": sum(one.said_why for one in found),
        "budget_used_up": sum(one.most == one.budget for one in found),
        "wrong": {str(one.seed): one.wrong for one in found if one.wrong},
    }


if __name__ == "__main__":
    main()
