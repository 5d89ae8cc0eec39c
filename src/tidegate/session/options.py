"""Checks the keyword arguments of a run and makes its `RunOptions`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from operator import index
from os import PathLike, fspath
from typing import Any

from tidegate.calendar.duration import duration_us
from tidegate.calendar.microsecond import read_us, time_us
from tidegate.driver.options import RunOptions, read_as
from tidegate.elastic import registry as policies
from tidegate.elastic.auto.policy import ByTarget
from tidegate.elastic.owners import owners_of
from tidegate.elastic.policy import Policy
from tidegate.elastic.request import Switch
from tidegate.errors import OptionError, QueryError
from tidegate.memory import Allowance, bytes_of
from tidegate.query.output import Output
from tidegate.state.signature import SigningKey


def given_us(time: str | datetime | int, where: str) -> int:
    """An event time of a program's, in microseconds."""
    try:
        return read_us(time) if isinstance(time, str) else time_us(time)
    except (TypeError, ValueError):
        raise OptionError(
            where,
            "needs a time, or microseconds since 1970",
            repr(time),
            "Write for example 2024-01-31T12:00:00Z.",
        ) from None


def run_options(
    instances: int | Mapping[str, int] | None,
    switches: Mapping[int | str, int | Mapping[int, int]] | None,
    policy: Any,
    memory_limit: str | int | None = None,
    trigger: str | timedelta | float | None = None,
    mapping: object = None,
    **more: Any,
) -> RunOptions:
    """The options of a run; instances and switches are for all subqueries, or by their names."""
    general, own = _switches(switches or {})
    with read_as("mapping"):
        first = None if mapping is None else Switch(*owners_of(mapping))
    return RunOptions(
        instances=None if isinstance(instances, Mapping) else instances,
        switches=general,
        subquery_instances=instances if isinstance(instances, Mapping) else {},
        subquery_switches=own,
        trigger_s=None if trigger is None else seconds_of(trigger, "trigger"),
        memory=memory_of(memory_limit),
        policy=policies.of(policy),
        mapping=first,
        **more,
    )


def policy_of(asked: Any, outputs: Sequence[Output], where: str = "policy") -> Policy:
    """The policy of a run: that of WITH LATENCY if the query has it, else the one asked for.

    `auto` without parameters agrees with WITH LATENCY. Any other pair is an OptionError.
    """
    aims = {str(o.aim.summary): o.aim for o in outputs if o.aim is not None}
    if not aims:
        return policies.of(asked, where)
    if len(aims) > 1:
        raise OptionError(
            "WITH LATENCY",
            "a run has one target, for all of its outputs",
            " and ".join(aims),
            "Write the same after each of them, or after one alone.",
        )
    if asked is not None and policies.of(asked, where) != ByTarget():
        raise OptionError(
            where,
            "the query has its own, WITH LATENCY",
            asked if isinstance(asked, str) else type(asked).__name__,
            "Leave one of them out.",
        )
    (aim,) = aims.values()
    return ByTarget(latency=aim.latency_us / 1e6, error=aim.error, cost=aim.cost)


def memory_of(limit: str | int | None) -> Allowance:
    """The memory that each process may hold, from the user's limit."""
    where = "memory_limit"
    return Allowance.of(None if limit is None else bytes_of(limit, where), where)


def checkpoint_options(
    checkpoint: object,
    keep: str | timedelta | float | None,
    sign: str | PathLike[str] | None,
    dashes: str = "",
) -> dict[str, Any]:
    """What is asked of a checkpoint: how long it keeps earlier states, and who signs its batches.

    `dashes` are those that the options begin with on a command line.
    """
    for name, asked in (("keep", keep), ("sign", sign)):
        if asked is not None and checkpoint is None:
            remedy = "Say where it is to be, with --checkpoint DIR or checkpoint=."
            raise OptionError(dashes + name, "needs a checkpoint", "none", remedy)
    kept_us = None if keep is None else round(seconds_of(keep, f"{dashes}keep") * 1e6)
    if kept_us is not None and kept_us <= 0:
        raise OptionError(f"{dashes}keep", "must be more than nothing", str(keep))
    key = None if sign is None else SigningKey.of_file(fspath(sign), f"{dashes}sign")
    return {"keep_us": kept_us, "sign": key}


def seconds_of(trigger: str | timedelta | float, where: str) -> float:
    """The value of an option that is a length of time, in seconds."""
    try:
        return duration_us(trigger, where) / 1e6
    except QueryError as error:
        raise OptionError(error.where, error.requirement, error.got, error.remedy) from None


def _switches(
    asked: Mapping[int | str, int | Mapping[int, int]],
) -> tuple[dict[int, int], dict[str, Mapping[int, int]]]:
    """The switches for all subqueries, and those for single ones by name."""
    general: dict[int, int] = {}
    own: dict[str, Mapping[int, int]] = {}
    for key, value in asked.items():
        if isinstance(key, str) and isinstance(value, Mapping):
            own[key] = {index(b): index(n) for b, n in value.items()}
        elif isinstance(key, str) or isinstance(value, Mapping):
            raise OptionError(
                "switches",
                "must be {batch: instances}, or {subquery: {batch: instances}}",
                f"{{{key!r}: {value!r}}}",
            )
        else:
            general[index(key)] = index(value)
    return general, own
