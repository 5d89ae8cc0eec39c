"""Builds the OpenLineage events of a run as JSON values."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from tidegate.driver.lineage.dataset import Dataset
from tidegate.json_text import json_text
from tidegate.remote.scheme import shown
from tidegate.schema import type_name
from tidegate.state.manifest import Manifest
from tidegate.version import __version__

START, RUNNING, COMPLETE, ABORT, FAIL = "START", "RUNNING", "COMPLETE", "ABORT", "FAIL"

PRODUCER = f"urn:tidegate:{__version__}"
_SPEC = "https://openlineage.io/spec"
_EVENT = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_VERSIONS = {
    "SchemaDatasetFacet": "1-2-0",
    "OutputStatisticsOutputDatasetFacet": "1-0-2",
    "SQLJobFacet": "1-1-0",
    "JobTypeJobFacet": "2-0-4",
    "ProcessingEngineRunFacet": "1-1-1",
    "ErrorMessageRunFacet": "1-0-1",
    "ParentRunFacet": "1-2-0",
}
"""The facets used here, with their versions in the specification."""

_CHECKPOINT = "urn:tidegate:lineage:checkpoint:1"
"""The schema id of our own run facet `tidegate_checkpoint`; docs/lineage.md describes it."""

NAMESPACE = "OPENLINEAGE_NAMESPACE"
"""The namespace of the job in lineage events; `default` if it is not set."""

PARENT = "OPENLINEAGE_PARENT_ID"
"""The run that started this one, as namespace/job/run; schedulers set it."""

_RUNS = uuid.UUID("7d0f1c52-3c2f-5d0e-9a4a-6f0a4b6f7e11")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"]+")


@dataclass(frozen=True)
class JobName:
    """The job of a run. `parent` is the run that started it: (namespace, job, run)."""

    namespace: str
    name: str
    parent: tuple[str, str, str] | None = None

    @staticmethod
    def of_environment(name: str) -> JobName:
        """The job, in the namespace and with the parent that the environment names."""
        namespace, job, run = _three(os.environ.get(PARENT, ""))
        given = os.environ.get(NAMESPACE) or "default"
        return JobName(given, name, (namespace, job, run) if _is_uuid(run) else None)


@dataclass(frozen=True)
class DatasetUse:
    """A dataset that a run reads or writes, with its columns."""

    dataset: Dataset
    schema: pa.Schema


@dataclass
class Written:
    """What a run has written to one output so far; `bytes` is None if the sink reports none."""

    rows: int = 0
    bytes: int | None = None

    def add(self, rows: int, receipts: Sequence[Mapping[str, Any]]) -> None:
        """Add a batch. The first receipts belong to its rows, later ones to side outputs."""
        self.rows += rows
        for receipt in receipts:
            if rows <= 0:
                break
            rows -= int(receipt["rows"])
            if receipt["bytes"] is not None:
                self.bytes = (self.bytes or 0) + int(receipt["bytes"])


@dataclass(frozen=True)
class LineageRun:
    """One run of a query: the part that all its events share."""

    id: str
    job: JobName
    inputs: Sequence[DatasetUse]
    outputs: Mapping[str, DatasetUse]
    sql: str | None = None
    streaming: bool = False
    checkpoint: Mapping[str, Any] = field(default_factory=dict)

    def event(
        self,
        state: str,
        at: datetime,
        written: Mapping[str, Written],
        failure: BaseException | None = None,
    ) -> dict[str, Any]:
        """The event for a change of state; `written` counts from the start of this run."""
        return {
            "eventType": state,
            "eventTime": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "producer": PRODUCER,
            "schemaURL": _EVENT,
            "run": {"runId": self.id, "facets": self._run_facets(failure)},
            "job": {
                "namespace": self.job.namespace,
                "name": self.job.name,
                "facets": self._job_facets(),
            },
            "inputs": [_dataset(use) for use in self.inputs],
            "outputs": [
                {**_dataset(use), "outputFacets": _statistics(written.get(name, Written()))}
                for name, use in self.outputs.items()
            ],
        }

    def _run_facets(self, failure: BaseException | None) -> dict[str, Any]:
        facets = {
            "processing_engine": _facet(
                "ProcessingEngineRunFacet", name="tidegate", version=__version__
            ),
            "tidegate_checkpoint": _signed(_CHECKPOINT, self.checkpoint),
        }
        if self.job.parent is not None:
            namespace, name, run = self.job.parent
            job = {"namespace": namespace, "name": name}
            facets["parent"] = _facet("ParentRunFacet", run={"runId": run}, job=job)
        if failure is not None:
            message = without_credentials(str(failure)) or type(failure).__name__
            facets["errorMessage"] = _facet(
                "ErrorMessageRunFacet", message=message, programmingLanguage="python"
            )
        return facets

    def _job_facets(self) -> dict[str, Any]:
        processing = "STREAMING" if self.streaming else "BATCH"
        facets = {
            "jobType": _facet(
                "JobTypeJobFacet",
                processingType=processing,
                integration="TIDEGATE",
                jobType="QUERY",
            )
        }
        if self.sql is not None:
            query = without_credentials(self.sql)
            facets["sql"] = _facet("SQLJobFacet", query=query, dialect="tidegate")
        return facets


def run_id(location: str, manifest: Manifest) -> str:
    """The id of the run that owns a checkpoint, computed from its manifest.

    Every run has another id. A run reads the id of its predecessor from the manifest it resumes
    from.
    """
    holder = json_text(dict(sorted(manifest.holder.items())))
    return str(uuid.uuid5(_RUNS, f"{location} {manifest.owner} {holder}"))


def without_credentials(text: str) -> str:
    """The text with credentials removed from the URIs in it."""
    return _URI.sub(lambda found: shown(found[0]), text)


def _dataset(use: DatasetUse) -> dict[str, Any]:
    fields = [_field(column) for column in use.schema]
    return {
        "namespace": use.dataset.namespace,
        "name": use.dataset.name,
        "facets": {"schema": _facet("SchemaDatasetFacet", fields=fields)},
    }


def _field(column: pa.Field) -> dict[str, Any]:
    found = {"name": column.name, "type": type_name(column.type)}
    if not pa.types.is_struct(column.type):
        return found
    return {**found, "type": "struct", "fields": [_field(inner) for inner in column.type]}


def _statistics(written: Written) -> dict[str, Any]:
    size = {} if written.bytes is None else {"size": written.bytes}
    facet = _facet("OutputStatisticsOutputDatasetFacet", rowCount=written.rows, **size)
    return {"outputStatistics": facet}


def _facet(kind: str, **members: Any) -> dict[str, Any]:
    return _signed(f"{_SPEC}/facets/{_VERSIONS[kind]}/{kind}.json#/$defs/{kind}", members)


def _signed(schema: str, members: Mapping[str, Any]) -> dict[str, Any]:
    return {"_producer": PRODUCER, "_schemaURL": schema, **members}


def _three(parent: str) -> tuple[str, str, str]:
    """Split `namespace/job/run`; the namespace may contain slashes."""
    before, _, run = parent.rpartition("/")
    namespace, _, job = before.rpartition("/")
    return namespace, job, run


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True
