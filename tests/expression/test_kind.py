from __future__ import annotations

import pyarrow as pa
import pytest

from tidegate.expression.kind import CONVERSIONS, is_numeric, kind
from tidegate.operate.kernels.expression.cast import CONVERTERS
from tidegate.schema import TIME


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        (pa.int8(), "integer"),
        (pa.float32(), "float"),
        (pa.decimal128(5, 2), "decimal"),
        (TIME, "timestamp"),
        (pa.null(), "null"),
        (pa.list_(pa.int8()), "list<item: int8>"),
    ],
)
def test_a_type_is_of_one_kind(type_: pa.DataType, name: str) -> None:
    assert kind(type_) == name
    assert is_numeric(type_) == (name in ("integer", "float", "decimal"))


def test_every_conversion_has_its_kernel() -> None:
    assert set(CONVERTERS) == CONVERSIONS
