"""Checks events against the models that the OpenLineage project publishes in its Python client."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import attr
from openlineage.client import generated
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState

OWN = {"tidegate_checkpoint"}
"""Facets of our own, which the specification lets producers add."""


def _facets() -> dict[str, type]:
    """By the URL of its schema the class of each facet that is published."""
    found = {}
    for module in iter_modules(generated.__path__):
        for member in vars(import_module(f"{generated.__name__}.{module.name}")).values():
            if isinstance(member, type) and hasattr(member, "_get_schema"):
                found[member._get_schema()] = member
    return found


FACETS = _facets()


def check(event: Mapping[str, Any]) -> RunEvent:
    """The event as the client of the specification has it; raises for anything it does not know."""
    assert event["schemaURL"] == RunEvent._get_schema()
    run, job = event["run"], event["job"]
    made = RunEvent(
        eventType=RunState[event["eventType"]],
        eventTime=event["eventTime"],
        producer=event["producer"],
        run=Run(**{**run, "facets": _made(run["facets"])}),
        job=Job(**{**job, "facets": _made(job["facets"])}),
        inputs=[InputDataset(**{**d, "facets": _made(d["facets"])}) for d in event["inputs"]],
        outputs=[
            OutputDataset(
                **{
                    **d,
                    "facets": _made(d["facets"]),
                    "outputFacets": _made(d["outputFacets"]),
                }
            )
            for d in event["outputs"]
        ],
    )
    assert set(event) == {field.name for field in attr.fields(RunEvent)}
    return made


def _made(facets: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    made = {}
    for name, members in facets.items():
        assert members["_producer"].startswith("urn:tidegate:")
        if name in OWN:
            continue
        given = {k: v for k, v in members.items() if k not in ("_producer", "_schemaURL")}
        made[name] = FACETS[members["_schemaURL"]](**given)
    return made
