"""Writes results as files of an object store or another file system.

::

    _staging/batch=NNNNNNNN.OOOOOOOO-A/TRY-part-00000.parquet   parts until they are published
    batch=NNNNNNNN/part-00000.parquet                           what readers see, as in a folder

O is the number of the run (its owner), A counts how often it has begun a batch, and every write has
a TRY of its own. So no writer overwrites another's part. Receipts name the parts that count, so no
folder has to be sealed before the commit. Object stores cannot rename: after the commit the server
copies the parts to their names, then the staged ones are deleted. The first part comes last, so a
batch is whole when it has its `part-00000`.
"""

from __future__ import annotations

import io
import logging
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import pyarrow as pa

from tidegate import schedule
from tidegate.batch import BatchId
from tidegate.errors import OptionError, SinkError
from tidegate.remote.folder import Folder, folder_of
from tidegate.remote.object_uri import with_region
from tidegate.remote.reason import reason, remedy
from tidegate.remote.scheme import is_object_uri, shown, unusable, without_keys
from tidegate.sink.address import Address
from tidegate.sink.folder.batch_ledger import (
    LEDGER,
    SeenPart,
    batch_folder,
    ledger_name,
    ledger_text,
    with_columns,
)
from tidegate.sink.folder.form import PARAMETERS, REFUSE, WRITERS, Form
from tidegate.sink.folder.part import SIDES, part_name, side_folder
from tidegate.sink.folder.refusal import (
    CHANGED,
    other_format,
    part_lost,
    results_beyond,
    results_missing,
    results_there,
    too_early,
)
from tidegate.sink.folder.staging import FILE, STAGING
from tidegate.sink.folder.text_rows import TEXTS
from tidegate.sink.folder.verify import VerifiedParts
from tidegate.sink.protocol import Opening
from tidegate.sink.receipt import Part, Receipt
from tidegate.storage.whole_file import FileWriter

_log = logging.getLogger(__name__)
_STAGED = re.compile(r"batch=(\d+)\.(\d+)-\d+")
_OUTPUT = "output"
"""The parameter by which the URI in a manifest names the output."""


@dataclass(frozen=True)
class RemotePartWriter:
    """Puts the parts of one batch into `_staging`; picklable, and connects where it is used.

    A part costs one request, or several where it is large.
    """

    uri: str
    folder: str
    form: Form

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        name = part_name(part, self.form.format)
        staged = f"{self.folder}/{schedule.current().token()}-{os.path.basename(name)}"
        memory = io.BytesIO()
        out = FileWriter(memory)
        place = folder_of(self.uri)
        if not part.side:
            self.form.check(rows, place.full(staged))
        try:
            self.form.write(rows, out)
            place.put(staged, memory.getbuffer())
        except (OSError, pa.ArrowException) as error:
            raise _unwritten(place.full(staged), error) from error
        return Receipt(name, rows.num_rows, out.bytes, out.checksum, {FILE: staged})


