"""`tidegate explain`: shows what a query would do, without running it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import click

from tidegate.cli.option.option import ALL, asked_instances, query_options, read_query, settings
from tidegate.cli.option.query_text import QueryText
from tidegate.cli.option.value import Whole
from tidegate.cli.text.answer import CommandAnswer, answers
from tidegate.driver.migration import reach_of
from tidegate.driver.options import MAX_BUCKETS, RunOptions
from tidegate.elastic.handover import Site, check, foreseen
from tidegate.errors import OptionError, UserError
from tidegate.plan.explain import Cuts, explain_all
from tidegate.plan.explain import explain as explained
from tidegate.plan.facts import cut_facts, plan_facts
from tidegate.plan.join.method import JoinOptions
from tidegate.plan.options import PlanOptions
from tidegate.plan.physical import OPERATOR_SET, QUERY_CLOUD, STRATEGIES, Plan
from tidegate.plan.strategy import Layout, Weights, size, spread
from tidegate.query.output import Output
from tidegate.session.look import sampled_shedding
from tidegate.session.place import Place
from tidegate.session.planning import plan_for


@click.command()
@query_options
@click.option(
    "--sample",
    metavar="ROWS",
    type=Whole(least=1),
    help="Run the query over its first ROWS rows, and say what WITH SHED sheds of them, and what "
    "share keeps an error.",
)
@answers
def explain(
    query: QueryText,
    streams: tuple[str, ...],
    times: tuple[str, ...],
    master: str | None,
    conf: tuple[str, ...],
    instances: tuple[str, ...],
    strategy: str,
    method: str,
    exchange: str,
    handover: str,
    routing: str,
    partitioner: str | None,
    partial: str,
    max_windows_per_tuple: int,
    sample: int | None,
) -> CommandAnswer:
    """Print the plan of QUERY.sql, its subqueries and where each part runs.

    --strategy all shows instead the three ways of cutting it into subqueries, and what each costs
    on as many instances in all. --sample also runs it over its first rows, for what WITH SHED
    would shed of them, and which share keeps an expected error.
    """
    asked = asked_instances(instances, ())
    place = Place.at(master, exchange=exchange, conf=settings(conf))
    chosen = OPERATOR_SET if strategy == ALL else strategy
    planning = PlanOptions(
        JoinOptions(method, routing), chosen, partitioner, max_windows_per_tuple, partial
    )
    options = RunOptions(
        instances=asked.instances,
        default_instances=place.default_instances(),
        buckets=MAX_BUCKETS,
        subquery_instances=asked.subquery_instances,
    )
    outputs = read_query(query, streams, times)
    plan = plan_for(outputs, place, planning)
    names = [s.name for s in plan.subqueries]
    options = options.called(plan.names)
    options.check_subqueries(names, shared=chosen == QUERY_CLOUD)
    first = options.first_instances
    if sample is not None and not sheds(plan):
        raise OptionError(
            "--sample",
            "is for a query that has WITH SHED over an aggregate",
            "one that sheds nothing",
            "Leave it out; tidegate run shows the rows of any query.",
        )
    if strategy == ALL:
        layout = Layout.of(plan, {n: options.instances_at(0, n) or first for n in names})
        cuts = _cuts(outputs, place, planning, layout)
        weights = Weights()
        return CommandAnswer(
            cut_facts(cuts, weights), lambda: explain_all(size(outputs), cuts, weights)
        )
    handovers, exchanged = _handovers(plan, place, handover), place.exchange_of(plan)
    lines = [] if sample is None else sampled_shedding(outputs, place, sample)
    shown = "\n".join(["", "", "sample", *(f"  {line}" for line in lines)]) if lines else ""
    return CommandAnswer(
        plan_facts(plan, handovers, exchanged) | ({"sample": lines} if lines else {}),
        lambda: explained(outputs, plan, handovers, exchanged) + shown,
    )


def sheds(plan: Plan) -> bool:
    """Whether an aggregate of a plan drops tuples."""
    return any(p.sieve is not None for s in plan.subqueries for p in s.prefixes)


def _handovers(plan: Plan, place: Place, asked: str) -> dict[str, str]:
    """How each subquery's buckets would be handed over, for a checkpoint that hosts share."""
    site = Site(place.on_one_host)
    reaches = {s.name: reach_of(s.operator) for s in plan.subqueries}
    check(asked, site, {name: reach for name, reach in reaches.items() if reach is not None})
    return {name: foreseen(asked, site, reach) for name, reach in reaches.items()}


def _cuts(outputs: Sequence[Output], place: Place, planning: PlanOptions, chosen: Layout) -> Cuts:
    """The plans of all strategies, each with as many instances in total as the chosen plan."""
    cuts: dict[str, Layout | str] = {}
    for strategy in STRATEGIES:
        if strategy == chosen.plan.strategy:
            cuts[strategy] = chosen
            continue
        try:
            plan: Plan = plan_for(outputs, place, replace(planning, strategy=strategy))
        except UserError as mistake:
            cuts[strategy] = str(mistake)
        else:
            cuts[strategy] = Layout.of(plan, spread(plan, chosen.total))
    return cuts
