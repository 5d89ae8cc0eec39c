"""Scaling policies for `start(policy=...)`: the built-in ones, and the types to write your own.

A policy decides when a running query changes its instances. It is an object with a `name` and a
method `decide` (see `Policy`), or the name of a built-in one.
"""

from tidegate.elastic.auto.policy import ByTarget
from tidegate.elastic.by_model import ByModel
from tidegate.elastic.fixed import Fixed
from tidegate.elastic.policy import Decision, Policy
from tidegate.elastic.registry import of
from tidegate.elastic.request import Move, Request, Scale, Switch
from tidegate.elastic.scripted import Scripted
from tidegate.elastic.threshold import Threshold
from tidegate.model.observation import InputLoad, InstanceLoad, Observation
from tidegate.model.operation import Operation
from tidegate.query.surface.signature import called_as
from tidegate.route.balance import balanced
from tidegate.route.mapping import Mapping

__all__ = [
    "ByModel",
    "ByTarget",
    "Decision",
    "Fixed",
    "InputLoad",
    "InstanceLoad",
    "Mapping",
    "Move",
    "Observation",
    "Operation",
    "Policy",
    "Request",
    "Scale",
    "Scripted",
    "Switch",
    "Threshold",
    "auto",
    "balanced",
    "fixed",
    "model",
    "of",
    "scripted",
    "threshold",
]

fixed = Fixed
"""Never asks for a change; instances change only when a user asks."""

threshold = called_as("tg.policy.threshold(maximum=4)", "policy threshold")(Threshold)
"""Keeps average utilisation between thresholds, and the load of instances even."""

model = called_as("tg.policy.model(maximum=4)", "policy model")(ByModel)
"""Keeps the arriving work between two shares of the instances' capacity, by rates alone."""

auto = called_as('tg.policy.auto(latency="2 seconds", error=0.1, cost=8)', "policy auto")(ByTarget)
"""Keeps latency below a target by the cheapest remedy: even loads, shedding, instances."""

scripted = Scripted
"""Asks for given changes after given batches, for tests."""
