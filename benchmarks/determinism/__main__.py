"""Run the same queries on several engines, and say who changes the answer.

    cd benchmarks && ../.venv/bin/python -m determinism --flink /path/to/venv/bin/python

An engine other than Tidegate and Spark is run by the Python of a virtual environment that has it.
Each query runs once as the reference, and again with one thing changed at a time; each answer is
compared with the reference of the same engine. Engines and queries that are not named keep the
results that they have in results/determinism.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measure import HERE, RESULTS, write_report

from determinism import judge, streams
from determinism.variation import ENGINES, QUERIES, RUNS, Engine, Variation

_LIMIT_S = 1_500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, engine in ENGINES.items():
        default = sys.executable if engine.here else None
        parser.add_argument(f"--{name}", metavar="PYTHON", default=default)
    parser.add_argument("--only", nargs="*", default=list(ENGINES), choices=list(ENGINES))
    parser.add_argument("--queries", nargs="*", default=QUERIES, choices=QUERIES)
    parser.add_argument("--runs", nargs="*", default=RUNS, choices=RUNS)
    parser.add_argument(
        "--scratch", type=Path, help="keeps answers: a run that was broken off goes on from them"
    )
    asked = parser.parse_args()
    ran = {}
    with tempfile.TemporaryDirectory(prefix="tidegate-determinism-") as own:
        scratch = asked.scratch or Path(own)
        data = scratch / "data"
        if not data.exists():
            streams.write(data)
        for name in asked.only:
            python = getattr(asked, name)
            if python is None:
                continue
            engine = ENGINES[name].limited(asked.queries, asked.runs)
            ran[name] = _ran(name, engine, python, scratch, data)
            for query, of in ran[name]["queries"].items():
                print(f"{name:10} {query:12} {of['rows']} rows")
                for variation, outcome in of["variations"].items():
                    print(f"{name:10} {query:12} {variation:24} {judge.said(outcome)}", flush=True)
    known = _known()
    found = known | {name: _together(known.get(name), new) for name, new in ran.items()}
    write_report(
        "determinism",
        {
            "command": "python -m determinism",  # it may have taken several
            "machine": platform.platform(),
            "input": {"seed": streams.SEED, "seconds": streams.SECONDS, "keys": streams.KEYS},
            "engines": {name: found[name] for name in ENGINES if name in found},
        },
    )


def _known() -> dict[str, Any]:
    file = RESULTS / "determinism.json"
    return json.loads(file.read_text())["engines"] if file.exists() else {}


def _together(before: dict[str, Any] | None, ran: dict[str, Any]) -> dict[str, Any]:
    """What was known of an engine and what is new, run by run; the new ones count."""
    if before is None or before["version"] != ran["version"]:
        return ran
    queries = dict(before["queries"])
    for query, of in ran["queries"].items():
        known = queries.get(query, of)["variations"]
        queries[query] = {**of, "variations": {**known, **of["variations"]}}
    return {**ran, "queries": queries}


def _ran(name: str, engine: Engine, python: str, scratch: Path, data: Path) -> dict[str, Any]:
    """All answers of an engine: those that can share a process first, then the ones that cannot."""
    jobs = [_job(name, q, v, scratch, data) for q in engine.queries for v in engine.variations]
    jobs = [job for job in jobs if not Path(job["out"]).exists()]
    apart = [job for job in jobs if job["kill"] and engine.kills_itself]
    for job in apart:
        _run(name, python, [job], killed=True)
        size = job["rescale"] or job["parallelism"]
        _run(name, python, [{**job, "kill": False, "parallelism": size}])
    for cores in sorted({job["parallelism"] for job in jobs} if engine.one_size else {0}):
        group = [j for j in jobs if j not in apart and cores in (0, j["parallelism"])]
        if group:
            _run(name, python, group)
    return {
        "version": _version(engine, python),
        "queries": {q: _judged(name, engine, q, scratch) for q in engine.queries},
    }


def _judged(name: str, engine: Engine, query: str, scratch: Path) -> dict[str, Any]:
    reference, *others = engine.variations
    rows = {v.name: judge.read_rows(_out(name, query, v, scratch)) for v in engine.variations}
    return {
        "rows": len(rows[reference.name]),
        "variations": {
            v.name: {"beside": v.beside, **judge.compare(rows[v.beside], rows[v.name])}
            for v in others
        },
    }


def _job(name: str, query: str, variation: Variation, scratch: Path, data: Path) -> dict[str, Any]:
    work = scratch / name / f"{query}-{variation.slug}"
    return {
        "query": query,
        "data": str(data),
        "work": str(work),
        "out": str(_out(name, query, variation, scratch)),
        **variation.settings(),
    }


def _out(name: str, query: str, variation: Variation, scratch: Path) -> Path:
    return scratch / f"{name}-{query}-{variation.slug}.rows"


def _run(name: str, python: str, jobs: list[dict[str, Any]], *, killed: bool = False) -> None:
    program = HERE / "determinism" / "engines" / f"{name}_engine.py"
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(jobs, file)
        file.flush()
        done = subprocess.run(
            [python, str(program), file.name],
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
    if killed != (done.returncode < 0) or (done.returncode and not killed):
        raise SystemExit(f"{name} ended with {done.returncode}:\n{done.stderr[-4000:]}")


def _version(engine: Engine, python: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({engine.package!r}))"
    return subprocess.check_output([python, "-c", code], text=True).strip()


if __name__ == "__main__":
    main()
