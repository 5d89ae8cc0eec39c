"""JSON that every parser reads; Python's own writer emits NaN and Infinity."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def json_text(facts: Any, indent: int | None = None) -> str:
    """The JSON text. NaN and infinities become null, other objects their text."""
    return json.dumps(_plain(facts), indent=indent, default=str, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _plain(inside) for name, inside in value.items()}
    return [_plain(inside) for inside in value] if isinstance(value, list | tuple) else value