class RemoteSink:
    """A folder elsewhere: its files, read in the order of their names, are the output sequence.

    Side outputs go to `_late` and `_rejected` beside the batches. An output with a name has a
    folder of that name for everything but its side outputs.
    """

    parallel = True
    side_outputs = True
    formats = tuple(WRITERS)

    def __init__(
        self,
        uri: str,
        format: str = "parquet",
        output: str | None = None,
        nonfinite: str = REFUSE,
    ) -> None:
        self.form = Form(format, nonfinite)
        self.format = format
        self._given = uri
        self._output = output
        self._within = "" if output is None else f"{output}/"
        self._columns: pa.Schema | None = None
        """What the ledgers have to tell of the columns: nothing where the files do."""
        self._owner = 0
        self._tries = 0
        self._used = False
        """Whether this run has written or published anything here, or an earlier one has."""
        self._swept = False
        self._new = False
        """Whether the query had committed nothing at `open` and has begun nothing since."""
        self._begun: BatchId | None = None
        """The batch that this run writes now, or wrote last."""
        self._waiting: BatchId | None = None
        """The batch that is committed, or about to be, and not yet published."""
        self._connected: tuple[str, Folder] | None = None

    def __repr__(self) -> str:
        return f"RemoteSink({shown(self._given)!r}, format={self.format!r})"

    @staticmethod
    def at(address: Address, output: str | None) -> RemoteSink:
        """The sink of a folder elsewhere; parameters that are not ours go to the store."""
        if not address.place.startswith("//"):
            raise unusable(address.text, address.where, OptionError)
        form = Form.at(address)
        others = {n: value for n, value in address.parameters.items() if n not in PARAMETERS}
        query = f"?{urlencode(others)}" if others else ""
        uri = f"{address.scheme}:{address.place}{query}"
        sink = RemoteSink(uri, form.format, output, form.nonfinite)
        try:
            sink.connect()
        except OptionError as error:
            got = error.got if error.got is None else f"{error.got} for {error.where}"
            raise OptionError(address.where, error.requirement, got, error.remedy) from error
        return sink

    @staticmethod
    def of_manifest(uri: str) -> RemoteSink:
        """The sink whose `uri` a manifest has recorded."""
        parts = urlsplit(uri)
        given = parse_qsl(parts.query, keep_blank_values=True)
        query = urlencode([(name, value) for name, value in given if name != _OUTPUT])
        return RemoteSink(urlunsplit(parts._replace(query=query)), output=dict(given).get(_OUTPUT))

    def connect(self) -> Folder:
        """The folder, opened once; an OptionError where the URI is wrong. Writes nothing."""
        if self._connected is None:
            uri = with_region(self._given) if is_object_uri(self._given) else self._given
            self._connected = uri, folder_of(uri)
        return self._connected[1]

    @property
    def uri(self) -> str:
        """The place that a manifest records, by which `verify` finds the parts of a batch."""
        uri = without_keys(self._given)
        if self._output is None:
            return uri
        return f"{uri}{'&' if '?' in uri else '?'}{urlencode({_OUTPUT: self._output})}"

    def verify(self, batch: BatchId, receipts: Sequence[Receipt]) -> VerifiedParts:
        """Compare the parts of a committed batch with their receipts; changes nothing."""
        parts = _Parts(self.connect(), self._within, batch, receipts)
        published = parts.published()
        wrong = parts.damaged(contents=True, published=published)
        return VerifiedParts(
            published=published,
            parts=len(receipts),
            bytes=sum(receipt.bytes or 0 for receipt in receipts),
            problems=tuple(f"{path}: {what}" for path, what in wrong),
        )

    def batch_names(self, folder: str) -> list[str]:
        place, inside = self.connect(), f"{self._within}{folder}".rstrip("/")
        files = (entry.name.rpartition("/")[2] for entry in place.list(inside))
        return sorted({*files, *place.folders(inside)})

    def ledger(self, batch: BatchId) -> bytes:
        return self.connect().read(self._within + ledger_name(batch))

    def beside(self) -> RemoteSink:
        """The folder of the side outputs."""
        return RemoteSink(self._given)

    def part(self, name: str) -> pa.NativeFile:
        """A published file by its name below the folder, read whole."""
        return pa.BufferReader(self.connect().read(self._within + name))

    def seen(self, batch: BatchId, receipts: Sequence[Receipt]) -> Iterator[SeenPart]:
        yield from _Parts(self.connect(), self._within, batch, receipts).seen()

    def side_names(self, folder: str) -> list[str] | None:
        return self.batch_names(folder) if not self._within else None

    def shown(self, name: str) -> str:
        return self.connect().full(f"{self._within}{name}")

    def open(self, opening: Opening) -> None:
        self._used, self._swept, self._begun = False, False, None
        self._new = opening.newest is None
        self._waiting = opening.newest if opening.newest in opening.results else None
        self._columns = opening.schema if self.format in TEXTS else None
        self._owner, self._tries = opening.owner, 0
        place = self.connect()
        try:
            if opening.newest is None or not opening.results:
                self._check_unused(place)
            else:
                self._check_continued(place, opening.newest, opening.results)
        except OSError as error:
            must = "the output folder must be readable"
            raise OptionError(place.root, must, reason(error), remedy(error)) from error
        self._used = bool(opening.results)  # earlier runs of this checkpoint have written here

    def begin(self, batch: BatchId) -> RemotePartWriter:
        place = self.connect()
        assert self._connected is not None
        self._used = True
        try:
            if self._new:  # left by results that were deleted
                ledgers = place.list(f"{self._within}{LEDGER}")
                place.delete_all([entry.name for entry in ledgers])
            if not self._swept or self._begun == batch:  # after earlier runs, or a failed try
                self._sweep(place, keep=self._waiting)
        except OSError as error:
            raise _unwritten(place.full(self._within + STAGING), error) from error
        self._swept, self._begun, self._new = True, batch, False
        self._tries += 1
        name = f"{batch_folder(batch)}.{self._owner:08d}-{self._tries}"
        folder = f"{self._within}{STAGING}/{name}"
        return RemotePartWriter(self._connected[0], folder, self.form)

    def prepare(self, batch: BatchId, receipts: Sequence[Receipt]) -> Sequence[Receipt]:
        """Remember that the batch may be committed from here on; `put` was durable already."""
        self._waiting = batch
        return with_columns(receipts, self._columns)

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        """Move the side outputs into place, then the parts, the first one last.

        A batch that has its first part is published and is never changed. Parts that another
        process has written are read and compared with their checksums before.
        """
        self._used = True
        place, own = self.connect(), batch == self._begun
        parts = _Parts(place, self._within, batch, receipts)
        try:
            if parts.published():
                self._check_published(parts, contents=not own)
            else:
                wrong = parts.damaged(contents=not own, published=False)
                if wrong:
                    raise part_lost(*wrong[0])
                # Parts of an earlier try that cut the rows otherwise would be read as rows of this
                # batch, so they go before the first part, which says that the batch is whole.
                place.delete_all(parts.unnamed())
                place.put(self._within + ledger_name(batch), ledger_text(batch, receipts))
                place.move(parts.moves())
            self._waiting = None
            if not own:
                self._sweep(place, keep=None)
        except OSError as error:
            raise SinkError(
                place.full(f"{self._within}{batch_folder(batch)}"),
                "a committed batch must be moved into place",
                reason(error),
                f"{remedy(error)} Then run again: the batch is kept in {STAGING}.",
            ) from error

    def close(self) -> None:
        if not self._used:  # a run that was refused owns nothing here
            return
        place = self.connect()
        try:
            self._sweep(place, keep=self._waiting)
        except OSError as error:
            _log.warning("%s: could not be cleaned: %s", place.full(STAGING), reason(error))

    def _sweep(self, place: Folder, keep: BatchId | None) -> None:
        """Delete what this run and earlier ones left, except the tries of the batch `keep`."""
        folder = f"{self._within}{STAGING}"
        left = []
        for entry in place.list(folder, recursive=True):
            found = _STAGED.match(entry.name[len(folder) + 1 :])
            if found is not None and int(found[2]) <= self._owner and int(found[1]) != keep:
                left.append(entry.name)
        place.delete_all(left)

    def _check_unused(self, place: Folder) -> None:
        """Refuse a folder with results: readers would take those of another run for this one's."""
        for folder in (self._within, *(f"{side}/" for side in SIDES)):
            there = [n for n in place.folders(folder.rstrip("/")) if n.startswith("batch=")]
            if there:
                raise results_there(place.full(self._within.rstrip("/")), folder + there[0])

    def _check_continued(self, place: Folder, newest: BatchId, results: Sequence[int]) -> None:
        """Refuse a folder that lacks the results of this checkpoint, or has some beyond it."""
        where, last = place.full(self._within.rstrip("/")), batch_folder(newest)
        there = [n for n in place.folders(self._within.rstrip("/")) if n.startswith("batch=")]
        beyond = [name for name in there if name > last]
        if beyond:
            raise results_beyond(where, last, beyond[0])
        staged = place.list(f"{self._within}{STAGING}", recursive=True)
        aside = [e.name for e in staged if f"{STAGING}/{last}." in e.name]
        sides = {n for side in SIDES for n in place.folders(side)}
        if not aside and not {batch_folder(batch) for batch in results} & {*there, *sides}:
            raise results_missing(where, last)
        known = aside or [e.name for n in there[-1:] for e in place.list(f"{self._within}{n}")]
        parts = [name for name in known if "part-" in name]
        if parts and not parts[0].endswith(f".{self.format}"):
            raise other_format(where, parts[0].rpartition(".")[2], self.format)

    def _check_published(self, parts: _Parts, contents: bool) -> None:
        """Log where the batch in place differs from what was committed; it stays as it is.

        Where the staged parts are still there too, the files in place are of another run: refused.
        """
        changed = parts.damaged(contents=False, published=True)
        if not changed:
            return
        if not parts.damaged(contents=contents, published=False):
            what, advice = "a file of other results", "Move its folder away, and run again."
            raise too_early(changed[0][0], what, advice)
        _log.warning(CHANGED, *changed[0])


