"""The figures and tables of the papers, and the programs that measure ours, as `papers/` has them.

`papers/programs.toml` lists the programs with their command lines, `papers/headline.toml` the
figures of the first page, and each other file one document with all figures and tables of its
experiments.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from measure import HERE
from paper_value import is_there, results_of, told, value, values

LISTS = HERE / "papers"
DOCUMENTS = ("scalejoin", "stretch", "streamcloud", "join-model", "dissertation")
MEASURED, SIMULATED, NOT_DONE = "measured", "simulated", "not done"
KINDS = (MEASURED, SIMULATED, NOT_DONE)


@dataclass(frozen=True)
class Program:
    """A command that writes results, how long it takes, and what of the package it measures."""

    name: str
    command: str
    results: tuple[str, ...]
    minutes: float
    measures: tuple[str, ...]
    quick: str
    """What makes its input tiny."""
    quick_cpu_s: float
    """About how long the processor is busy with that: CI runs what is short."""
    cores: int = 2
    beside: int = 1
    """How many of its cases can run at once, where it has the option `--beside`."""

    @property
    def arguments(self) -> list[str]:
        return self.command.split()

    def on(self, folder: str | None) -> Program | None:
        """With the folder of real streams in place; None where one is needed and there is none."""
        if "FOLDER" not in self.command:
            return self
        return replace(self, command=self.command.replace("FOLDER", folder)) if folder else None

    def of_lanes(self, lanes: int) -> list[str]:
        """The same with as many cases at once as there are pairs of cores for."""
        many = min(lanes, self.beside)
        return [*self.arguments, *(["--beside", str(many)] if many > 1 else [])]


@dataclass(frozen=True)
class Compare:
    """One number of the paper beside one of ours, in the same unit; a picture shows both."""

    published: float
    ours: str
    unit: str
    per: float = 1.0
    """How much of what results have the unit is."""


@dataclass(frozen=True)
class Chart:
    """A picture that is made from a result: the names of lines, and the paths of x and y."""

    title: str
    unit: str
    x_title: str
    lines: tuple[Mapping[str, str], ...]
    per: float = 1.0


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper: what it shows, and what we have beside it."""

    id: str
    name: str
    title: str
    shows: str
    published: str
    place: str
    kind: str
    ours: str = ""
    program: str = ""
    result: str = ""
    differs: str = ""
    because: str = ""
    needs: str = ""
    """A path that results of older runs may lack: then there is nothing to show yet."""
    compare: Compare | None = None
    charts: tuple[Chart, ...] = ()
    pictures: tuple[str, ...] = field(default=())

    @property
    def told(self) -> str:
        """Our sentence, with its numbers from the result."""
        return told(self.ours, self.result)

    @property
    def told_differs(self) -> str:
        """How it differs from theirs, likewise."""
        found = told(self.differs, self.result)
        return found[:1].upper() + found[1:]

    @property
    def ratio(self) -> float | None:
        """Ours by theirs, where both are one number of one kind and ours was seen."""
        both = self.both
        return None if both is None else both[1] / both[0]

    @property
    def both(self) -> tuple[float, float] | None:
        """Theirs and ours."""
        if self.compare is None:
            return None
        ours = value(self.compare.ours, self.result)
        return None if ours is None else (self.compare.published, float(ours))


@dataclass(frozen=True)
class Document:
    """A paper, where it ran, and its figures in its order."""

    key: str
    name: str
    title: str
    machine: str
    about: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Headline:
    """A line of the first page: a figure, and a sentence of why."""

    of: str
    name: str
    theirs: str
    ours: str
    why: str


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((LISTS / f"{name}.toml").read_text(encoding="utf-8"))


@cache
def programs() -> dict[str, Program]:
    """By name, in the order in which they run."""
    found = {}
    for name, of in _read("programs").items():
        lists = {key: tuple(of.pop(key)) for key in ("results", "measures")}
        found[name] = Program(name, **of, **lists)
    return found


@cache
def document(key: str) -> Document:
    read = _read(key)
    figures = tuple(_figure(key, of) for of in read.pop("figure"))
    return Document(key, figures=figures, **read)


def _figure(key: str, of: dict[str, Any]) -> Figure:
    if "compare" in of:
        of["compare"] = Compare(**of["compare"])
    charts = (Chart(**{**one, "lines": tuple(one["lines"])}) for one in of.get("charts", ()))
    of["charts"] = tuple(charts)
    of["id"] = f"{key}-{of['id']}"
    of["pictures"] = tuple(of.get("pictures", ()))
    program = programs()[of["program"]] if "program" in of else None
    of.setdefault("result", program.results[0] if program else "")
    if program and not _is_run(of):
        of = {name: of[name] for name in ("id", "name", "title", "shows", "published", "place")}
        because = f"nobody has run `python {program.command}` yet and kept its result."
        return Figure(**of, kind=NOT_DONE, because=because)
    return Figure(**of)


def _is_run(of: Mapping[str, Any]) -> bool:
    """Whether all results that a row reads are there, with what it needs."""
    if not all(map(is_there, results_of(f"{of['ours']} {of['differs']}", of["result"]))):
        return False
    try:
        return "needs" not in of or bool(values(of["needs"], of["result"]))
    except KeyError:
        return False


def figures() -> dict[str, Figure]:
    """Those of all documents, by id."""
    return {figure.id: figure for key in DOCUMENTS for figure in document(key).figures}


def programs_by_figure() -> dict[str, set[str]]:
    """The programs of each figure that has some, by id, also where no result is kept yet.

    Its own, and those of other results that its sentences, its ratio and its pictures read.
    """
    found = dict[str, set[str]]()
    by_result = {name: of.name for of in programs().values() for name in of.results}
    for key in DOCUMENTS:
        for of in _read(key)["figure"]:
            if "program" in of:
                sentences, paths, result = _read_by(of)
                read = results_of(sentences, result)
                read |= {name for path in paths for name in results_of(f"{{{path}}}", result)}
                found[f"{key}-{of['id']}"] = {of["program"]} | {by_result[name] for name in read}
    return found


def rows_of(program: str) -> Iterator[tuple[str, list[str], str]]:
    """What the figures of a program say, the paths that they read beside that, and the result."""
    for key in DOCUMENTS:
        for of in _read(key)["figure"]:
            if of.get("program") == program:
                yield _read_by(of)


def _read_by(of: Mapping[str, Any]) -> tuple[str, list[str], str]:
    """The sentences of a row, the paths of its ratio and its pictures, and its result."""
    drawn = [line for chart in of.get("charts", ()) for line in chart["lines"]]
    paths = [line[axis] for line in drawn for axis in "xy"]
    paths += [of["compare"]["ours"]] if "compare" in of else []
    result = of.get("result", programs()[of["program"]].results[0])
    return f"{of['ours']} {of['differs']}", paths, result


def headlines() -> tuple[Headline, ...]:
    return tuple(Headline(**of) for of in _read("headline")["line"])
