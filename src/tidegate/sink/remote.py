"""Writes results as files of an object store or another file system.

::

    _staging/batch=NNNNNNNN.OOOOOOOO-A/TRY-part-00000.parquet   parts until they are published
    batch=NNNNNNNN/part-00000.parquet                           what readers see, as in a folder

O is the number of the run (its owner), A counts how often it has begun a batch, and every write has
a TRY of its own. So nobody writes over what another has written, and receipts name what counts: no
folder has to be sealed before the commit. Object stores cannot rename: after the commit the parts
are copied by the server to their names, then deleted where they were. The first part comes last,
so a batch is whole when it has its `part-00000`.
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
from tidegate.sink.batch_ledger import LEDGER, NO_FILE, SeenPart, ledger_name, ledger_text
from tidegate.sink.form import PARAMETERS, REFUSE, WRITERS, Form
from tidegate.sink.part import SIDES, part_name
from tidegate.sink.protocol import Opening
from tidegate.sink.receipt import Part, Receipt
from tidegate.sink.refusal import (
    CHANGED,
    other_format,
    part_lost,
    results_beyond,
    results_missing,
    results_there,
    too_early,
)
from tidegate.sink.staging import FILE, STAGING
from tidegate.sink.verify import VerifiedParts
from tidegate.whole_file import FileWriter

_log = logging.getLogger(__name__)
_STAGED = re.compile(r"batch=(\d+)\.(\d+)-\d+")
_OUTPUT = "output"
"""What the URI in a manifest has as a parameter beside those of its file system."""


@dataclass(frozen=True)
class RemotePartWriter:
    """Puts the parts of one batch aside; picklable, and connects where it is used.

    A part costs one request, or some where it is large.
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
    """A folder elsewhere; read in the order of their names its files are the output sequence.

    Side outputs are in `_late` and `_rejected` beside the batches. An output with a name has a
    folder of its name for all but the side outputs.
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
        self._owner = 0
        self._tries = 0
        self._used = False
        """Whether something was written or published since it was opened."""
        self._swept = False
        self._new = False
        """Whether nothing was committed when it was opened, and nothing was begun since."""
        self._begun: BatchId | None = None
        """The batch that this run is writing, or has written last."""
        self._waiting: BatchId | None = None
        """The batch that is committed, or about to be, and not published."""
        self._connected: tuple[str, Folder] | None = None

    def __repr__(self) -> str:
        return f"RemoteSink({shown(self._given)!r}, format={self.format!r})"

    @staticmethod
    def at(address: Address, output: str | None) -> RemoteSink:
        """The sink of a folder elsewhere; parameters that are not of files are the store's."""
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
        """The sink that had this `uri`."""
        parts = urlsplit(uri)
        given = parse_qsl(parts.query, keep_blank_values=True)
        query = urlencode([(name, value) for name, value in given if name != _OUTPUT])
        return RemoteSink(urlunsplit(parts._replace(query=query)), output=dict(given).get(_OUTPUT))

    def connect(self) -> Folder:
        """The folder; an OptionError where the URI says something wrong. Writes nothing."""
        if self._connected is None:
            uri = with_region(self._given) if is_object_uri(self._given) else self._given
            self._connected = uri, folder_of(uri)
        return self._connected[1]

    @property
    def uri(self) -> str:
        """Where the parts of a batch can be found by who only has its manifest; see `verify`."""
        uri = without_keys(self._given)
        if self._output is None:
            return uri
        return f"{uri}{'&' if '?' in uri else '?'}{urlencode({_OUTPUT: self._output})}"

    def verify(self, batch: BatchId, receipts: Sequence[Receipt]) -> VerifiedParts:
        """Read the parts of a committed batch where they are, and compare them; changes nothing."""
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

    def part(self, name: str) -> pa.NativeFile:
        """A published file by its name below the folder, read whole."""
        return pa.BufferReader(self.connect().read(self._within + name))

    def seen(self, batch: BatchId, receipts: Sequence[Receipt]) -> Iterator[SeenPart]:
        yield from _Parts(self.connect(), self._within, batch, receipts).seen()

    def open(self, opening: Opening) -> None:
        self._used, self._swept, self._begun = False, False, None
        self._new = opening.newest is None
        self._waiting = opening.newest if opening.newest in opening.results else None
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
        self._used = bool(opening.results)  # what earlier runs have left here is of this checkpoint

    def begin(self, batch: BatchId) -> RemotePartWriter:
        place = self.connect()
        assert self._connected is not None
        self._used = True
        try:
            if self._new:  # ledgers of results that are gone
                ledgers = place.list(f"{self._within}{LEDGER}")
                place.delete_all([entry.name for entry in ledgers])
            if not self._swept or self._begun == batch:  # of runs before, or of a try that failed
                self._sweep(place, keep=self._waiting)
        except OSError as error:
            raise _unwritten(place.full(self._within + STAGING), error) from error
        self._swept, self._begun, self._new = True, batch, False
        self._tries += 1
        name = f"{_folder(batch)}.{self._owner:08d}-{self._tries}"
        folder = f"{self._within}{STAGING}/{name}"
        return RemotePartWriter(self._connected[0], folder, self.form)

    def prepare(self, batch: BatchId, receipts: Sequence[Receipt]) -> Sequence[Receipt]:
        """Nothing to make durable: what was put is. From here on it may be committed."""
        self._waiting = batch
        return receipts

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        """Move the side outputs into place, then the parts, and the first one last.

        A batch that has its first part is published and stays as it is, whatever it is. What
        another process has written is read and compared with its checksum before that.
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
                place.delete_all(parts.unnamed())
                place.put(self._within + ledger_name(batch), ledger_text(batch, receipts))
                place.move(parts.moves())
            self._waiting = None
            if not own:
                self._sweep(place, keep=None)
        except OSError as error:
            raise SinkError(
                place.full(f"{self._within}{_folder(batch)}"),
                "a committed batch must be moved into place",
                reason(error),
                f"{remedy(error)} Then run again: the batch is kept in {STAGING}.",
            ) from error

    def close(self) -> None:
        if not self._used:  # the run was refused, and nothing here is its own
            return
        place = self.connect()
        try:
            self._sweep(place, keep=self._waiting)
        except OSError as error:
            _log.warning("%s: could not be cleaned: %s", place.full(STAGING), reason(error))

    def _sweep(self, place: Folder, keep: BatchId | None) -> None:
        """Delete what this run and those before it have left, but for tries of a batch to keep."""
        folder = f"{self._within}{STAGING}"
        left = []
        for entry in place.list(folder, recursive=True):
            found = _STAGED.match(entry.name[len(folder) + 1 :])
            if found is not None and int(found[2]) <= self._owner and int(found[1]) != keep:
                left.append(entry.name)
        place.delete_all(left)

    def _check_unused(self, place: Folder) -> None:
        """A new run begins in a folder without results, so that none of another are read as its."""
        for folder in (self._within, *(f"{side}/" for side in SIDES)):
            there = [n for n in place.folders(folder.rstrip("/")) if n.startswith("batch=")]
            if there:
                raise results_there(place.full(self._within.rstrip("/")), folder + there[0])

    def _check_continued(self, place: Folder, newest: BatchId, results: Sequence[int]) -> None:
        """A run continues in the folder that has its results: none beyond the newest."""
        where, last = place.full(self._within.rstrip("/")), _folder(newest)
        there = [n for n in place.folders(self._within.rstrip("/")) if n.startswith("batch=")]
        beyond = [name for name in there if name > last]
        if beyond:
            raise results_beyond(where, last, beyond[0])
        staged = place.list(f"{self._within}{STAGING}", recursive=True)
        aside = [e.name for e in staged if f"{STAGING}/{last}." in e.name]
        sides = {n for side in SIDES for n in place.folders(side)}
        if not aside and not {_folder(batch) for batch in results} & {*there, *sides}:
            raise results_missing(where, last)
        known = aside or [e.name for n in there[-1:] for e in place.list(f"{self._within}{n}")]
        parts = [name for name in known if "part-" in name]
        if parts and not parts[0].endswith(f".{self.format}"):
            raise other_format(where, parts[0].rpartition(".")[2], self.format)

    def _check_published(self, parts: _Parts, contents: bool) -> None:
        """What is in place belongs to its readers; say so where it is not what was committed."""
        changed = parts.damaged(contents=False, published=True)
        if not changed:
            return
        if not parts.damaged(contents=contents, published=False):
            what, advice = "a file of other results", "Move its folder away, and run again."
            raise too_early(changed[0][0], what, advice)
        _log.warning(CHANGED, *changed[0])


class _Parts:
    """The parts of a batch that is committed: where each is until it is published, and then.

    What is there is listed once, and when it is asked for.
    """

    def __init__(
        self, place: Folder, within: str, batch: BatchId, receipts: Sequence[Receipt]
    ) -> None:
        self._place = place
        self._receipts = receipts
        self._folder = f"{within}{_folder(batch)}"
        self._sides = {side: f"{side}/{_folder(batch)}" for side in SIDES}
        self._sizes: dict[str, int] = {}
        self._listed: set[str] = set()

    def published(self) -> bool:
        """Whether the first part is where it belongs; without rows, all side outputs."""
        rows = [r for r in self._receipts if self._side(r) is None]
        last = rows[:1] or self._receipts
        return all(self._size(self._target(receipt)) is not None for receipt in last)

    def damaged(self, contents: bool, published: bool) -> list[tuple[str, str]]:
        """Which parts are not as their receipts say, and what is wrong with them.

        Before the batch is published a part may be in its place already.
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
        """All parts where they are published, read."""
        for receipt in self._receipts:
            path = self._place.full(self._target(receipt))
            wrong = self._damage(self._target(receipt), receipt, contents=True)
            yield SeenPart(path, path.rpartition("/")[0], wrong)

    def moves(self) -> list[tuple[str, str]]:
        """What is still to be moved: sides first, and the first part last."""
        rows = [r for r in self._receipts if self._side(r) is None]
        sides = [r for r in self._receipts if self._side(r) is not None]
        pairs = [(str(r.more[FILE]), self._target(r)) for r in (*sides, *reversed(rows))]
        return [pair for pair in pairs if self._size(pair[0]) is not None]

    def unnamed(self) -> list[str]:
        """What is in the place of the batch and not of it: of a try before, cut otherwise."""
        named = {self._target(receipt) for receipt in self._receipts}
        there = [name for name in self._sizes if name.startswith(f"{self._folder}/")]
        return [name for name in there if name not in named]

    def _damage(self, name: str, receipt: Receipt, contents: bool) -> str | None:
        size = self._size(name)
        if size is None:
            return NO_FILE
        if size != receipt.bytes:
            return f"{size} bytes, where {receipt.bytes} were written"
        if contents and zlib.crc32(self._place.read(name)) != receipt.checksum:
            return "other bytes than were written"
        return None

    def _target(self, receipt: Receipt) -> str:
        side = self._side(receipt)
        folder = self._folder if side is None else self._sides[side]
        return f"{folder}/{os.path.basename(receipt.name)}"

    @staticmethod
    def _side(receipt: Receipt) -> str | None:
        side = os.path.dirname(receipt.name)
        return side if side in SIDES else None

    def _size(self, name: str) -> int | None:
        folder = os.path.dirname(name)
        if folder and folder not in self._listed:
            self._listed.add(folder)
            self._sizes |= {entry.name: entry.bytes for entry in self._place.list(folder)}
        return self._sizes.get(name)


def _folder(batch: int) -> str:
    return f"batch={batch:08d}"


def _unwritten(where: str, error: OSError | pa.ArrowException) -> SinkError:
    advice = remedy(error) if isinstance(error, OSError) else "See the rows that it names."
    return SinkError(
        where,
        "the batch must be written before it is committed",
        reason(error),
        f"Nothing of it was committed. {advice}",
    )
