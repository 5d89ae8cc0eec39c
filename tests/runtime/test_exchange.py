"""Outcomes and parcels as files of one batch."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa

from tidegate.runtime.job import Outcome


def test_an_outcome_whose_rows_are_elsewhere_is_small() -> None:
    """A slice of a table pickles all of its memory; what stays must not."""
    rows = pa.table({"v": np.arange(100_000)})
    bare = Outcome(0, rows).without_rows()
    assert bare.rows.schema == rows.schema
    assert len(pickle.dumps(bare)) < 2_000
