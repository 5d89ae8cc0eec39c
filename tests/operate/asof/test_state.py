"""What is left of the layers of an as-of join when they are merged."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidegate.expression.tree import Column
from tidegate.operate.asof.backward import Backward
from tidegate.operate.asof.forward import MARK, Forward
from tidegate.operate.asof.key import hashed
from tidegate.operate.asof.look import AsOfLook
from tidegate.operate.asof.spec import GROUP, AsOfSpec
from tidegate.operate.asof.state import arranged

KEY = pa.string()


def spec_of(look: AsOfLook, equal: bool = True) -> AsOfSpec:
    columns = ((("l0", KEY), ("l1", pa.int64())), (("r0", KEY), ("r1", pa.int64())))
    keys = ((Column("l0", KEY), Column("r0", KEY)),)
    return AsOfSpec(columns, keys, look, equal=equal, tolerance_us=100, keep=False)


def layer(spec: AsOfSpec, *rows: tuple[str | None, int, int, bool]) -> pa.Table:
    """Rows of (key, time, value, whether it is a mark)."""
    keys = pa.array([row[0] for row in rows], KEY)
    side = "lr"[spec.look.stored]
    found = {
        "bucket": pa.array([0] * len(rows), pa.int32()),
        GROUP: pa.array(hashed([keys], len(rows))),
        "ts": pa.array([row[1] for row in rows]),
        "src": pa.array([0] * len(rows)),
        "seq": pa.array(range(len(rows))),
        "k0": keys,
        f"{side}0": keys,
        f"{side}1": pa.array([row[2] for row in rows]),
        MARK: pa.array([row[3] for row in rows]),
    }
    schema = spec.state_schema
    return pa.table([found[name] for name in schema.names], schema=schema)


def held(spec: AsOfSpec, *layers: pa.Table) -> list[tuple[str | None, int]]:
    merged = arranged(spec, pa.concat_tables(layers))
    assert merged.column(GROUP).to_pylist() == sorted(merged.column(GROUP).to_pylist())
    pairs = zip(merged.column("k0").to_pylist(), merged.column("ts").to_pylist(), strict=True)
    return sorted(pairs, key=lambda pair: (pair[0] or "", pair[1]))


def test_looking_back_the_newest_of_each_key_stays() -> None:
    spec = spec_of(Backward())
    old = layer(spec, ("a", 1, 1, False), ("b", 2, 2, False))
    new = layer(spec, ("a", 5, 3, False), ("c", 4, 4, False))
    assert held(spec, old, new) == [("a", 5), ("b", 2), ("c", 4)]


@pytest.mark.parametrize(("equal", "left"), [(True, []), (False, [("a", 5)])])
def test_looking_ahead_a_mark_hides_what_has_had_its_partner(
    equal: bool, left: list[tuple[str, int]]
) -> None:
    spec = spec_of(Forward(), equal)
    old = layer(spec, ("a", 1, 1, False), ("b", 2, 2, False), ("a", 5, 3, False))
    mark = layer(spec, ("a", 5, 0, True))
    later = layer(spec, ("a", 7, 4, False), (None, 6, 5, False))
    rest = [(None, 6), *left, ("a", 5), ("a", 7), ("b", 2)]
    assert held(spec, old, mark, later) == rest
    newer = layer(spec, ("a", 9, 0, True))
    assert held(spec, old, mark, later, newer) == [(None, 6), ("a", 9), ("b", 2)]
