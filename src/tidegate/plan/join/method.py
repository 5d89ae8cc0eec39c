"""Chooses the method and the routing of a join from its intervals and a sample of its tuples.

The choice never changes the output: every method and routing gives the same sequence. The reasons
are kept for `explain`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.errors import OptionError
from tidegate.operate.join.spec import BAND, BOUND, EQUAL, HASH, SCAN, UNION, PairInterval, Probe
from tidegate.operate.join.state import BY_KEY, BY_RANGE, ROUND_ROBIN
from tidegate.plan.join.branch import Disjunction, PredicateBranch
from tidegate.plan.join.sample import SideSample
from tidegate.route.cell import IN_TURN, CellGrid
from tidegate.route.mapping import even

AUTO = "auto"
METHODS = (AUTO, SCAN)
ROUTINGS = (AUTO, BY_KEY, ROUND_ROBIN, BY_RANGE)

OTHER_WORDS = {"deal": ROUND_ROBIN}
"""Other names of routings."""

SELECTIVE = 0.1
"""A one-sided bound is worth an index if it passes less than this share of the pairs."""

UNSELECTIVE, FEWER = 0.01, 4
"""A union searches several indexes. It replaces a single index that passes more than `UNSELECTIVE`
of the pairs, if it passes `FEWER` times fewer."""

_NO_INDEX = Probe((), None)

_LIKELY_INSTANCES = 16
"""The first cells are chosen for so many instances: the real number is not known yet."""

EVEN = 4
"""Tuples may be placed by key if the most frequent key has less than 1 / (EVEN * buckets) of them.
Its bucket then has at most a quarter more than its share, for any number of instances."""


@dataclass(frozen=True)
class JoinOptions:
    """The user's options for a join; `buckets` decides when a placement by key is even enough."""

    method: str = AUTO
    routing: str = AUTO
    buckets: int = 64

    def __post_init__(self) -> None:
        object.__setattr__(self, "routing", OTHER_WORDS.get(self.routing, self.routing))
        for name, value, known in (
            ("--method", self.method, METHODS),
            ("--routing", self.routing, ROUTINGS),
        ):
            if value not in known:
                raise OptionError(name, f"must be one of {', '.join(known)}", str(value))

    @property
    def chosen(self) -> tuple[tuple[str, str], ...]:
        """The options that the user has set, with their values."""
        given = (("--method", self.method), ("--routing", self.routing))
        return tuple((name, value) for name, value in given if value != AUTO)


@dataclass(frozen=True)
class MethodChoice:
    """How a join is done, and the reasons in words."""

    method: str
    index: int | None
    routing: str
    reasons: tuple[str, ...]
    branches: tuple[Probe, ...] = ()
    grid: CellGrid = IN_TURN


def choose(
    intervals: Sequence[PairInterval],
    options: JoinOptions,
    sample: SideSample | None,
    disjunctions: Sequence[Disjunction] = (),
    together: str | None = None,
) -> MethodChoice:
    """Choose the method, the index to probe and the routing; a pure function.

    `together` is the reason why all tuples of a key must be in one place, if they must.
    """
    branches: tuple[Probe, ...] = ()
    if options.method == SCAN:
        method, index, why = SCAN, None, "asked for with --method scan"
    else:
        method, index, why = _method(intervals, sample)
        rate = None
        if disjunctions and index is not None and sample is not None:
            rate = sample.probe_rate(Probe(tuple(intervals), index))
        if index is None or (rate is not None and rate > UNSELECTIVE):
            branches, reason = _union(disjunctions, sample, rate)
            why = reason or why
    if branches:
        method, index = UNION, None
    probe = Probe(tuple(intervals), index)
    # Range routing sends a tuple to the cells that its interval meets. An interval that is open at
    # one end would meet almost all of them.
    if index is None or intervals[index].kind == BOUND:
        probe = _NO_INDEX
    routing, where = _routing(intervals, probe, options, sample, together)
    grid = IN_TURN
    if routing == BY_RANGE:
        grid, cells = _grid(probe, sample, options.buckets)
        where = f"{where}, {cells}"
    reasons = (f"{method}: {why}", f"{routing}: {where}")
    return MethodChoice(method, index, routing, reasons, branches, grid)


def _grid(probe: Probe, sample: SideSample | None, buckets: int) -> tuple[CellGrid, str]:
    """The cells that a join begins with, and the reason; tasks survey tuples and improve them."""
    instances = min(_LIKELY_INSTANCES, buckets)
    survey = None if sample is None else sample.survey(probe, even(buckets, instances))
    if survey is None:
        return IN_TURN, "dealt in turn until a survey of its tuples has found cells"
    found = survey.best()
    assert sample is not None
    if not found.grid.width:
        return IN_TURN, "dealt in turn: cells would spare no work in the first tuples"
    width = "their codes" if probe.one_key else f"{found.grid.width:.4g}"
    searched = f"a tuple searches at {found.searches:.1f} of {instances} instances"
    return found.grid, f"in cells of {width}: {searched}, by {sample.text}"


