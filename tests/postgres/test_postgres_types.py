"""Values of all types of the engine, written by the sink and read again as a table."""

from __future__ import annotations

import itertools
import json
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.postgres.server import Server
from tests.sink.output import started
from tidegate.batch import BatchId
from tidegate.driver.outlet import StoreKeep
from tidegate.schema import TIME
from tidegate.sink import postgres
from tidegate.sink.postgres.column import column_type, fits
from tidegate.sink.postgres.copy_text import cell_texts
from tidegate.sink.protocol import Opening
from tidegate.sink.receipt import Part
from tidegate.source.subscription import AS_FOUND
from tidegate.source.table import open_table, table_parts

_tables = itertools.count()

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
AWKWARD = st.sampled_from(
    ["", "\\N", "\\.", "a\n\\.\nb", "NULL", '"', "\\x41", "{}", "t\tb\r\n", "'"]
)
INTS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
PLAIN: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    **{type_: st.integers(-(2 ** (n - 1)), 2 ** (n - 1) - 1) for type_, n in INTS.items()},
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.string(): TEXTS | AWKWARD,
    pa.binary(): st.binary(max_size=6),
    pa.date32(): st.dates(),
    TIME: st.datetimes(datetime.min, datetime.max),
    pa.duration("us"): st.timedeltas(timedelta(days=-(10**7)), timedelta(days=10**7)),
    pa.time64("us"): st.times(),
    pa.decimal128(12, 4): st.decimals(-(10**7), 10**7, places=4),
    pa.decimal128(38, 30): st.decimals(-1, 1, places=30),
}
LISTED = [type_ for type_ in PLAIN if type_ not in (pa.duration("us"), pa.time64("us"))]
FIELDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    **{f"p{n}": (type_, values) for n, (type_, values) in enumerate(PLAIN.items())},
    **{
        f"l{n}": (pa.list_(type_), st.lists(st.none() | PLAIN[type_], max_size=3))
        for n, type_ in enumerate(LISTED)
    },
}
SCHEMA = pa.schema([(name, type_) for name, (type_, _) in FIELDS.items()])
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, (_, values) in FIELDS.items()}),
    min_size=1,
    max_size=5,
)


@pytest.fixture(scope="module")
def keep(tmp_path_factory: pytest.TempPathFactory) -> StoreKeep:
    return StoreKeep(started(Path(tmp_path_factory.mktemp("types"))))


def written(uri: str, keep: StoreKeep, rows: pa.Table) -> None:
    sink = postgres(uri)
    sink.open(Opening(rows.schema, None, None, keep))
    sink.publish(BatchId(0), [sink.begin(BatchId(0)).write(Part(), rows)])
    sink.close()


def read(uri: str) -> pa.Table:
    schema = open_table(uri, "t", AS_FOUND).schema
    parts = table_parts([uri], "t", schema, AS_FOUND)
    return pa.concat_tables([schema.empty_table(), *parts])


@given(ROWS)
def test_what_is_written_is_read_again(
    server: Server, keep: StoreKeep, rows: list[dict[str, Any]]
) -> None:
    table = pa.Table.from_pylist(rows, SCHEMA)
    name = f"types_{next(_tables)}"
    numbered = table.append_column("n", pa.array(range(len(rows)), pa.int64()))
    written(server.uri(name), keep, numbered)
    query = f"query=SELECT * FROM {name} ORDER BY n"
    found = read(server.uri(name).replace(f"table={name}", query)).drop_columns("n")
    expected = pa.schema([f.with_type(_wider(f.type)) for f in SCHEMA])
    assert found.schema.equals(expected)
    # As texts, in which NaN equals itself and -0.0 is not 0.0.
    assert str(found.to_pylist()) == str(table.cast(expected).to_pylist())
    server.ask(f"DROP TABLE {name}")


def _wider(type_: pa.DataType) -> pa.DataType:
    """Postgres has no integers of one byte."""
    if pa.types.is_list(type_):
        return pa.list_(_wider(type_.value_type))
    return pa.int16() if type_ == pa.int8() else type_


def test_structs_and_maps_and_lists_of_lists_are_json(server: Server, keep: StoreKeep) -> None:
    rows = pa.table(
        {
            "s": pa.array([{"a": 1, "b": ["x", 'q"\\']}, None]),
            "m": pa.array([[("k", 1.5)], []], pa.map_(pa.string(), pa.float64())),
            "l": pa.array([[[1], [2, 3]], [None]], pa.list_(pa.list_(pa.int64()))),
            "d": pa.array([[{"t": datetime(2024, 1, 1)}], None]),
        }
    )
    written(server.uri("nested"), keep, rows)
    kinds = server.ask(
        "SELECT DISTINCT pg_typeof(s)::text, pg_typeof(m)::text, pg_typeof(l)::text FROM nested"
    )
    assert kinds == [("jsonb", "jsonb", "jsonb")]
    found = server.ask("SELECT s, m, l, d FROM nested ORDER BY ctid")
    assert found == [
        (
            {"a": 1, "b": ["x", 'q"\\']},
            {"k": 1.5},
            [[1], [2, 3]],
            [{"t": "2024-01-01T00:00:00.000000Z"}],
        ),
        (None, {}, [None], None),
    ]
    assert json.loads(read(server.uri("nested"))["s"][0].as_py()) == found[0][0]


