"""Policies by name, and objects that are none."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tidegate as tg
from tidegate.elastic.by_model import ByModel
from tidegate.elastic.fixed import Fixed
from tidegate.elastic.registry import of
from tidegate.elastic.request import Request, Scale
from tidegate.elastic.scripted import Scripted
from tidegate.elastic.threshold import Threshold
from tidegate.errors import OptionError, TidegateError
from tidegate.testing import drive, switches


def test_by_name() -> None:
    assert of(None) == of("fixed") == Fixed() == tg.policy.fixed()
    assert of("threshold") == Threshold() == tg.policy.threshold()
    asked = of("threshold?maximum=4&target=0.6&provisioning=individual")
    assert asked == Threshold(maximum=4, target=0.6, provisioning="individual")
    assert tg.policy.of(asked) is asked
    assert of("model?maximum=4&latency=0.2") == ByModel(maximum=4, latency=0.2)
    assert of("model") == tg.policy.model()
    asked = of("auto?latency=500 ms&error=0.1&cost=8")
    assert asked == tg.policy.auto(latency="500 ms", error=0.1, cost=8)
    assert of("auto?latency=2") == of("auto?latency=2.0") != of("auto?latency=3")
    assert of("auto").goal.latency_s == tg.policy.auto().goal.latency_s == 2.0  # type: ignore[attr-defined]


class Nameless:
    def decide(self, observed: Any, memory: Any) -> tg.policy.Decision:
        return tg.policy.Decision()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("treshold", "must be a known word; got treshold. Did you mean threshold? There are:"),
        ("auto?latncy=2", "auto has no parameter of this name; got latncy. Did you mean latency?"),
        ("model?uper=1", "model has no parameter of this name; got uper. Did you mean upper?"),
        ("fixed?n=2", "fixed has no parameter of this name; got n. There are none."),
        ("threshold?uper=1", "threshold has no parameter of this name; got uper. Did you mean upp"),
        ("threshold?upper", "must look like threshold?parameter=value; got threshold?upper."),
        ("threshold?upper=x", "upper must be a number; got x."),
        (Threshold, "must be a policy, or the name of one; got the class Threshold. Write Thresho"),
        (
            tg.policy.model,
            "must be a policy, or the name of one; got the class ByModel. Write ByMo",
        ),
        ("threshold?batches=2&batches=3", "threshold takes each parameter once; got batches twice"),
        (3, "must be a policy, or the name of one; got 3. Write for example tg.policy.threshold("),
        (Nameless(), "needs a name, for the timeline of switches; got Nameless without one."),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_is_none(asked: object, said: str) -> None:
    with pytest.raises(TidegateError, match=re.escape(f"--policy: {said}")):
        of(asked, "--policy")


def test_arguments_that_a_policy_does_not_have_are_told() -> None:
    with pytest.raises(OptionError, match="policy threshold: has no argument of this name; got up"):
        tg.policy.threshold(uper=0.5)  # type: ignore[call-arg]
    with pytest.raises(OptionError, match=re.escape("Write for example tg.policy.model(maximum")):
        tg.policy.model(0.5)  # type: ignore[call-arg]


def test_mistakes_in_parameters_are_those_of_the_policy() -> None:
    with pytest.raises(OptionError, match="policy threshold: cooldown must not be negative"):
        of("threshold?cooldown=-1", "--policy")


def test_a_script() -> None:
    driven = drive(Scripted({1: [Request(Scale(3))], 3: [Request(Scale(2))]}), [[0.1] * 8] * 6)
    assert [one.instances for one in driven] == [1, 1, 3, 3, 2, 2]
    assert switches(driven) == 2


def test_fixed_asks_for_nothing() -> None:
    assert switches(drive(Fixed(), [[1.0] * 8] * 6)) == 0
