"""Mappings as manifests have them, for tests that need some."""

from __future__ import annotations

from typing import Any


def mappings(*owners: int, epoch: int = 0) -> dict[str, dict[str, Any]]:
    """Those of a query with one subquery, by the owners of its buckets."""
    of = {"epoch": epoch, "instances": max(owners) + 1, "owners": list(owners)}
    return {"aggregate": of}
