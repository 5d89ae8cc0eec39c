"""The gate of a running query: sources go in; cuts of batches and frontiers come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from tidegate.batch import MAX_US, MIN_US
from tidegate.connector import Connector
from tidegate.errors import GateError, near
from tidegate.gate.ahead import CutAhead, GateMarks
from tidegate.gate.answer_time import AnsweredTuples
from tidegate.gate.arrivals import Arrivals
from tidegate.gate.backlog import Backlog, backlog_of
from tidegate.gate.cut import Cut, SourceCut, cut
from tidegate.gate.entry import CONSUMED
from tidegate.gate.extent import Extent, Holder, extent_of, holder_of
from tidegate.gate.frontier import SourceFeed, check_promise, frontier
from tidegate.gate.inlet import Absent, Inlet, tracks_in_order
from tidegate.gate.rewind import Goal
from tidegate.gate.track import Track
from tidegate.state.name import owned
from tidegate.state.store import Store


class Intake:
    """All sources of one query. A cut costs O(rows taken); the driver's loop owns the object.

    Grows with the open sources and, by a few numbers each, with unread files of folders; not with
    what was consumed. With `hold`, tuples wait until they are ready, for operators that need the
    total order; other operators fold tuples as they arrive. With `measured`, the arrival times of
    live sources' tuples are kept until a batch has answered these.
    """

    def __init__(self, hold: bool, measured: bool = True) -> None:
        self.hold = hold
        self._measured = measured
        self.frontier_us = MIN_US
        self.inlets: list[Inlet] = []
        self._arrivals = Arrivals(hold)
        self._marked: GateMarks | None = None
        """Where the gate stood before the newest cut, until that cut cannot be undone any more."""
        self._ahead: CutAhead[Cut] | None = None
        """The cut after the newest one, if it was made ahead."""

    def add(
        self,
        stream: int,
        connector: Connector,
        disorder_us: int,
        idle_us: int | None = None,
        promised_us: int = MIN_US,
        now: float = 0.0,
        uri: str | None = None,
    ) -> Inlet:
        """Let in the sources with which a query starts; a promise below the frontier is refused.

        A URI that joined an earlier run goes on where that run left it.
        """
        joined = [(i.stream, i.uri) for i in self.joined_before() if i.uri is not None]
        if (stream, uri) in joined:
            return self.join(stream, connector, disorder_us, idle_us, promised_us, now, uri)
        self._check_promise(f"stream {stream}", promised_us)
        first = [i.place for i in self.inlets if i.place >= 0]
        inlet = Inlet(len(first), stream, connector, disorder_us, idle_us, uri, spoke_at=now)
        inlet.live = self._is_live(connector)
        self.inlets.insert(len(first), inlet)
        self._arrivals.let_in(inlet, promised_us)
        self._arrivals.drop_forgotten(inlet)
        return inlet

    def join(
        self,
        stream: int,
        connector: Connector,
        disorder_us: int,
        idle_us: int | None = None,
        promised_us: int | None = None,
        now: float = 0.0,
        uri: str | None = None,
    ) -> Inlet:
        """Let a connector's sources join a running query; they promise the frontier by default.

        What joined an earlier run goes on where that run left it; it is found by its URI or,
        without one, by the id of a source. What is here already stays as it is.
        """
        there = self._joined(stream, connector, uri)
        if there is not None and not isinstance(there.connector, Absent):
            if there.removed:
                raise GateError(
                    uri or ", ".join(there.tracks),
                    "has left this query",
                    "an announcement of it",
                    "Announce its further rows as a source of another name.",
                )
            return there
        promise = self.frontier_us if promised_us is None else promised_us
        if there is None:
            self._check_promise(uri or ", ".join(s.id for s in connector.discover()), promise)
            place = min((i.place for i in self.inlets), default=0)
            there = Inlet(min(place, 0) - 1, stream, connector, disorder_us, idle_us, uri)
            self.inlets.append(there)
        there.connector, there.spoke_at = connector, now
        there.disorder_us, there.idle_us = disorder_us, idle_us
        there.live = self._is_live(connector)
        self._arrivals.let_in(there, promise)
        return there

    def restore(
        self, frontier_us: int, saved: Sequence[Mapping[str, Any]], store: Store | None = None
    ) -> None:
        """Continue from a manifest; call it before `add`.

        What had joined holds the frontier until it is here again, see `joined_before`.
        """
        self.frontier_us = frontier_us
        self.inlets = self._arrivals.restore(saved, store)

    def end_at(self, goal: Goal) -> None:
        """From now on no cut takes a tuple that the goal does not have, or passes its frontier.

        Call it before sources are let in. The cut that reaches the goal is one of `cut_again`.
        """
        self._arrivals.end = goal

    def joined_before(self) -> list[Inlet]:
        """The inlets that joined an earlier run and are not back: open them by URI, or wait."""
        return [i for i in self.inlets if isinstance(i.connector, Absent)]

    def discover(self, now: float) -> None:
        """Let in new sources of followed folders."""
        for inlet in self.inlets:
            if inlet.connector.live() and self._arrivals.let_in(inlet):
                inlet.spoke_at = now

    def remove(self, source_id: str) -> None:
        """Let a source leave: what it has brought is flushed, and nothing more is read."""
        known = {s: None for inlet in self.inlets for s in self._arrivals.ids(inlet)}
        if source_id not in known:
            raise GateError(
                f"source {source_id}", "must be known", "no such source", near(source_id, known)
            )
        for inlet in self.inlets:
            self._remove(inlet, source_id)

    def look_ahead(self, limit_rows: int) -> None:
        """Read the event times that the next cut will need; moves no position."""
        self._cut(limit_rows)

    def next_cut(self, limit_rows: int, now: float) -> Cut | None:
        """The next batch of at most `limit_rows` new tuples; None if nothing would change.

        Moves positions and the frontier; `undo` takes that back.
        """
        for inlet in self.inlets:
            inlet.listen(now)
        counts = self._cut(limit_rows)
        self._marked = GateMarks.of(self.inlets, self.frontier_us)
        parts = self._taken(counts)
        previous, reached = self.frontier_us, frontier(self.frontier_us, self._feeds(now))
        reached = min(reached, self._arrivals.end_us)
        rows_taken = sum(counts.values())
        exhausted = reached == MAX_US
        # Also a cut without rows is a batch if the frontier has moved: windows may close.
        if not rows_taken and reached == previous and not exhausted:
            return None
        completed = self._release(parts, reached)
        newest = self._arrivals.newest_us(self.inlets)
        return Cut(tuple(parts), rows_taken, previous, reached, exhausted, completed, newest)

    def undo(self) -> None:
        """Undo the newest cut, unless it was saved; the next one may be smaller."""
        self.drop_ahead()
        if self._marked is not None:
            self.frontier_us = self._marked.go_back()
        self._marked = None

    def cut_ahead(self, limit_rows: int, now: float) -> Cut | None:
        """Cut the batch after the newest one while that one runs; `take_ahead` makes it the newest.

        None, and nothing changes, if the batch would not be full: cut in its turn it gets all that
        has arrived by then. Until it is taken, ask about the newest batch within `before_ahead`.
        """
        newest = self._marked
        try:
            cut = self.next_cut(limit_rows, now)
            if cut is not None and (cut.exhausted or cut.rows >= limit_rows):
                assert self._marked is not None, "a cut says where it began"
                after = GateMarks.of(self.inlets, self.frontier_us)
                self._ahead = CutAhead(cut, limit_rows, self._marked, after)
        finally:
            before, self._marked = self._marked, newest
            if self._ahead is None and before is not None and before is not newest:
                self.frontier_us = before.go_back()
        return None if self._ahead is None else self._ahead.cut

    def take_ahead(self, limit_rows: int) -> Cut | None:
        """The cut that was made ahead; None if there is none, or if it had another limit."""
        ahead = self._ahead
        if ahead is None or ahead.limit_rows != limit_rows:
            self.drop_ahead()
            return None
        self._ahead, self._marked = None, ahead.before
        return ahead.cut

    def drop_ahead(self) -> None:
        """Undo the cut that was made ahead, if there is one."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            self.frontier_us = ahead.before.go_back()

    @contextmanager
    def before_ahead(self) -> Iterator[None]:
        """Put the gate where the newest batch ended, for the block, whatever was cut ahead."""
        ahead = self._ahead
        if ahead is None:
            yield
            return
        self.frontier_us = ahead.before.go_back()
        try:
            yield
        finally:
            self.frontier_us = ahead.after.go_back()

    def cut_again(self, goal: Goal, awaits: bool = True) -> Cut | None:
        """Cut the batch that ended at a goal again; None while its input may still come back.

        A run that `awaits` nothing takes what is there. The gate must have been restored with
        `again.rewound`. A GateError if the input has changed.
        """
        counts: dict[Track, int] = {}
        for track in (t for i in self.inlets for t in i.tracks.values()):
            track.end = None
        for inlet in self.inlets:
            if inlet.folder is not None:
                for track in inlet.folder.take_all(partial(goal.reads, inlet.place)):
                    inlet.open(track)
            counts |= {t: goal.take(inlet.place, t) for t in inlet.tracks.values()}
        rows_taken = sum(counts.values())
        awaited = awaits and any(i.connector.live() for i in self.inlets)
        if rows_taken < goal.rows and awaited:
            return None
        parts = self._taken(counts)
        rows = rows_taken - sum(p.slice.absent_rows for p in parts)
        if rows != goal.rows or not all(
            goal.is_met(i.place, t) for i in self.inlets for t in i.tracks.values()
        ):
            raise GateError(
                "the input of a batch that has to run again",
                f"must be the {goal.rows} rows that it was",
                f"{rows} rows" if rows != goal.rows else "other rows",
                "Put the input back as it was.",
            )
        for (place, id_), entry in goal.entries.items():
            if entry["removed"]:
                self._remove(next(i for i in self.inlets if i.place == place), id_)
        previous = self.frontier_us
        completed = self._release(parts, goal.frontier_us)
        end, newest = (goal.frontier_us, goal.finished), self._arrivals.newest_us(self.inlets)
        return Cut(tuple(parts), rows_taken, previous, *end, completed, newest)

    def answered(self) -> None:
        """Let sources drop what they hold of tuples that were answered; call it after a commit."""
        for inlet in self.inlets:
            for track in inlet.tracks.values():
                track.source.answered(track.waiting_from)

    def backlog(self) -> Backlog | None:
        """What has arrived and was not taken; None if no source is live."""
        return backlog_of(self.inlets)

    def standing(self) -> tuple[Extent | None, Holder | None]:
        """How much of the input is read, and the source that holds the frontier back."""
        return extent_of(self.inlets), holder_of(self.inlets)

    def saved(self) -> tuple[Mapping[str, Any], ...]:
        """The manifest's entries for all sources, also for those whose files are gone.

        A folder has an entry for each source that is being read, and one for all others. Refuses
        sources that turn out to have been read too far. The newest cut cannot be undone after it.
        """
        self._fold()
        entries = self._arrivals.entries()
        for inlet in self.inlets:
            of: dict[str, Any] = {"inlet": inlet.place, "stream": inlet.stream}
            if inlet.place < 0:
                of["uri"] = inlet.uri
            tracks = tracks_in_order(inlet)
            for track in tracks:
                track.confirm()
            if inlet.folder is not None:
                inlet.folder.confirm()
                tracks = [t for t in tracks if t.position or t.removed]
                unread = inlet.unread() + len(inlet.tracks) - len(tracks)
                entries[inlet.place, CONSUMED] = {**of, **inlet.folder.saved(unread)}
            elif inlet.forgotten_us > MIN_US:
                entries[inlet.place, CONSUMED] = {
                    **of,
                    "id": CONSUMED,
                    "order": self._arrivals.next_order(inlet.stream) - 1,
                    "floor_us": inlet.forgotten_us,
                    "ended": True,
                    "removed": False,
                }
            for track in tracks:
                entries[inlet.place, track.source.id] = {**of, **track.saved()}
        return tuple(entries.values())

    def write_names(self, store: Store, batch: int, writes: bool = True) -> tuple[str, ...]:
        """Move names of files out of the manifest of a batch if there are many.

        Returns the files of the store that names are in. Call it before `saved`. Most batches write
        nothing; without `writes` none does.
        """
        self._fold()
        files = []
        for inlet in self.inlets:
            if inlet.folder is not None:
                if writes:
                    name = f"gate/names-{inlet.place}-{owned(batch, store.owner)}.arrow"
                    inlet.folder.write_names(store, name)
                files += inlet.folder.names.files
        return tuple(files)

    def forget(self) -> None:
        """Drop consumed sources that will never come again; call it after a commit.

        That is so where the connector delivers each source once. The manifest then keeps only their
        newest event time, however many there were.
        """
        for inlet in self.inlets:
            inlet.connector.committed({id_: t.position for id_, t in inlet.tracks.items()})
            if not inlet.connector.once:
                continue
            done = [t for t in inlet.tracks.values() if t.consumed()]
            for track in done:
                inlet.forgotten_us = max(inlet.forgotten_us, track.floor_us)
                del inlet.tracks[track.source.id]
                self._arrivals.forget(inlet, track.source.id)
            if done:
                inlet.connector.forget([t.source.id for t in done])

    def new_sources(self) -> list[str]:
        """The sources that have something to read now, by inlet, then by name."""
        found: list[str] = []
        for inlet in self.inlets:
            unread = inlet.folder.ids() if inlet.folder is not None else []
            tracks = [t for t in inlet.tracks.values() if not t.removed and t.has_rows()]
            found += sorted([*unread, *(t.source.id for t in tracks)])
        return found

    def check_complete(self) -> None:
        """Refuse to go on without a source that was not read to its end, or whose tuples wait."""
        self._arrivals.check_complete(self.inlets)

    def _is_live(self, connector: Connector) -> bool:
        return self._measured and connector.arrives

    def _check_promise(self, where: str, promised_us: int) -> None:
        if promised_us != MIN_US:
            check_promise(where, promised_us, self.frontier_us)

    def _fold(self) -> None:
        """Close consumed files. Only when the batch is about to be committed: there is no undo."""
        self._marked = None
        for inlet in self.inlets:
            inlet.fold()

    def _taken(self, counts: Mapping[Track, int]) -> list[SourceCut]:
        """Move the reading positions; also gives the parts of sources with waiting tuples only."""
        return [
            SourceCut(inlet.stream, track, track.take(counts.get(track, 0), self.frontier_us))
            for inlet in self.inlets
            for track in tracks_in_order(inlet)
            if counts.get(track, 0) or (self.hold and track.waiting_from < track.position)
        ]

    def _release(self, parts: list[SourceCut], frontier_us: int) -> tuple[AnsweredTuples, ...]:
        """Move the frontier, forget what the batch consumes, and sort its parts.

        Returns the tuples that the batch is the first to answer.
        """
        every = [p.track.completed(p.slice, self.frontier_us, frontier_us) for p in parts]
        self.frontier_us = frontier_us
        for part in parts:
            part.track.release(part.slice, frontier_us)
        parts.sort(key=lambda p: (p.stream, p.track.order))
        return tuple(one for one in every if one is not None)

    def _remove(self, inlet: Inlet, source_id: str) -> None:
        if inlet.folder is not None and (unread := inlet.folder.take(source_id)) is not None:
            inlet.open(unread)
        if source_id in inlet.tracks:
            inlet.tracks[source_id].removed = True
        elif isinstance(inlet.connector, Absent) and source_id in self._arrivals.ids(inlet):
            self._arrivals.remove_absent(inlet, source_id)

    def _joined(self, stream: int, connector: Connector, uri: str | None) -> Inlet | None:
        """The inlet of this connector, in this run or in an earlier one; None for a new one."""
        here = [i for i in self.inlets if i.stream == stream]
        for inlet in here:
            if inlet.connector is connector or (uri is not None and inlet.uri == uri):
                return inlet
        if uri is not None:
            return None
        ids = [s.id for s in connector.discover()]
        awaited = [i for i in here if isinstance(i.connector, Absent) and i.uri is None]
        return next((i for i in awaited if any(n in self._arrivals.ids(i) for n in ids)), None)

    def _cut(self, limit_rows: int) -> dict[Track, int]:
        """The number of rows of the next batch by track; opens the sources that it reaches."""
        tracks = [t for i in self.inlets for t in i.tracks.values() if not t.exhausted()]
        return dict(cut(tracks, limit_rows, [i for i in self.inlets if i.unread()]))

    def _feeds(self, now: float) -> list[SourceFeed]:
        """The feed of every inlet for the frontier.

        Where open sources hold the frontier, unread ones that begin later need not be opened.
        """
        idle = [inlet.is_idle(now) for inlet in self.inlets]
        holding = [i for i, is_idle in zip(self.inlets, idle, strict=True) if not is_idle]
        below_us = min((i.open_reach_us() for i in holding), default=MAX_US)
        if below_us <= self.frontier_us:
            below_us = MIN_US
        return [
            inlet.feed(is_idle, MAX_US if is_idle else below_us)
            for inlet, is_idle in zip(self.inlets, idle, strict=True)
        ]
