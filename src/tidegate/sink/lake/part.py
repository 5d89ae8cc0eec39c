"""Writes parts of a batch as data files of a table; no reader sees them before `publish`."""

from __future__ import annotations

import io
import re
import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidegate import schedule
from tidegate.batch import BatchId
from tidegate.calendar.microsecond import FIRST_US, LAST_US
from tidegate.errors import SinkError
from tidegate.remote.reason import reason
from tidegate.sink.folder.form import Form
from tidegate.sink.lake.table import LakeFiles, alike
from tidegate.sink.receipt import Part, Receipt

SIDE, STATS = "side", "stats"
"""Keys of `Receipt.more`: the side table of a part, and the ranges of its columns of times."""

_FORM = Form("parquet")
_ROWS = "part"
"""The prefix of the names of files with results."""


@dataclass(frozen=True)
class LakePartWriter:
    """Puts the parts of one batch into the folder of the table; picklable.

    File names begin with the batch and the number of the part, so they sort as the output does. The
    owner and a token of the try make each name unique. A part costs one durable `put`.
    """

    files: LakeFiles
    writer: str
    batch: BatchId
    owner: int
    schema: pa.Schema
    """The columns in the types of the table, in the order of the query; rows are cast to them."""

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        if not part.side:
            rows = rows.cast(self.schema)
        side = side_of(part)
        token = schedule.current().token()
        stem = side.strip("_").replace("/", "_") or _ROWS
        stem += f"-{part.number:05d}-{self.owner:08d}-{token}"
        name = f"{folder_of_batch(self.writer, self.batch)}/{stem}.parquet"
        folder = self.files.folder(side)
        memory = io.BytesIO()
        try:
            _FORM.write(rows, memory)
            data = memory.getbuffer()
            folder.put(name, data)
        except (OSError, pa.ArrowException) as error:
            raise SinkError(
                folder.full(name),
                "the batch must be written before it is committed",
                reason(error),
                "Nothing of it was committed: make room or give access, then run again.",
            ) from error
        more: dict[str, Any] = {STATS: spans_of(rows)}
        if side:
            more[SIDE] = side
        return Receipt(name, rows.num_rows, len(data), zlib.crc32(data), more)


def side_of(part: Part) -> str:
    """The side table of a part, named below that of the results; "" for the results."""
    stream = re.sub(r"[^A-Za-z0-9_]", lambda m: f"_{ord(m[0]):02x}", part.stream)
    return {"late": f"_late/{stream}", "rejected": "_rejected"}.get(part.side, "")


def folder_of_batch(writer: str, batch: int) -> str:
    """The folder of a batch's files, below that of the table."""
    return f"data/{writer.replace('/', '-')}/{batch:08d}"


def is_of_rows(name: str) -> bool:
    """Whether a data file has results, and not late or rejected tuples."""
    return name.rpartition("/")[2].startswith(f"{_ROWS}-")


def owner_of(name: str) -> int:
    """The owner in the name of a data file."""
    return int(name.rpartition("/")[2].split("-")[2])


def writing_schema(table: pa.Schema, query: pa.Schema) -> pa.Schema:
    """The columns of a query; whole numbers take the table's wider type, where it has one."""
    fields = []
    for field in query:
        own = table.field(field.name).type
        wider = pa.types.is_integer(own) and own != field.type and alike(own, field.type)
        fields.append(field.with_type(own) if wider else field)
    return pa.schema(fields)


def spans_of(rows: pa.Table) -> dict[str, list[str]]:
    """The least and the greatest value of each column of times, widened to whole milliseconds."""
    found = {}
    for field in rows.schema:
        if pa.types.is_timestamp(field.type):
            low, high = (v.value for v in pc.min_max(rows.column(field.name)).values())
            if low is not None and FIRST_US <= low <= high <= LAST_US:
                found[field.name] = [_text(low // 1000), _text(-(-high // 1000))]
    return found


def _text(ms: int) -> str:
    moment = datetime(1970, 1, 1) + timedelta(milliseconds=min(ms, LAST_US // 1000))
    return f"{moment.isoformat(timespec='milliseconds')}Z"
