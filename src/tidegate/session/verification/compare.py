"""Runs two queries over the same input and says in which rows their outputs differ."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.errors import OptionError
from tidegate.plan.physical import Plan, Target
from tidegate.query.name import EVENT_TIME, WINDOW
from tidegate.schema import type_name
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.verification.row_difference import DifferenceLog, OutputReader, compare_rows
from tidegate.sink.folder.files import FileSink

_READ_ROWS = 65_536


class _ScratchSink(FileSink):
    """Files that the driver writes: executors on other hosts do not have its scratch folder."""

    parallel = False


@dataclass(frozen=True)
class ComparedOutput:
    """The comparison of one output of both queries.

    `retyped` has the old and the new type of columns. Only columns of the same name and type are
    compared; `keys` are the columns that identify a row of an instant.
    """

    name: str | None
    rows: tuple[int, int]
    removed: dict[str, str]
    added: dict[str, str]
    retyped: dict[str, tuple[str, str]]
    keys: tuple[str, ...]
    log: DifferenceLog

    @property
    def equal(self) -> bool:
        schema = self.removed or self.added or self.retyped
        return not schema and not any(self.log.counts.values())

    def as_dict(self) -> dict[str, Any]:
        retyped = {name: {"old": a, "new": b} for name, (a, b) in self.retyped.items()}
        return {
            "name": self.name,
            "equal": self.equal,
            "rows": {"old": self.rows[0], "new": self.rows[1]},
            "columns": {"removed": self.removed, "added": self.added, "retyped": retyped},
            "keys": list(self.keys),
            "counts": self.log.counts,
            "changed_columns": self.log.columns,
            "differences": [d.as_dict() for d in self.log.listed],
        }


@dataclass(frozen=True)
class ComparedQueries:
    """The outputs of both queries, the names of the others, and streams with other sources."""

    outputs: tuple[ComparedOutput, ...]
    removed: tuple[str, ...]
    added: tuple[str, ...]
    inputs: dict[str, tuple[list[str], list[str]]]

    @property
    def equal(self) -> bool:
        return not self.removed and not self.added and all(o.equal for o in self.outputs)

    def as_dict(self) -> dict[str, Any]:
        return {
            "equal": self.equal,
            "inputs": {name: {"old": a, "new": b} for name, (a, b) in self.inputs.items()},
            "outputs_removed": list(self.removed),
            "outputs_added": list(self.added),
            "outputs": [output.as_dict() for output in self.outputs],
        }


def compare_queries(
    old: Plan,
    new: Plan,
    place: Place,
    options: RunOptions,
    *,
    most: int,
    run: Callable[[Loop], object],
) -> ComparedQueries:
    """Run both queries to their ends, one after another, and compare their outputs by name.

    Two queries with one output each are compared whatever the names are. `run` runs a loop to its
    end. Outputs are kept in a temporary folder, which must have room for both; only a batch of rows
    and the rows of one instant are held in memory.
    """
    pairs = output_pairs(old, new)
    with tempfile.TemporaryDirectory(prefix="tidegate-compare-") as scratch:
        folders = Path(scratch, "old"), Path(scratch, "new")
        for plan, folder in zip((old, new), folders, strict=True):
            sinks = {
                t.name: _ScratchSink(_place(folder, t), sides=folder / "sides")
                for t in plan.targets
            }
            run(prepare(plan, place, sinks, options))
        outputs = tuple(
            compare_outputs(
                ComparedSide(old, a, _read(_place(folders[0], a))),
                ComparedSide(new, b, _read(_place(folders[1], b))),
                most,
            )
            for a, b in pairs
        )
    of_old, of_new = {str(a.name) for a, _ in pairs}, {str(b.name) for _, b in pairs}
    return ComparedQueries(
        outputs,
        tuple(str(t.name) for t in old.targets if str(t.name) not in of_old),
        tuple(str(t.name) for t in new.targets if str(t.name) not in of_new),
        _other_sources(old, new),
    )


def output_pairs(old: Plan, new: Plan) -> list[tuple[Target, Target]]:
    """The outputs that are compared: by their names, or the only one of each."""
    if len(old.targets) == len(new.targets) == 1:
        return [(old.targets[0], new.targets[0])]
    named = {target.name: target for target in new.targets}
    pairs = [(target, named[target.name]) for target in old.targets if target.name in named]
    if not pairs:
        names = [", ".join(str(t.name) for t in plan.targets) for plan in (old, new)]
        raise OptionError(
            "compare",
            "needs an output that both queries have",
            f"{names[0]} in the old one and {names[1]} in the new one",
            "Give an output of each the same name.",
        )
    return pairs


def _other_sources(old: Plan, new: Plan) -> dict[str, tuple[list[str], list[str]]]:
    """Streams that both read, from sources that are not the same."""
    uris = {stream.name: list(stream.uris) for stream in new.streams}
    return {
        stream.name: (list(stream.uris), uris[stream.name])
        for stream in old.streams
        if uris.get(stream.name, list(stream.uris)) != list(stream.uris)
    }


def _place(folder: Path, target: Target) -> Path:
    return folder / "rows" / (target.name or "_")


@dataclass(frozen=True)
class ComparedSide:
    """One output of one query, with the rows that are compared."""

    plan: Plan
    target: Target
    rows: Iterator[pa.RecordBatch]

    @property
    def schema(self) -> pa.Schema:
        return self.plan.port(self.target.edge).schema

    def reader(self, names: Sequence[str]) -> OutputReader:
        """Hands out its rows with some of their columns, instant by instant."""
        port = self.plan.port(self.target.edge)
        # A time that only orders rows is not among their columns; then the one that they show.
        shown = [name for name in (port.time, WINDOW[1], EVENT_TIME) if name in port.schema.names]
        return OutputReader(self.rows, shown[0], names)


def compare_outputs(old: ComparedSide, new: ComparedSide, most: int) -> ComparedOutput:
    """The rows of two outputs, of which at most `most` differences are listed."""
    types, others = ({f.name: f.type for f in side.schema} for side in (old, new))
    common = [name for name in types if types[name] == others.get(name)]
    known = new.target.key.names
    keys = tuple(n for n in old.target.key.names if n in common and n in known)
    log = DifferenceLog(most)
    rows = [side.reader(common) for side in (old, new)]
    compare_rows(rows[0], rows[1], keys, log)
    return ComparedOutput(
        old.target.name,
        (rows[0].taken, rows[1].taken),
        {name: type_name(type_) for name, type_ in types.items() if name not in others},
        {name: type_name(type_) for name, type_ in others.items() if name not in types},
        {
            name: (type_name(type_), type_name(others[name]))
            for name, type_ in types.items()
            if name in others and name not in common
        },
        keys,
        log,
    )


def _read(folder: Path) -> Iterator[pa.RecordBatch]:
    """The rows of an output in their order, a few at a time."""
    for path in sorted(folder.glob("batch=*/*.parquet")):
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(_READ_ROWS)
