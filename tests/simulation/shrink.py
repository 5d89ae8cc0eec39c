"""The fewest faults with which a course is still wrong, and how that is told."""

from __future__ import annotations

from tests.simulation.course import Report, run


def shrunk(report: Report) -> Report:
    """Leave out one start after the other, as long as something stays wrong; the last one stays."""
    smallest, place = report, 0
    while place < len(smallest.scenario.starts) - 1:
        starts = list(smallest.scenario.starts)
        del starts[place]
        tried = run(smallest.scenario.with_starts(starts))
        if tried.wrong is None:
            place += 1
        else:
            smallest = tried
    return smallest


def told(report: Report) -> str:
    """What is wrong, the course of it, and its seed."""
    least = shrunk(report)
    seed, count = report.scenario.seed, len(report.scenario.faults)
    lines = [
        f"seed {seed}: {least.wrong}",
        *(f"    {line}" for line in least.story),
        f"  with {least.scenario.faults}",
        f"  again with python -m tests.simulation {seed} --faults {count}",
    ]
    return "\n".join(lines)
