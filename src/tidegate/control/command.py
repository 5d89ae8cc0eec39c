"""The commands that a running query takes over its control socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tidegate.driver.loop import Loop
from tidegate.driver.status import buckets_of as buckets_by_instance
from tidegate.driver.status import status_of
from tidegate.elastic import registry as policies
from tidegate.elastic.owners import buckets_of, owners_of, whole
from tidegate.elastic.request import MappingChange, Move, Rebalance, Request, Scale, Switch, text_of
from tidegate.errors import OptionError, near

BY = "ctl"
"""Who has asked, in the timeline."""

Arguments = Mapping[str, Any]

CHANGES: dict[str, Callable[[Arguments], MappingChange]] = {
    "scale": lambda given: Scale(whole(given.get("instances"), "scale")),
    "rebalance": lambda given: Rebalance(),
    "move": lambda given: Move(
        buckets_of(given.get("buckets")), whole(given.get("instance"), "move")
    ),
    "switch": lambda given: Switch(*owners_of(given.get("mapping"))),
}
"""What changes mappings, by the name of the command."""

STATUS = "status"
POLICY = "policy"


def answer(loop: Loop, question: Arguments) -> dict[str, Any]:
    """Do what a question asks of a query; what cannot be done is a UserError.

    Called by the thread of the socket while batches run in another.
    """
    command = text_of(question.get("command"), "ctl", "command")
    if command == STATUS:
        return {**status_of(loop), "buckets": buckets_by_instance(loop)}
    if command == POLICY:
        policy = text_of(question.get("policy"), POLICY, "policy")
        loop.manager.use(policies.of(policy, POLICY))
        return loop.manager.status()
    if command not in CHANGES:
        raise OptionError(
            "ctl", "must be a known command", command, near(command, [*CHANGES, STATUS, POLICY])
        )
    change, why = CHANGES[command](question), question.get("why", "")
    request = Request(change, question.get("subquery"), by=BY, why=why)
    made = loop.controls.ask(request)
    return {
        "request": str(request.change),
        "subqueries": {
            name: {
                "before": of.before.instances,
                "instances": of.mapping.instances,
                "buckets_moved": of.moved,
            }
            for name, of in made.items()
        },
    }
