"""Keeps PyArrow from importing pandas in processes that do not need it.

PyArrow imports pandas the first time it converts Python values, to recognise pandas' own. That
takes as long as importing all of Tidegate, and 50 MB.
"""

from __future__ import annotations

import sys

import pyarrow as pa

PANDAS = "pandas"


class _NoPandas:
    """An import finder, placed before all others."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == PANDAS:
            raise ModuleNotFoundError(f"{name} is left out", name=name)


def leave_pandas_out() -> None:
    """Makes PyArrow look for pandas now and not find it; it looks only once.

    Only for processes that run no Python but Tidegate's: from then on PyArrow does not recognise
    `pandas.NaT` and `pandas.NA`. Code can still import pandas afterwards; if it is imported
    already, this does nothing.
    """
    if PANDAS in sys.modules:
        return
    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.scalar(0)
    finally:
        sys.meta_path.remove(_NoPandas)
