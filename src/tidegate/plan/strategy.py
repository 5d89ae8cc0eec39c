"""Estimates the cost of each way to cut a query into subqueries, for `tidegate explain`.

The cost is that of StreamCloud (its supplement, XI): alpha * fan-out + beta * rate * hops. A
**hop** is one tuple that goes from a subquery to the next. A **channel** connects an instance that
sends with one that receives; the fan-out is their number. The way from a stream to the first
subquery is the same for every strategy and is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tidegate.plan.physical import OPERATOR_CLOUD, QUERY_CLOUD, Edge, Plan
from tidegate.query.node.graph import bottom_up
from tidegate.query.node.node import Input, Top
from tidegate.query.output import Output


@dataclass(frozen=True)
class Weights:
    """The cost of a channel (`alpha`), of a hop (`beta`), and the tuples per second.

    By default a channel costs as much as a thousand hops.
    """

    alpha: float = 1.0
    beta: float = 0.001
    rate: float = 100_000

    def cost(self, fan_out: float, hops: float) -> float:
        return self.alpha * fan_out + self.beta * self.rate * hops


@dataclass(frozen=True)
class Handover:
    """An edge from one subquery to another, and its number of channels."""

    giver: str
    taker: str
    channels: int


@dataclass(frozen=True)
class Layout:
    """A plan with its instances; `hops` is the number of edges on its longest path."""

    plan: Plan
    instances: Mapping[str, int]
    handovers: tuple[Handover, ...]
    hops: int

    @staticmethod
    def of(plan: Plan, instances: Mapping[str, int]) -> Layout:
        handovers: list[Handover] = []
        depth: list[int] = []
        for subquery in plan.subqueries:
            origins = [o for p in subquery.prefixes if isinstance(o := p.origin, Edge)]
            for origin in origins:
                giver = plan.subqueries[origin.subquery].name
                channels = instances[giver] * instances[subquery.name]
                handovers.append(Handover(giver, subquery.name, channels))
            depth.append(max((depth[o.subquery] + 1 for o in origins), default=0))
        return Layout(plan, instances, tuple(handovers), max(depth))

    @property
    def fan_out(self) -> int:
        """The number of channels of all edges."""
        return sum(h.channels for h in self.handovers)

    @property
    def total(self) -> int:
        """The number of instances; with query-cloud all subqueries share them."""
        every = self.instances.values()
        return max(every) if self.plan.strategy == QUERY_CLOUD else sum(every)

    def cost(self, weights: Weights) -> float:
        return weights.cost(self.fan_out, self.hops)


def spread(plan: Plan, total: int) -> dict[str, int]:
    """Divide `total` instances evenly among the subqueries; each gets at least one."""
    names = [s.name for s in plan.subqueries]
    if plan.strategy == QUERY_CLOUD:
        return dict.fromkeys(names, total)
    return dict(zip(names, proposed([1] * len(names), max(total, len(names))), strict=True))


@dataclass(frozen=True)
class OperatorCount:
    """The number of operators of a query, and of those that keep state."""

    operators: int
    stateful: int


def size(outputs: Sequence[Output]) -> OperatorCount:
    """Count the operators of a query; a shared one counts once.

    ORDER BY and LIMIT count as part of their aggregate.
    """
    found = set(bottom_up(o.node for o in outputs))
    operators = [n for n in found if not isinstance(n, Input | Top)]
    return OperatorCount(len(operators), sum(n.stateful for n in operators))


@dataclass(frozen=True)
class Formula:
    """Fan-out and hops of a strategy by StreamCloud's formulas."""

    fan_out: float
    hops: int


def formula(strategy: str, query: OperatorCount, instances: int) -> Formula:
    """Fan-out and hops of a query with a stateless prefix, on evenly divided instances.

    The formulas count every channel of query-cloud, but otherwise only those of one instance of
    each subquery.
    """
    if strategy == QUERY_CLOUD:
        return Formula(instances * (instances - 1), query.stateful)
    parts = query.operators if strategy == OPERATOR_CLOUD else query.stateful + 1
    parts = max(parts, 1)
    return Formula(instances / parts * (parts - 1), parts - 1)


def proposed(costs: Sequence[float], total: int) -> list[int]:
    """Divide `total` instances in proportion to costs, at least one each; `total >= len(costs)`.

    Uses the method of the largest remainder; of equal remainders the first wins. A cost that would
    get less than one instance gets one, and the others share the rest.
    """
    weights = [Fraction(c) for c in costs]
    if not any(weights):
        weights = [Fraction(1)] * len(weights)
    single: set[int] = set()
    while True:
        rest = [i for i in range(len(weights)) if i not in single]
        whole = sum((weights[i] for i in rest), Fraction(0))
        left = total - len(single)
        quotas = {i: weights[i] * left / whole for i in rest}
        small = {i for i, quota in quotas.items() if quota < 1}
        if not small:
            break
        single |= small
    found = [int(quotas.get(i, 1)) for i in range(len(weights))]
    by_remainder = sorted(quotas, key=lambda i: (found[i] - quotas[i], i))
    for i in by_remainder[: total - sum(found)]:
        found[i] += 1
    return found
