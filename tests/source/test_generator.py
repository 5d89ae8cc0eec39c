from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import SourceError
from tidegate.schema import TIME
from tidegate.source import generator
from tidegate.source.generate.taxi import RideSpan
from tidegate.source.generator import GeneratorSource, open_generator
from tidegate.source.parameter import Parameters


def rides(query: str = "rows=100000&seed=7", time: str | None = None) -> GeneratorSource:
    return open_generator(f"generator:taxi?{query}", "stream rides", time)


PINNED = {
    "medallion": "9103D7FC7D7457C58692BC5597DD937E",
    "pickup_time": "2012-12-31 23:58:13.317674+00:00",
    "dropoff_time": "2013-01-01 00:01:40.086904+00:00",
    "pickup_cell": "128.118",
    "dropoff_cell": "178.161",
    "route": "128.118-178.161",
    "distance": "0.53",
    "fare": "4.0",
    "tip": "0.48",
    "payment": "CRD",
}

WHOLE = rides().reader(0, 3000).read(RideSpan.SCHEMA.names).table


@settings(max_examples=50)
@given(st.data(), st.lists(st.sampled_from(RideSpan.SCHEMA.names), unique=True, min_size=1))
def test_any_range_of_any_columns_is_a_slice_of_the_whole(
    data: st.DataObject, columns: list[str]
) -> None:
    start = data.draw(st.integers(0, 3000))
    stop = data.draw(st.integers(start, 3000))
    reader = pickle.loads(pickle.dumps(rides().reader(start, stop)))
    rows = reader.read(columns)
    assert rows.table == WHOLE.select(columns).slice(start, stop - start)
    assert rows.seq.tolist() == list(range(start, stop))
    numbers, valid = rides().times(start, stop)
    expected = WHOLE.column("dropoff_time").slice(start, stop - start).cast(pa.int64())
    assert numbers.tolist() == expected.to_pylist()
    assert valid.all()


def test_rides_look_like_rides() -> None:
    source = rides("rows=50000&seed=3&rate=20&start=2013-06-01")
    assert source.extend(1) == 50_000
    assert source.ended()
    assert not source.live()
    table = source.reader(0, 50_000).read(RideSpan.SCHEMA.names).table
    assert table.schema == RideSpan.SCHEMA
    frame = table.to_pandas()
    assert frame.dropoff_time.is_monotonic_increasing
    assert frame.dropoff_time.iloc[0].isoformat().startswith("2013-06-01T00:00:0")
    span = (frame.dropoff_time.iloc[-1] - frame.dropoff_time.iloc[0]).total_seconds()
    assert span == pytest.approx(50_000 / 20, rel=0.01)
    assert (frame.pickup_time < frame.dropoff_time).all()
    assert (frame.route == frame.pickup_cell + "-" + frame.dropoff_cell).all()
    assert set(frame.payment) == {"CRD", "CSH", "UNK"}
    assert (frame.tip[frame.payment != "CRD"] == 0).all()
    assert (frame.fare >= 2.5).all()
    assert frame.route.nunique() > 5_000


def test_routes_follow_the_law_of_zipf() -> None:
    for skew in (0.0, 0.8, 1.2):
        source = rides(f"rows=200000&seed=1&skew={skew}")
        routes = source.reader(0, 200_000).read(["route"]).table.column("route").to_pylist()
        counts = [n for _, n in Counter(routes).most_common(3)]
        harmonic = sum(r**-skew for r in range(1, 20_001))
        assert counts[0] == pytest.approx(200_000 / harmonic, rel=0.1, abs=30)
        if skew:
            assert counts[0] / counts[2] == pytest.approx(3**skew, rel=0.15)


def test_seeds_differ_and_positions_far_away_are_cheap() -> None:
    one = rides("rows=10_000_000_000&seed=1").reader(9_999_999_990, 10_000_000_000).read(["route"])
    two = rides("rows=10_000_000_000&seed=2").reader(9_999_999_990, 10_000_000_000).read(["route"])
    assert one.table != two.table
    assert one.table.num_rows == 10


def test_the_bits_are_pinned() -> None:
    """Other rides would change every benchmark and every golden file made from them."""
    row = WHOLE.slice(1000, 1).to_pylist()[0]
    assert {k: str(v) for k, v in row.items()} == PINNED


def test_another_time_column_may_be_chosen() -> None:
    numbers, _ = rides(time="pickup_time").times(0, 3000)
    assert numbers.tolist() == WHOLE.column("pickup_time").cast(pa.int64()).to_pylist()


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("generator:taxis", "the generator must be known; got taxis. Did you mean taxi or tasks?"),
        ("generator:taxi?rowz=1", "parameter rowz. Did you mean rows?"),
        ("generator:taxi?rows=-1", "rows must be a whole number from 0 on; got '-1'"),
        ("generator:taxi?rows=many", "rows must be a whole number from 0 on; got 'many'"),
        ("generator:taxi?rate=0", "rate must be a number above 0; got '0'"),
        ("generator:taxi?skew=nan", "skew must be a number from 0 on; got 'nan'"),
        ("generator:taxi?start=noon", "start must be a time in ISO 8601; got 'noon'"),
    ],
)
def test_what_is_refused(uri: str, message: str) -> None:
    with pytest.raises(SourceError) as raised:
        open_generator(uri, "stream rides", None)
    assert message in str(raised.value)


@dataclass(frozen=True)
class Ticks:
    rows: int

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([("t", TIME)])

    @property
    def time(self) -> str:
        return "t"

    def read(self, columns: Sequence[str], start: int, stop: int) -> pa.Table:
        times = pa.array(np.arange(start, stop)).cast(TIME)
        return pa.table(dict.fromkeys(columns, times))


def test_programs_may_register_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "_REGISTRY", dict(generator._REGISTRY))

    def ticks(parameters: Parameters) -> Ticks:
        return Ticks(parameters.whole("rows", 10, 0))

    generator.register("ticks", ticks)
    source = open_generator("generator:ticks?rows=4", "stream s", None)
    assert source.extend(1) == 4
    assert source.times(1, 4)[0].tolist() == [1, 2, 3]
