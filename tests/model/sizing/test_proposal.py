"""How many instances are proposed, one by one to where they save most."""

from __future__ import annotations

from tests.model.sizing.test_steady import QUIET, TWO, join, measured
from tidegate.model.sizing.proposal import InstanceLimit, propose
from tidegate.model.sizing.steady import QueryModel, SubqueryModel
from tidegate.model.sizing.workload import TupleWorkload

RATES = {"r": 900.0, "s": 900.0}


def test_the_fewest_that_surely_do() -> None:
    model = join(measured())
    found = propose(model, RATES, 0.05, InstanceLimit(each=8, total=8))
    assert found.met
    assert found.sure
    count = found.chosen.instances["join"]
    assert [c.instances["join"] for c in found.choices] == list(range(1, count + 1))
    assert model.steady(RATES, {"join": count}).latency_s.high <= 0.05
    assert model.steady(RATES, {"join": count - 1}).latency_s.high > 0.05


def test_without_a_latency_it_has_to_keep_up() -> None:
    found = propose(join(measured()), {"r": 2_000.0, "s": 2_000.0}, None, InstanceLimit(8, 8))
    assert found.sure
    assert found.chosen.steady.load.high < 1
    assert found.choices[-2].steady.load.high >= 1


def test_the_best_there_is_where_none_do() -> None:
    found = propose(join(measured()), RATES, 0.03, InstanceLimit(each=2, total=8))
    assert not found.met
    assert found.chosen is found.choices[-1]
    assert found.chosen.instances == {"join": 2}
    assert found.within == 0 or found.within < 1


def test_no_more_than_pay_where_the_rates_are_too_high_for_any_number() -> None:
    """What is beside the instances bounds the rates that any number of them keeps up with."""
    model, rates = join(measured()), {"r": 40_000.0, "s": 40_000.0}
    found = propose(model, rates, None, InstanceLimit(each=20, total=20))
    assert not found.met
    assert found.chosen.instances["join"] == int(model.speed_up(rates).useful)
    assert found.chosen.limit.value < model.limit(rates, {"join": 4_096}).value <= found.ever < 1


def test_no_more_than_pay_where_the_latency_is_too_low_for_any_number() -> None:
    model = join(measured())
    found = propose(model, RATES, 1e-6, InstanceLimit(each=20, total=20))
    assert not found.met
    assert len(found.choices) == 20
    assert found.chosen.instances["join"] == int(model.speed_up(RATES).useful) < 20


def test_the_next_instance_goes_to_where_it_saves_most() -> None:
    scan = join(measured()).subqueries[0]
    light = SubqueryModel("light", ("join",), TupleWorkload(1.0), measured(QUIET))
    model = QueryModel(TWO, (scan, light), measured())
    found = propose(model, {"r": 2_000.0, "s": 2_000.0}, 0.001, InstanceLimit(each=3, total=4))
    assert [c.instances["join"] for c in found.choices[:3]] == [1, 2, 3]
    assert sum(found.choices[-1].instances.values()) == 4


def test_all_alike_where_they_are_the_same_instances() -> None:
    model = join(measured())
    found = propose(model, RATES, 1e-6, InstanceLimit(each=3, total=9, alike=True))
    assert [c.instances["join"] for c in found.choices] == [1, 2, 3]