def test_times_are_written_as_arrow_would() -> None:
    times = pa.array([0, -1, None, 86_399_999_999, 86_400_000_000, -62_135_596_800_000_000], TIME)
    assert cell_texts(times, "", "").equals(times.cast(pa.string()))
    assert cell_texts(times.slice(1, 3), "", "").equals(times.slice(1, 3).cast(pa.string()))


def test_which_columns_of_a_table_take_which_values() -> None:
    for type_ in (*PLAIN, pa.list_(pa.int32()), pa.struct([("a", pa.int64())])):
        assert fits(type_, column_type(type_))
    taken = {
        "integer": pa.int16(),
        "bigint": pa.int32(),
        "numeric": pa.int64(),
        "double precision": pa.float32(),
        "character varying(20)": pa.string(),
        "numeric(14,5)": pa.decimal128(12, 4),
        "json": pa.map_(pa.string(), pa.int64()),
        "bigint[]": pa.list_(pa.int64()),
    }
    assert [name for name, type_ in taken.items() if not fits(type_, name)] == []
    refused = {
        "smallint": pa.int32(),
        "real": pa.float64(),
        "numeric(12,5)": pa.decimal128(12, 4),
        "numeric(12,3)": pa.decimal128(12, 4),
        "text": pa.int64(),
        "integer[]": pa.list_(pa.int64()),
        "bigint": pa.list_(pa.int64()),
        "timestamp(3) with time zone": TIME,
    }
    assert [name for name, type_ in refused.items() if fits(type_, name)] == []


UNREADABLE = {
    "interval '1 month'": r"column v must have values of type duration.* '1 mon'",
    "'infinity'::timestamptz": "column v must have values of type timestamp.* 'infinity'",
    "'NaN'::numeric": "column v must have values of type decimal.* 'NaN of too many digits'",
    "1e30::numeric": "column v must have values of type decimal.* of too many digits'",
    "1e-20::numeric": "column v must have values of type decimal",
    "'{{1},{2}}'::int[]": "every value must be readable",
    "1, 2 AS v": "columns must have names of their own; got v twice",
    "1 FROM": "the query must be readable; got syntax error",
    "1 / 0": "division by zero",
}


@pytest.mark.parametrize("value", UNREADABLE)
def test_values_that_cannot_be_read(server: Server, value: str) -> None:
    from tidegate.errors import SourceError

    select = f"SELECT {value} AS v" if " AS v" not in value else f"SELECT 0 AS v, {value}"
    uri = server.uri("").replace("table=", f"query={select}")
    with pytest.raises(SourceError, match=UNREADABLE[value]):
        read(uri)


OTHERS = {
    "gen_random_uuid()::text = ''": False,
    "'{\"a\": 1}'::jsonb": '{"a": 1}',
    "'10.0.0.1'::inet": "10.0.0.1/32",
    "12345678901234567890.5::numeric": Decimal("12345678901234567890.5"),
    "7::oid": 7,
    "timestamp '2024-01-31 12:00:00.5'": datetime(2024, 1, 31, 12, 0, 0, 500_000),
    "date '2024-01-31'": date(2024, 1, 31),
    "time '23:59:59.999999'": time_of_day(23, 59, 59, 999_999),
    "interval '2 days 3 seconds'": timedelta(days=2, seconds=3),
    "ARRAY[1.5::numeric, NULL]": ["1.5", None],
    "ARRAY[time '12:00', NULL]": ["12:00:00", None],
    "ARRAY[interval '90 s']": ["00:01:30"],
    "ARRAY[timestamp '2024-01-31 12:00']": [datetime(2024, 1, 31, 12)],
    "'abc'::char(5)": "abc",
}


def test_other_types_are_read_as_the_nearest(server: Server) -> None:
    listed = ", ".join(f"{value} AS c{n}" for n, value in enumerate(OTHERS))
    (found,) = read(server.uri("").replace("table=", f"query=SELECT {listed}")).to_pylist()
    naive = [_naive(value) for value in found.values()]
    assert naive == list(OTHERS.values())


def _naive(value: Any) -> Any:
    if isinstance(value, list):
        return [_naive(v) for v in value]
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value
