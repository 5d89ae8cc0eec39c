"""Write docs/papers/: every figure and table of the papers beside ours, from the results.

    python benchmarks/paper_pages.py            write them
    python benchmarks/paper_pages.py --check    fail where a page is not what this program makes

What the papers say is in `benchmarks/papers/`; our numbers are read from `benchmarks/results/`, and
none is typed. `--check` leaves out which results are marked as stale: those marks are as old as the
pages, so that a change of the engine does not change them.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from string import ascii_lowercase
from typing import Any

import paper_index
import paper_list
from chart import Bars, Chart, Line
from measure import HERE
from paper_list import (
    DOCUMENTS,
    KINDS,
    MEASURED,
    NOT_DONE,
    Document,
    Figure,
    document,
    figures,
    headlines,
    programs,
)
from paper_value import report, results_of, told, values

PAGES = HERE.parent / "docs" / "papers"
STALE = " **(stale)**"
_NOTE = "<!-- written by benchmarks/paper_pages.py from benchmarks/papers/ and its results -->"


def pages() -> dict[str, str]:
    """Every file of docs/papers/, by name."""
    found = {"index.md": "\n".join(_index()) + "\n"}
    for key in DOCUMENTS:
        found[f"{key}.md"] = "\n".join(_page(document(key))) + "\n"
    for figure in figures().values():
        for name, chart in _charts(figure):
            found[name] = _drawn(figure, chart)
        if figure.both is not None:
            found[_beside(figure)] = _bars(figure).svg()
    return found


def wrong() -> list[str]:
    """Pages that are not what this program makes, apart from marks, and files that are none."""
    made = pages()
    there = {file.name: file.read_text(encoding="utf-8") for file in sorted(PAGES.glob("*"))}
    names = sorted(made.keys() | there.keys())
    return [n for n in names if _unmarked(made.get(n)) != _unmarked(there.get(n))]


def write() -> None:
    PAGES.mkdir(exist_ok=True)
    made = pages()
    for file in PAGES.glob("*"):
        if file.name not in made:
            file.unlink()
    for name, text in made.items():
        (PAGES / name).write_text(text, encoding="utf-8")
    print(f"{len(made)} files written to {PAGES}")


def _unmarked(text: str | None) -> str | None:
    return None if text is None else text.replace(STALE, "")


def _index() -> Iterator[str]:
    every = figures()
    yield from ("# The papers", "", _NOTE, "")
    yield (
        "Tidegate builds on five documents. These pages have every figure and table of their "
        "experiments, what was published, and what we have beside it."
    )
    yield from ("", "| document | figures and tables | measured | simulated | not done |")
    yield "|---|---|---|---|---|"
    for key in DOCUMENTS:
        one = document(key)
        kinds = Counter(figure.kind for figure in one.figures)
        counts = " | ".join(str(kinds[kind]) for kind in KINDS)
        yield f"| [{one.name}]({key}.md) | {len(one.figures)} | {counts} |"
    yield from ("", "- **measured**: the engine ran, or the part of it in question. It is our")
    yield "  set-up: each row says in a sentence how it differs from the paper's."
    yield "- **simulated**: computed by a model, a policy or a formula; no query ran."
    yield "- **not done**: with the reason."
    yield f"-{STALE}: modules that the result measures have changed since it was written. The"
    yield "  number is that of the older code. Marks are as old as these pages."
    yield from ("", "## In short", "", "| what | published | ours | why |", "|---|---|---|---|")
    for line in headlines():
        figure = every[line.of]
        page = line.of.removesuffix("-" + _number(figure))
        ours = told(line.ours, figure.result)
        link = f"[{line.name}]({page}.md#{_anchor(figure)})"
        why = told(line.why, figure.result)
        yield f"| {link} | {line.theirs} | {ours}{_mark(figure, line.ours)} | {why} |"
    yield from _missing()
    yield from _how_to_run()


def _missing() -> Iterator[str]:
    yield from ("", "## What is missing", "")
    for key in DOCUMENTS:
        one = document(key)
        for figure in one.figures:
            if figure.kind == NOT_DONE:
                yield f"- [{one.name}, {figure.name}]({key}.md#{_anchor(figure)}): {figure.because}"


def _how_to_run() -> Iterator[str]:
    two, many = (
        [p for p in programs().values() if (p.cores > 2) == wanted] for wanted in (False, True)
    )
    yield from ("", "## Run them yourself", "", "```sh")
    yield f"make papers                   # what two cores can do: {_long(two)}"
    yield f"make papers CORES=16          # what needs many cores: {_long(many)}"
    yield "make papers ONLY=stretch-5    # those of one figure"
    yield from ("```", "", "Stop it at any time; started again, it goes on with the next program.")
    yield "Results go to `benchmarks/results/`, and these pages are written anew at the end. The"
    yield "list of figures is in `benchmarks/papers/`, the programs are in `programs.toml` there."
    yield from (
        "",
        "`benchmarks/paper_runs.py --lanes 8` runs those of two cores on sixteen, eight",
    )
    yield "at once, and `--cores 16 --minutes 9` as many of the others as nine minutes are"
    yield "enough for; `--real FOLDER` those that read real streams too, which"
    yield "`benchmarks/public_streams.py` makes from public files. `concept_drift.py --file`"
    yield "takes a file of yours. `--quick` runs all on tiny input and keeps nothing."


def _long(of: list[Any]) -> str:
    minutes = sum(p.minutes for p in of)
    return f"{len(of)} programs, about {minutes:.0f} minutes"


def _page(one: Document) -> Iterator[str]:
    yield from (f"# {one.name}", "", _NOTE, "", f"*{one.title}*. {one.about}", "")
    yield f"Theirs: {one.machine} What the words in the last column mean is said on [the first"
    yield "page](index.md). A ratio is ours by theirs, where both are one number of one kind."
    yield from ("", "| figure | published | ours | ratio | |", "|---|---|---|---|---|")
    for figure in one.figures:
        ours = figure.told if figure.kind != NOT_DONE else "-"
        ratio = "-" if figure.ratio is None else f"{figure.ratio:,.3g}"
        link = f"[{figure.name}](#{_anchor(figure)})"
        kind = figure.kind + _mark(figure)
        yield f"| {link} | {figure.published} | {ours} | {ratio} | {kind} |"
    for figure in one.figures:
        yield from _section(figure)


def _section(figure: Figure) -> Iterator[str]:
    yield from ("", f"## {figure.name}: {figure.title}", "", f"{figure.shows} ({figure.place})", "")
    if figure.kind == NOT_DONE:
        yield f"Not done, because {figure.because}"
        return
    yield from (f"Ours is {figure.kind}. {figure.told_differs}", "")
    program = programs()[figure.program]
    yield f"- Command: `python {program.command}`"
    read = results_of(f"{figure.ours} {figure.differs}", figure.result) - {figure.result}
    for name in (figure.result, *sorted(read)):
        found = report(name)
        same = found["command"] == f"python {program.command}"
        of = "" if same and name == figure.result else f" of `{found['command']}`,"
        yield f"- Result: `benchmarks/results/{name}.json`,{of} {_machine(figure, found)}"
        yield f"  {_origin(name, found)}"
    yield f"- It measures {', '.join(f'`{path}`' for path in program.measures)}"
    pictures = [f"../{name}" for name in figure.pictures]
    pictures += [name for name, _ in _charts(figure)]
    pictures += [_beside(figure)] if figure.both is not None else []
    for picture in pictures:
        yield from ("", f"![{figure.name}: {figure.title}]({picture})")


def _origin(name: str, found: Any) -> str:
    """When, on what and with what it was measured; older results do not say all of that."""
    commit = found.get("commit") or paper_index.written().get(name, {}).get("commit")
    date, cpu = (found.get(what, "unknown") for what in ("date", "cpu"))
    return f"(date: {date}; processor: {cpu}; commit: {commit or 'unknown'})"


def _machine(figure: Figure, found: Any) -> str:
    """The cores, and how busy they were, as far as the result says so and it matters."""
    load = found.get("load")
    load = load if isinstance(load, list) else found.get("load_before")
    machine = found.get("machine_cores", found["cores"])
    cores = f"{found['cores']} of {machine}" if machine > found["cores"] else found["cores"]
    if load is None or figure.kind != MEASURED:
        return f"{cores} cores{_mark(figure)}"
    busy = ": the machine was busy" if load[0] > 1.5 * machine else ""
    return f"{cores} cores, load {load[0]:.1f}{busy}{_mark(figure)}"


def _mark(figure: Figure, sentence: str = "") -> str:
    """Says that a result which a figure reads is stale."""
    read = results_of(sentence or figure.ours, figure.result)
    return STALE if any(map(paper_index.is_stale, sorted(read))) else ""


def _number(figure: Figure) -> str:
    return figure.id.rpartition("-")[2]


def _anchor(figure: Figure) -> str:
    """As mkdocs makes it of the heading of a section."""
    from markdown.extensions.toc import slugify

    return slugify(f"{figure.name}: {figure.title}", "-")


def _charts(figure: Figure) -> Iterator[tuple[str, paper_list.Chart]]:
    """Its pictures with their files: several are the parts (a), (b), ... of a figure."""
    several = len(figure.charts) > 1
    for letter, chart in zip(ascii_lowercase, figure.charts, strict=False):
        yield f"{figure.id}{f'-{letter}' if several else ''}.svg", chart


def _beside(figure: Figure) -> str:
    """The picture of ours beside theirs."""
    return f"{figure.id}-beside.svg"


def _bars(figure: Figure) -> Bars:
    """What is printed in the text, and ours."""
    compare, (theirs, ours) = figure.compare, figure.both or (0.0, 0.0)
    assert compare is not None
    bars = [("published", theirs / compare.per), ("ours", ours / compare.per)]
    return Bars(f"{figure.name}: {figure.title}", compare.unit, bars)


def _drawn(figure: Figure, chart: paper_list.Chart) -> str:
    """A picture of a figure, from its result; seconds without a value are left out."""
    lines = []
    for of in chart.lines:
        pairs = zip(values(of["x"], figure.result), values(of["y"], figure.result), strict=True)
        there = [(x, y / chart.per) for x, y in pairs if y is not None]
        lines.append(Line(of["name"], [y for _, y in there], [x for x, _ in there]))
    return Chart(chart.title, chart.unit, lines, time=chart.x_title).svg()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    if not parser.parse_args().check:
        write()
        return
    if found := wrong():
        raise SystemExit(f"run `python benchmarks/paper_pages.py`: {', '.join(found)}")


if __name__ == "__main__":
    main()
