"""The commands that a running query takes over its control socket."""

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
PAGE = "page"
"""The names of the askers in the timeline: `tidegate ctl`, and the page."""

Arguments = Mapping[str, Any]

CHANGES: dict[str, Callable[[Arguments], MappingChange]] = {
    "scale": lambda given: Scale(whole(given.get("instances"), "scale")),
    "rebalance": lambda given: Rebalance(),
    "move": lambda given: Move(
        buckets_of(given.get("buckets")), whole(given.get("instance"), "move")
    ),
    "switch": lambda given: Switch(*owners_of(given.get("mapping"))),
}
"""The commands that change mappings, by name."""

_ANY = ("command", "by", "from")
_OF = ("subquery", "why")
FIELDS: Mapping[str, tuple[str, ...]] = {
    "scale": ("instances", *_OF),
    "rebalance": _OF,
    "move": ("buckets", "instance", *_OF),
    "switch": ("mapping", *_OF),
    POLICY: ("policy",),
    SHED: ("share", "why"),
    PAUSE: (),
    RESUME: (),
    STOP: (),
    STATUS: (),
}
"""What a question may say beside its command, and who asks it."""


def answer(loop: Loop, question: Arguments) -> dict[str, Any]:
    """Run a command on a query and return the answer; a UserError if it is refused.

    Called by the thread of the socket or of a page, while batches run in another thread. The
    journal gets each command that changes something, with who asked and the result.
    """
    command = text_of(question.get("command"), "ctl", "command")
    if command in FIELDS:
        _refuse_unknown(command, question)
    if command == STATUS:
        return picture_of(loop)
    try:
        done = _done(loop, command, question)
    except UserError as error:
        loop.books.requests.note(question, f"refused: {error}")
        raise
    loop.books.requests.note(question, "done")
    return done


def _refuse_unknown(command: str, question: Arguments) -> None:
    known = FIELDS[command]
    for name in question:
        if name not in (*known, *_ANY):
            got = name if len(name) <= 60 else f"{name[:60]} ..."
            raise OptionError(command, "its fields must be known", got, near(got, known))


def _done(loop: Loop, command: str, question: Arguments) -> dict[str, Any]:
    if command in CHANGES:
        return _changed(loop, CHANGES[command](question), question)
    if command not in ACTIONS:
        raise OptionError("ctl", "must be a known command", command, near(command, FIELDS))
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
