"""The commands that a running query accepts over its control socket and from the live page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tidegate.control.message import PAUSE, POLICY, RESUME, STATUS, STOP
from tidegate.driver.journal.picture import picture_of
from tidegate.driver.loop import Loop
from tidegate.elastic import registry as policies
from tidegate.elastic.owners import buckets_of, owners_of, whole
from tidegate.elastic.request import MappingChange, Move, Rebalance, Request, Scale, Switch, text_of
from tidegate.elastic.share import SHED, ShareRequest, share_of
from tidegate.errors import OptionError, UserError, near

BY = "ctl"
"""Who asked, as the timeline shows it."""
PAGE = "page"
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
"""Commands that change mappings, by name."""


def answer(loop: Loop, question: Arguments) -> dict[str, Any]:
    """Executes a command on a query; raises UserError if it cannot be done.

    Called by the thread of the socket or of a page, while batches run in another thread. Commands
    that change something are recorded in the journal, with who asked and the result.
    """
    command = text_of(question.get("command"), "ctl", "command")
    if command == STATUS:
        return picture_of(loop)
    try:
        done = _done(loop, command, question)
    except UserError as error:
        loop.books.requests.note(question, f"refused: {error}")
        raise
    loop.books.requests.note(question, "done")
    return done


def _done(loop: Loop, command: str, question: Arguments) -> dict[str, Any]:
    if command in CHANGES:
        return _changed(loop, CHANGES[command](question), question)
    if command not in ACTIONS:
        known = [*CHANGES, *ACTIONS, STATUS]
        raise OptionError("ctl", "must be a known command", command, near(command, known))
    loop.controls.refuse_ended(command)
    return ACTIONS[command](loop, question)


def _changed(loop: Loop, change: MappingChange, question: Arguments) -> dict[str, Any]:
    by = PAGE if question.get("by") == PAGE else BY
    request = Request(change, question.get("subquery"), by=by, why=question.get("why", ""))
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


def _use_policy(loop: Loop, question: Arguments) -> dict[str, Any]:
    policy = text_of(question.get("policy"), POLICY, "policy")
    loop.manager.use(policies.of(policy, POLICY))
    return loop.manager.status()


def _shed(loop: Loop, question: Arguments) -> dict[str, Any]:
    by = PAGE if question.get("by") == PAGE else BY
    asked = ShareRequest(share_of(question.get("share")), by, question.get("why", ""))
    return {"request": str(asked), "subqueries": loop.controls.shed(asked)}


def _pause(loop: Loop, question: Arguments) -> dict[str, Any]:
    loop.pause()
    return {"state": loop.state}


def _resume(loop: Loop, question: Arguments) -> dict[str, Any]:
    loop.resume()
    return {"state": loop.state}


def _stop(loop: Loop, question: Arguments) -> dict[str, Any]:
    loop.stop()
    return {"state": "stopping"}


ACTIONS: dict[str, Callable[[Loop, Arguments], dict[str, Any]]] = {
    POLICY: _use_policy,
    SHED: _shed,
    PAUSE: _pause,
    RESUME: _resume,
    STOP: _stop,
}
"""The other commands that change something, by name."""
