"""Keeps PyArrow from importing pandas in a process that has no use for it.

PyArrow imports pandas when it first converts values of Python, so that it knows values of pandas
when it meets some. That takes as long as importing all of Tidegate does, and 50 MB.
"""

from __future__ import annotations

import sys

import pyarrow as pa

PANDAS = "pandas"


class _NoPandas:
    """Stands before all that Python finds modules with."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == PANDAS:
            raise ModuleNotFoundError(f"{name} is left out", name=name)


def leave_pandas_out() -> None:
    """Have PyArrow ask for pandas now, and find none; it asks once.

    Only for a process that runs nobody's Python but Tidegate's: PyArrow does not know `pandas.NaT`
    and `pandas.NA` from then on. Who imports pandas afterwards gets it; where it is imported
    already, this does nothing.
    """
    if PANDAS in sys.modules:
        return
    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.scalar(0)
    finally:
        sys.meta_path.remove(_NoPandas)