def _union(
    disjunctions: Sequence[Disjunction], sample: SideSample | None, rate: float | None
) -> tuple[tuple[Probe, ...], str | None]:
    """The branches of the most selective disjunction, and the reason; or no branches, and why.

    `rate` is the share of pairs that a single index for all branches passes, if there is one.
    """
    chosen: tuple[Probe, ...] = ()
    why: str | None = None
    for disjunction in disjunctions:
        probes = [_probe(branch, sample) for branch in disjunction.branches]
        if None in probes:
            branch = disjunction.branches[probes.index(None)]
            if rate is None and not chosen:
                why = f"{disjunction.text} has no index for its branch {branch.text}"
            continue
        branches = tuple(probe for probe in probes if probe is not None)
        share = None if sample is None else sample.union_rate(branches)
        limit = None if rate is None else rate / FEWER
        if (limit is None and not chosen) or _is_below(share, limit):
            chosen, rate = branches, share
            why = f"{disjunction.text} has an index for each of {len(branches)} branches"
            if share is not None and sample is not None:
                why += f", which pass {share:.2%} of the pairs of {sample.text}"
    return chosen, why


def _is_below(share: float | None, limit: float | None) -> bool:
    return share is not None and limit is not None and share < limit


def _probe(branch: PredicateBranch, sample: SideSample | None) -> Probe | None:
    """How the pairs of a branch are found; None if it has no index.

    A gate serves as the index if there is no other.
    """
    index = _method(branch.intervals, sample)[1]
    if index is None and branch.gates:
        index = len(branch.intervals)
    return None if index is None else Probe(branch.intervals + branch.gates, index)


def _method(
    intervals: Sequence[PairInterval], sample: SideSample | None
) -> tuple[str, int | None, str]:
    for kind, method in ((EQUAL, HASH), (BAND, BAND)):
        places = [i for i, interval in enumerate(intervals) if interval.kind == kind]
        if places:
            return method, *_best(intervals, places, sample)
    places = [i for i, interval in enumerate(intervals) if interval.kind == BOUND]
    if not places:
        return SCAN, None, "no conjunct compares a value of one side with one of the other"
    if sample is None:
        return SCAN, None, "the bounds are open at one end, and there is no sample to judge them by"
    best, why = _best(intervals, places, sample)
    rate = sample.pass_rate(intervals[best])
    if rate is not None and rate < SELECTIVE:
        return BAND, best, why
    return SCAN, None, f"the best bound is open at one end: {why}"


def _best(
    intervals: Sequence[PairInterval], places: Sequence[int], sample: SideSample | None
) -> tuple[int, str]:
    """The interval that the fewest pairs pass, the first without a sample."""
    what = {EQUAL: "equality", BAND: "band", BOUND: "bound"}[intervals[places[0]].kind]
    if sample is None:
        which = f"an {what}" if what == "equality" else f"a {what}"
        which = which if len(places) == 1 else f"the first of {len(places)}, without a sample"
        return places[0], f"{intervals[places[0]].text} is {which}"
    rates = {i: sample.pass_rate(intervals[i]) for i in places}
    best = min(places, key=lambda i: 1.0 if (rate := rates[i]) is None else rate)
    if rates[best] is None:
        return best, f"{intervals[best].text} is the first, the sample cannot be compared"
    text = f"{intervals[best].text} passes {rates[best]:.2%} of the pairs of {sample.text}"
    others = [f"{rates[i]:.2%}" for i in places if i != best and rates[i] is not None]
    return best, f"{text}, against {' and '.join(others)}" if others else text


def _routing(
    intervals: Sequence[PairInterval],
    probe: Probe,
    options: JoinOptions,
    sample: SideSample | None,
    together: str | None,
) -> tuple[str, str]:
    equalities = [i for i in intervals if i.kind == EQUAL]
    if together is not None:
        if options.routing not in (AUTO, BY_KEY):
            raise OptionError("--routing", f"must be {BY_KEY}: {together}", options.routing)
        return BY_KEY, together
    if options.routing == BY_KEY:
        if not equalities:
            raise OptionError(
                "--routing",
                "key needs an equality of both sides in the join's condition",
                "none",
                "Leave it out, or add one.",
            )
        return BY_KEY, "asked for with --routing key"
    if options.routing == BY_RANGE:
        if probe.index is None:
            raise OptionError(
                "--routing",
                "range needs a band or an equality of both sides that is the join's only index",
                "none",
                "Leave it out, or add one, for example l.x BETWEEN r.x - 1 AND r.x + 1.",
            )
        return BY_RANGE, "asked for with --routing range"
    if options.routing == ROUND_ROBIN:
        return ROUND_ROBIN, "asked for with --routing round-robin"
    if probe.index is not None and not probe.one_key:
        return BY_RANGE, "by the values that the band compares"
    if not equalities:
        return ROUND_ROBIN, "there is no equality to route by"
    uneven = ROUND_ROBIN if probe.index is None else BY_RANGE
    if sample is None:
        return uneven, "no sample to judge the keys by, and it is even for any keys"
    share, limit = sample.top_share(equalities), 1 / (EVEN * options.buckets)
    if share is None:
        return uneven, "the keys of the sample cannot be compared"
    text = f"the most frequent key has {share:.2%} of {sample.text}"
    if share < limit:
        return BY_KEY, f"{text}, less than {limit:.2%}"
    return uneven, f"{text}, keys would be uneven from {limit:.2%} on"
