"""The first rows of each partition of a window, drawn by chance for both engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.fuzz.row import Chance, Kind

NUMBERS = {
    **dict.fromkeys(("ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE"), ("0", "1", "2", "3")),
    **dict.fromkeys(("PERCENT_RANK", "CUME_DIST"), ("0", "0.25", "0.5", "1")),
}
"""What the places of rows are compared with."""


def first_of_each(
    chance: Chance,
    columns: Mapping[str, Kind],
    names: Sequence[str],
    order: Sequence[tuple[str, str]],
) -> tuple[str, str, str]:
    """QUALIFY before ORDER BY, or LIMIT BY after it, and for DuckDB whether a row is among them.

    `names` are the keys of the rows, and `order` is ORDER BY in both dialects.
    """
    exact = [n for n, kind in columns.items() if kind.exact]
    if not exact or chance.random() < 0.6:
        return "", "", ""
    part, most = str(chance.choice(exact)), int(chance.integers(0, 3))
    keys = [f"{n} NULLS FIRST" for n in names]
    if chance.random() < 0.5:
        inside = ", ".join([*(o[1] for o in order), *keys, "1"])
        over = f'PARTITION BY "~start", {part} ORDER BY {inside}'
        return "", f" LIMIT {most} BY {part}", f'row_number() OVER ({over}) <= {most} AS "~place"'
    name, way = str(chance.choice(exact)), str(chance.choice(["ASC", "DESC"]))
    kind = str(chance.choice(list(NUMBERS)))
    call = f"{kind}(3)" if kind == "NTILE" else f"{kind}()"
    asked = f"{chance.choice(['<=', '<=', '=', '>=', '<', '>'])} {chance.choice(NUMBERS[kind])}"
    by = f"{name} {way} NULLS {'FIRST' if way == 'ASC' else 'LAST'}"
    inside = ", ".join([by, *keys, "1"]) if kind in ("ROW_NUMBER", "NTILE") else by
    return (
        f" QUALIFY {call} OVER (PARTITION BY {part} ORDER BY {name} {way}) {asked}",
        "",
        f'{call} OVER (PARTITION BY "~start", {part} ORDER BY {inside}) {asked} AS "~place"',
    )
