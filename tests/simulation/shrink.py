"""The fewest faults with which a course is still wrong."""

from __future__ import annotations

from tests.simulation.course import Report, run


def shrunk(report: Report) -> Report:
    """Leave out one life after the other, as long as something stays wrong; the last one stays."""
    smallest, place = report, 0
    while place < len(smallest.scenario.lives) - 1:
        lives = list(smallest.scenario.lives)
        del lives[place]
        tried = run(smallest.scenario.with_lives(lives))
        if tried.wrong is None:
            place += 1
        else:
            smallest = tried
    return smallest
