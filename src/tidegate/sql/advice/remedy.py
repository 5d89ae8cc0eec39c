"""Says what to do about a word that the parser did not expect."""

from __future__ import annotations

import re

from tidegate.errors import likely
from tidegate.query.clause.registry import CLAUSES

UNEXPECTED = "expected another clause or the end of the statement"
NEEDS_AS = "a word of a clause needs AS to be a name"
WORDS = frozenset(
    "ANTI ASOF BALANCE BUDGET CONFIDENCE COST DISORDER EMIT ERROR EVERY FINAL GAP GLOBAL IDLE KEEP "
    "LATENCY MATCH_CONDITION ONLY PARTITIONER PREWHERE QUALIFY RANGE REFRESH ROWS SAMPLE "
    "SEMI SESSION SETTINGS SHED SLIDE TABLESAMPLE VALID WITHIN".split()
)
"""Clause keywords, here or elsewhere. They are no aliases without AS: FROM rides FINAL."""

_MISSING = "Is a comma, an operator or a keyword missing before it?"
_OF_ERROR = ("CONFIDENCE", "BUDGET")
_ORDER = ("WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT")
_EXAMPLES = {
    "expected PERCENT": "Write for example 10 PERCENT.",
    "expected PERCENT or ABSOLUTE": "Write for example 10 PERCENT.",
    "expected a number and PERCENT": "Write for example 10 PERCENT.",
    "expected GAP after SESSION": "Write for example [SESSION GAP 30 MINUTES].",
    "expected ROWS": "Write for example BUDGET 1000 ROWS.",
    "expected a number of ROWS": "Write for example BUDGET 1000 ROWS.",
}
_LISTED = re.compile(r"expected (?P<words>[A-Z, or]+) after [A-Z]+")


def remedy(requirement: str, found: str) -> str | None:
    """What to do about `found`, or about the end of the statement if `found` is empty."""
    if requirement in _EXAMPLES:
        return _EXAMPLES[requirement]
    if listed := _LISTED.fullmatch(requirement):
        return likely(found, re.findall("[A-Z]+", listed["words"])) or None
    if requirement == NEEDS_AS:
        clause = CLAUSES.get(found.upper())
        way = "begin it with WITH" if clause and clause.lead else "there is no way yet"
        return f"Write AS {found} if it is a name; if it is a clause, {way}."
    if requirement != UNEXPECTED or not found:
        return None
    if found == ",":
        return "Leave the comma out; each of several clauses after a query begins with WITH."
    if found.upper() in _ORDER:
        return f"Clauses come in this order: {', '.join(_ORDER)}, WITH."
    if found == "?":
        return "Write a name with parameters in quotes, for example WITH PARTITIONER 'pk?d=3'."
    if found.upper() in CLAUSES and CLAUSES[found.upper()].lead:
        return f"Write WITH before it: WITH {found.upper()} ..."
    if found.upper() in _OF_ERROR:
        return (
            "It is a part of WITH ERROR 10 PERCENT CONFIDENCE 95 PERCENT BUDGET 1000 ROWS BY MAX."
        )
    return likely(found, _OF_ERROR, alike=0.8) or _MISSING
