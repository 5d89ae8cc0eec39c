"""How files of results are written: their format, and what JSON does with NaN and infinities.

JSON has no such numbers; CSV and Parquet have. In JSON they are refused before the batch is
committed, or written as the texts "NaN", "Infinity" and "-Infinity" where the sink is told to. Late
and rejected tuples must never stop a run, so there they are always texts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from tidegate.errors import OptionError, SinkError, near
from tidegate.sink.address import Address
from tidegate.sink.csv import write_csv
from tidegate.sink.json import first_nonfinite, objects, write_json

PARAMETERS = ("format", "nonfinite")
"""The parameters of a URI of files."""

REFUSE, TEXT = NONFINITE = "refuse", "text"

_JSON = "json"
_SHOWN = 200
"""How many characters of a row a message shows."""


@dataclass(frozen=True)
class Form:
    """The format of a sink's files, checked when it is created. Small and picklable."""

    format: str = "parquet"
    nonfinite: str = REFUSE

    def __post_init__(self) -> None:
        if self.format not in WRITERS:
            known = near(self.format, WRITERS)
            raise OptionError("--format", "must be a known format", self.format, known)
        if self.nonfinite not in NONFINITE:
            raise OptionError(
                "nonfinite", "must be refuse or text", self.nonfinite, near(self.nonfinite, (TEXT,))
            )
        if self.nonfinite != REFUSE and self.format != _JSON:
            raise OptionError(
                "nonfinite",
                "is for JSON, which has no NaN and no infinities",
                f"{self.nonfinite} for {self.format}",
                f"Leave it out: {self.format} keeps them.",
            )

    @staticmethod
    def at(address: Address) -> Form:
        """The form that the parameters of a URI ask for; ignores other parameters."""
        given = {
            name: address.parameters[name] for name in PARAMETERS if name in address.parameters
        }
        try:
            return Form(**given)
        except OptionError as error:
            asked = ", ".join(f"{name}={value}" for name, value in given.items())
            raise OptionError(address.where, error.requirement, asked, error.remedy) from error

    def write(self, rows: pa.Table, out: Any) -> None:
        """Write a table into an open file."""
        WRITERS[self.format](rows, out)

    def check(self, rows: pa.Table, where: str, out: str = "DIR?format=json&") -> None:
        """Refuse rows with values that the format has no form for; called before they are written.

        The remedy shows a URI of the sink that would write them; it begins with `out`.
        """
        if (self.format, self.nonfinite) != (_JSON, REFUSE):
            return
        for number, name in enumerate(rows.schema.names):
            row = first_nonfinite(rows.column(number))
            if row is not None:
                shown = objects(rows.slice(row, 1).combine_chunks().to_batches()[0])[0].as_py()
                raise SinkError(
                    where,
                    f"column {name} must have finite numbers, because JSON has no others",
                    f"{shown[:_SHOWN]}{'...' if len(shown) > _SHOWN else ''}",
                    "Nothing of the batch was committed. To go on, write such values as texts with "
                    f"--out '{out}nonfinite=text', in Python nonfinite=\"text\".",
                )


def _write_parquet(table: pa.Table, out: Any) -> None:
    # Dictionaries of floats cost half of the writing time and save nothing.
    repeating = [f.name for f in table.schema if not pa.types.is_floating(f.type)]
    pyarrow.parquet.write_table(table, out, compression="zstd", use_dictionary=repeating)


WRITERS: dict[str, Callable[[pa.Table, Any], None]] = {
    "parquet": _write_parquet,
    "csv": write_csv,
    _JSON: write_json,
}
"""The functions that write a table into an open file, by format."""
