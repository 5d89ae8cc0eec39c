"""The index of tasks leads to each question of a first week within two clicks."""

from __future__ import annotations

import re
from os.path import normpath
from pathlib import PurePosixPath

import pytest
from markdown.extensions.toc import slugify

from tests.docs.block import ROOT

DOCS = ROOT / "docs"
INDEX = "tasks.md"
# What the section that answers a question of examples/first_week has to show.
WEEK = {
    "district_names": "CREATE TABLE",
    "first_calls": "KEEP FIRST WITHIN",
    "hashtags": "EXPLODE(",
    "hourly_revenue": "[RANGE 1 HOUR]",
    "last_large_trade": "ASOF JOIN",
    "late_shipments": "LEFT JOIN",
    "local_days": "TIME ZONE 'America/New_York'",
    "moving_average": "PRECEDING",
    "not_called_back": "ANTI JOIN",
    "percentiles": "PERCENTILE_CONT",
    "price_changes": "LAG(",
    "running_total": "UNBOUNDED PRECEDING",
    "sessions": "SESSION GAP",
    "top_callers": "LIMIT 3 BY",
    "totals": "ROLLUP",
}


def section(place: str) -> str:
    """The text of `page.md#heading` with its subsections, or of a page up to its first section."""
    page, _, anchor = place.partition("#")
    levels: list[tuple[int, str, list[str]]] = [(0, "", [])]
    fenced = False
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        fenced ^= line.startswith("```")
        heading = None if fenced else re.match(r"(#+) (.*)", line)
        if heading:
            levels.append((len(heading[1]), slugify(heading[2], "-"), []))
        levels[-1][2].append(line)
    if not anchor:
        return "\n".join(line for _, _, lines in levels[:2] for line in lines)
    (start,) = [i for i, (_, slug, _) in enumerate(levels) if slug == anchor]
    found = list(levels[start][2])
    for level, _, lines in levels[start + 1 :]:
        if level <= levels[start][0]:
            break
        found += lines
    return "\n".join(found)


def links(text: str, page: str) -> set[str]:
    """Where the links of a text go, as `page.md` or `page.md#heading`."""
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    pages = [t if t[0] != "#" else page + t for t in targets if "://" not in t]
    near = [t if t.startswith(page) else normpath(PurePosixPath(page).parent / t) for t in pages]
    return {p for p in near if PurePosixPath(p.partition("#")[0]).suffix == ".md"}


FIRST = sorted(links((DOCS / INDEX).read_text(encoding="utf-8"), INDEX))


def test_the_questions_are_those_of_the_examples() -> None:
    examples = (ROOT / "examples" / "first_week").glob("*.sql")
    assert sorted(WEEK) == sorted(path.stem for path in examples)
    for name, shown in WEEK.items():
        text = (ROOT / "examples" / "first_week" / f"{name}.sql").read_text(encoding="utf-8")
        assert shown in text, name


@pytest.mark.parametrize("name", WEEK)
def test_a_question_is_answered_within_two_clicks(name: str) -> None:
    second = {link for place in FIRST for link in links(section(place), place.partition("#")[0])}
    near = [p for p in {*FIRST, *second} if not p.startswith(("decisions/", "measured/", "../"))]
    found = [place for place in near if WEEK[name] in section(place)]
    assert found, f"{WEEK[name]} is nowhere within two clicks of {INDEX}"