class _Parts:
    """The parts of a committed batch: where each is before and after the batch is published.

    Lists each folder at most once, when it is first asked for. Used within one call of the sink.
    """

    def __init__(
        self, place: Folder, within: str, batch: BatchId, receipts: Sequence[Receipt]
    ) -> None:
        self._place = place
        self._receipts = receipts
        self._folder = f"{within}{batch_folder(batch)}"
        self._sides = {side: f"{side}/{batch_folder(batch)}" for side in SIDES}
        self._sizes: dict[str, int] = {}
        self._listed: set[str] = set()

    def published(self) -> bool:
        """Whether the first part is in its place; for a batch without rows, all side outputs."""
        rows = [r for r in self._receipts if side_folder(r) is None]
        last = rows[:1] or self._receipts
        return all(self._size(self._target(receipt)) is not None for receipt in last)

    def damaged(self, contents: bool, published: bool) -> list[tuple[str, str]]:
        """The parts that differ from their receipts, and how.

        Before the batch is published some parts may be in place already: a crash came between.
        """
        wrong = []
        for receipt in self._receipts:
            target, staged = self._target(receipt), str(receipt.more.get(FILE, ""))
            place = target if published or self._size(staged) is None else staged
            what = self._damage(place, receipt, contents)
            if what is not None:
                wrong.append((self._place.full(staged if not published else target), what))
        return wrong

    def seen(self) -> Iterator[SeenPart]:
        """Read all parts in their places."""
        for receipt in self._receipts:
            path = self._place.full(self._target(receipt))
            wrong = self._damage(self._target(receipt), receipt, contents=True)
            yield SeenPart(path, path.rpartition("/")[0], wrong)

    def moves(self) -> list[tuple[str, str]]:
        """The moves that are left to do: sides first, and the first part last."""
        rows = [r for r in self._receipts if side_folder(r) is None]
        sides = [r for r in self._receipts if side_folder(r) is not None]
        pairs = [(str(r.more[FILE]), self._target(r)) for r in (*sides, *reversed(rows))]
        return [pair for pair in pairs if self._size(pair[0]) is not None]

    def unnamed(self) -> list[str]:
        """Files in the folder of the batch that no receipt names: an earlier try left them."""
        named = {self._target(receipt) for receipt in self._receipts}
        there = [name for name in self._sizes if name.startswith(f"{self._folder}/")]
        return [name for name in there if name not in named]

    def _damage(self, name: str, receipt: Receipt, contents: bool) -> str | None:
        def checksum() -> int:
            return zlib.crc32(self._place.read(name))

        return receipt.mismatch(self._size(name), checksum if contents else None)

    def _target(self, receipt: Receipt) -> str:
        side = side_folder(receipt)
        folder = self._folder if side is None else self._sides[side]
        return f"{folder}/{os.path.basename(receipt.name)}"

    def _size(self, name: str) -> int | None:
        folder = os.path.dirname(name)
        if folder and folder not in self._listed:
            self._listed.add(folder)
            self._sizes |= {entry.name: entry.bytes for entry in self._place.list(folder)}
        return self._sizes.get(name)


def _unwritten(where: str, error: OSError | pa.ArrowException) -> SinkError:
    advice = remedy(error) if isinstance(error, OSError) else "See the rows that it names."
    return SinkError(
        where,
        "the batch must be written before it is committed",
        reason(error),
        f"Nothing of it was committed. {advice}",
    )
