"""Any JSON that comes over the control socket has a clear answer, and the query goes on."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.driver.scene import COUNTS, loop_of, memory, plan_of, table
from tidegate.control.command import CHANGES, answer
from tidegate.control.message import POLICY, STATUS, receive
from tidegate.control.server import ControlServer
from tidegate.driver.loop import Loop
from tidegate.elastic.request import MOST_WHY, Request, Scale
from tidegate.errors import OptionError, TidegateError

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["0-7", "0-65535," * 100, "1,2", "[0,1]", "a" * 600, "\ud800", "a\nb"])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
arguments = ["instances", "instance", "buckets", "mapping", "subquery", "why", "policy"]
commands = st.sampled_from([*CHANGES, STATUS, POLICY]) | values
questions = st.dictionaries(st.sampled_from(arguments), values).flatmap(
    lambda given: st.builds(lambda command: {"command": command, **given}, commands)
)


class Asked:
    """A query of two instances and eight buckets, and what comes back over its socket."""

    def __init__(self, folder: Path) -> None:
        self.source = memory()
        self.loop: Loop = loop_of(plan_of(COUNTS), [self.source], folder)
        self.server = ControlServer(partial(answer, self.loop), 600.0)
        self.server.start()
        self.second = 0
        self.batch()

    def ask(self, question: bytes) -> dict[str, Any]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(600)
            connection.connect(self.server.address.socket)
            connection.sendall(question)
            connection.shutdown(socket.SHUT_WR)
            return receive(connection)

    def asked(self, **question: Any) -> str:
        """What a mistake is answered with."""
        found = self.ask(json.dumps(question).encode() + b"\n")
        return str(TidegateError.from_dict(found["error"]))

    def batch(self) -> None:
        self.second += 1
        self.source.append(table((self.second, "a", 1)))
        assert self.loop.step() is not None


@pytest.fixture
def query(tmp_path: Path) -> Iterator[Asked]:
    made = Asked(tmp_path)
    yield made
    made.server.close()
    made.loop.close()


some = settings(
    max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


@some
@given(question=questions | values)
def test_any_json_is_answered_and_the_query_goes_on(
    query: Asked, caplog: pytest.LogCaptureFixture, question: Any
) -> None:
    found = query.ask(json.dumps(question).encode() + b"\n")
    assert list(found) in (["done"], ["error"])
    if "error" in found:
        error = TidegateError.from_dict(found["error"])
        assert error.got is not None
        assert "Error:" not in str(error)
    query.batch()
    assert [r for r in caplog.records if r.levelno >= logging.ERROR] == []


@some
@given(question=st.binary(max_size=40))
def test_any_bytes_are_answered(query: Asked, question: bytes) -> None:
    assert "error" in query.ask(question) or b"status" in question


NUMBER = 10**4299

MISTAKES = {
    "ctl: command must be a text; got None.": {},
    "ctl: command must be a text; got ['scale'].": {"command": ["scale"]},
    "scale: must be a whole number; got None.": {"command": "scale"},
    "scale: must be a whole number; got one of more than 64 bits.": {
        "command": "scale",
        "instances": NUMBER,
    },
    "scale: subquery must be a text; got ['a'].": {
        "command": "scale",
        "instances": 1,
        "subquery": ["a"],
    },
    "scale: why must be a text; got {'a': 1}.": {
        "command": "scale",
        "instances": 1,
        "why": {"a": 1},
    },
    "rebalance: why must have at most 500 characters; got 501.": {
        "command": "rebalance",
        "why": "a" * 501,
    },
    r"rebalance: why must be one line of plain text; got 'a\nb'.": {
        "command": "rebalance",
        "why": "a\nb",
    },
    r"rebalance: why must be one line of plain text; got '\ud800'.": {
        "command": "rebalance",
        "why": "\ud800",
    },
    "policy: policy must be a text; got None.": {"command": "policy"},
    "scale: its fields must be known; got subquerry. Did you mean subquery? There are: instances, "
    "subquery, why.": {"command": "scale", "instances": 2, "subquerry": "a"},
    "pause: its fields must be known; got why. There are none.": {"command": "pause", "why": ""},
    "move: may name 65,536 buckets at most; got 131,072.": {
        "command": "move",
        "buckets": "0-65535,0-65535",
        "instance": 1,
    },
    "switch: may name 65,536 buckets at most; got 131,072.": {
        "command": "switch",
        "mapping": {"0": "0-65535", "00": "0-65535"},
    },
    "move: buckets must be ranges such as 10-12, below 65,536; got "
    + "9" * 450
    + " ... "
    + "9" * 45
    + ".": {"command": "move", "buckets": "9" * 5000, "instance": 1},
    "switch: instances must be numbers, from 0 on; got 65536.": {
        "command": "switch",
        "mapping": {"9" * 5000: "0"},
    },
}


@pytest.mark.parametrize("message", MISTAKES)
def test_what_a_wrong_field_is_answered_with(query: Asked, message: str) -> None:
    assert query.asked(**MISTAKES[message]) == message
    assert query.loop.controls.waiting() == {}


@pytest.mark.parametrize(
    "question",
    [
        b"[" * 200_000 + b"\n",
        b'{"command": "move", "buckets": ' + b"[" * 200_000 + b"]" * 200_000 + b"}\n",
        json.dumps({"command": "switch", "mapping": "[" * 100_000}).encode() + b"\n",
    ],
)
def test_what_is_nested_too_deeply_is_refused(
    query: Asked, caplog: pytest.LogCaptureFixture, question: bytes
) -> None:
    assert "error" in query.ask(question)
    assert [r for r in caplog.records if r.levelno >= logging.ERROR] == []


def test_a_reason_is_bounded_whoever_gives_it() -> None:
    assert Request(Scale(2), why="ä" * MOST_WHY).why == "ä" * MOST_WHY
    with pytest.raises(OptionError, match="scale: why must have at most 500 characters; got 501"):
        Request(Scale(2), why="ä" * (MOST_WHY + 1))
