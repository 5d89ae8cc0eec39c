"""Describes what a checkpoint holds, for `tidegate state DIR`.

Reading only: nothing is created, cleaned or repaired. A damaged manifest is a StateError here as
it is in a run; damaged segments are listed when `verify` asks for it.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tidegate.batch import MAX_US, MIN_US
from tidegate.calendar.microsecond import moment, time_text
from tidegate.errors import CheckpointError, StateError
from tidegate.remote.folder import Entry
from tidegate.state.archive.archive import archived
from tidegate.state.archive.past import PastStates, batches_text
from tidegate.state.bucket_set import BucketSet
from tidegate.state.epoch import counted, epoch_text
from tidegate.state.epoch_log import logged
from tidegate.state.manifest import Manifest
from tidegate.state.segment.segment import Segment, verify_segment
from tidegate.state.store import Store

FindParts = Callable[[str, int, Sequence[Mapping[str, Any]]], Any]
"""Finds parts from the place of an output, the batch and the receipts: `sink.verify.found`."""

FindPast = Callable[..., Any]
"""Checks the published batches at the place of an output: `sink.verify.past`."""

_ELSEWHERE = (
    "Only results in folders, and on object stores, are read again; those in topics, databases, "
    "tables of lakehouses or functions are not. docs/operations.md says how to ask there which "
    "batch was written last."
)


def inspect(
    store: Store,
    verify: bool = False,
    find_parts: FindParts | None = None,
    find_past: FindPast | None = None,
    at_us: int | None = None,
) -> dict[str, Any]:
    """The checkpoint as plain data (JSON values); no checkpoint there is a CheckpointError.

    With `at_us` it is the state after the newest batch whose frontier is at most that event time; a
    CheckpointError if none is kept. `earlier` describes the states kept beside the newest two.
    `epochs` has the epochs in the manifest, and `epochs_logged` is the number of earlier ones,
    which are in files.

    With `verify` all segments of the newest two manifests are read and checked, and the history of
    mappings. `verified` has the number of segments, their bytes, and a message for each damaged
    file. The parts of the newest batch are checked too: those in the checkpoint, and those at the
    places of outputs where `find_parts` can look. `outputs` has for each output whether it was
    `looked_at` (topics, databases and lakehouse tables are not), `checked` and `published`, and its
    parts, bytes and problems. Changes after publishing are no `problems` of the checkpoint. With
    `find_past` it has all published batches as `past`, because the checkpoint does not know them.
    """
    meta = store.meta()
    if meta is None:
        raise CheckpointError(
            store.location,
            "must be a Tidegate checkpoint",
            "a folder without meta.json" if store.files.is_folder() else "no such folder",
            "Give the folder that a run had as --checkpoint.",
        )
    kept = store.kept() if at_us is None else [PastStates(store).newest_until(at_us)]
    listed = store.listed()
    spare = store.unreferenced(kept, listed) if at_us is None else []
    newest = kept[-1] if kept else None
    query = (newest.query if newest is not None else None) or meta.get("query")
    return {
        "location": store.location,
        "past": at_us is not None,
        "meta": {name: value for name, value in meta.items() if name != "query"},
        "query": query,
        "query_changes": [] if newest is None else [dict(change) for change in newest.changes],
        "state": _state(kept[-1]) if kept and kept[-1].batch >= 0 else None,
        "manifests": [manifest.batch for manifest in kept if manifest.batch >= 0],
        "earlier": _earlier(store, kept, listed) if at_us is None else None,
        "owner": {"number": kept[-1].owner, **kept[-1].holder} if kept else None,
        "unreferenced": [{"name": entry.name, "bytes": entry.bytes} for entry in spare],
        "verified": _verify(store, kept, find_parts, find_past) if verify else None,
    }


def is_damaged(facts: Mapping[str, Any]) -> bool:
    """Whether anything that was verified differs from what was written, is missing or was added."""
    verified = facts["verified"] or {"problems": (), "outputs": {}}
    past = [of["past"] for of in verified["outputs"].values() if of["past"] is not None]
    return any((verified["problems"], *(found["problems"] for found in past)))


def describe(store: Store, verify: bool = False, find_parts: FindParts | None = None) -> str:
    """What `inspect` finds, as text for a terminal, one fact per line."""
    return facts_text(inspect(store, verify, find_parts))


def facts_text(facts: Mapping[str, Any]) -> str:
    """The result of `inspect` as text."""
    lines = [f"checkpoint {facts['location']}", *_pairs(facts["meta"])]
    lines += _query_lines(facts["query"], facts["query_changes"])
    if facts["state"] is None:
        lines.append("no batch is committed yet")
    else:
        lines += _state_lines(facts["state"])
    if facts["owner"] is not None:
        lines.append("last used by run " + ", ".join(_used(facts["owner"])))
    if facts["earlier"] is not None:
        of = facts["earlier"]
        batches, size = of["batches"] or "none yet", size_text(of["bytes"])
        lines.append(
            f"states of earlier batches: {batches}; {counted(of['files'], 'file')}, {size}"
        )
    if not facts["past"]:
        lines += _spare_lines(facts["unreferenced"])
    if facts["verified"] is not None:
        lines += _verified_lines(facts["verified"])
    return "\n".join(lines)


def frontier_text(frontier_us: int) -> str:
    """A frontier as UTC time; -inf before every source has spoken, +inf after all have ended."""
    if frontier_us == MIN_US:
        return "-inf"
    if frontier_us == MAX_US:
        return "+inf"
    try:
        time = moment(frontier_us)
    except OverflowError:  # beyond the years a datetime has
        return f"{frontier_us} us"
    return time.isoformat(sep=" ").replace("+00:00", " UTC")


def _state(manifest: Manifest) -> dict[str, Any]:
    return {
        "batch": manifest.batch,
        "finished": manifest.finished,
        "committed": time_text(manifest.at_us) if manifest.at_us else None,
        "frontier": frontier_text(manifest.frontier_us),
        "frontier_us": manifest.frontier_us,
        "buckets": manifest.buckets,
        "subqueries": {name: _mapping(of) for name, of in manifest.mappings.items()},
        "sources": [dict(source) for source in manifest.sources],
        "operators": {n: _operator(s) for n, s in sorted(manifest.operators.items())},
        "counters": dict(manifest.counters),
        "policy": dict(manifest.policy),
        "epochs": [dict(epoch) for epoch in manifest.epochs],
        "epochs_logged": manifest.epochs_logged,
        "files": list(manifest.files),
        "tables": {name: [dict(v) for v in of] for name, of in manifest.tables.items()},
    }


def _earlier(
    store: Store, kept: Sequence[Manifest], listed: Sequence[Entry]
) -> dict[str, Any] | None:
    """The states that are kept beside the newest two, and the files that they alone need."""
    if not kept or not kept[-1].at_us:
        return None
    needed = archived(store, kept, listed)[1].difference(*(m.names() for m in kept))
    batches = [b for b in PastStates(store).batches if b < kept[0].batch]
    sizes = [entry.bytes for entry in listed if entry.name in needed]
    return {"batches": batches_text(batches), "files": len(sizes), "bytes": sum(sizes)}


def _mapping(of: Mapping[str, Any]) -> dict[str, Any]:
    owned = Counter(of["owners"])
    return {
        "epoch": of["epoch"],
        "instances": of["instances"],
        "mapping": {str(i): owned[i] for i in range(of["instances"])},
    }


def _operator(segments: Sequence[Segment]) -> dict[str, Any]:
    live = BucketSet.union(segment.buckets for segment in segments)
    return {
        "segments": len(segments),
        "rows": sum(segment.rows for segment in segments),
        "bytes": sum(segment.bytes for segment in segments),
        "buckets": len(live),
    }


def _verify(
    store: Store,
    kept: Sequence[Manifest],
    find_parts: FindParts | None,
    find_past: FindPast | None,
) -> dict[str, Any]:
    segments = {segment: None for manifest in kept for segment in manifest.segments()}
    checks: list[Callable[[], object]] = [partial(verify_segment, store, s) for s in segments]
    checks += [partial(_history, store, manifest) for manifest in kept[-1:]]
    problems = []
    for check in checks:
        try:
            check()
        except StateError as error:
            problems.append(str(error))
    size = sum(segment.bytes for segment in segments)
    outputs = {
        name: _output(store, newest, name, receipts, find_parts)
        for newest in kept[-1:]
        for name, receipts in newest.outputs.items()
    }
    for of in outputs.values():
        if not of["published"]:
            problems += of["problems"]
    for name, of in outputs.items():
        of["past"] = _past(store, kept, name, of, find_past)
    return {"files": len(segments), "bytes": size, "problems": problems, "outputs": outputs}


def _output(
    store: Store,
    manifest: Manifest,
    name: str,
    receipts: Sequence[Mapping[str, Any]],
    find_parts: FindParts | None,
) -> dict[str, Any]:
    """The parts of the newest batch of an output: in the checkpoint, or at its place."""
    kept = {
        r["name"]: entry.name
        for r in receipts
        for entry in store.files.list("staged")
        if re.fullmatch(rf"staged/{manifest.batch:08d}\D.*", entry.name)
        and entry.name.endswith(f"-{r['name']}")
    }
    parts, size, problems, published = 0, 0, list[str](), False
    looked_at = bool(kept) or (find_parts is not None and name in manifest.places)
    if kept:
        for receipt in receipts:
            if receipt["name"] in kept:
                place = kept[receipt["name"]]
                parts, size = parts + 1, size + receipt["bytes"]
                if zlib.crc32(store.read(place)) != receipt["checksum"]:
                    problems.append(f"{store.files.full(place)}: other bytes than were written")
    elif find_parts is not None and name in manifest.places:
        found = find_parts(manifest.places[name], manifest.batch, receipts)
        parts, size, published = found.parts, found.bytes, found.published
        problems = list(found.problems)
    return {
        "looked_at": looked_at,
        "checked": parts > 0,
        "published": published,
        "parts": parts,
        "bytes": size,
        "problems": problems,
    }


def _past(
    store: Store,
    kept: Sequence[Manifest],
    name: str,
    newest: Mapping[str, Any],
    find_past: FindPast | None,
) -> dict[str, Any] | None:
    """The published batches of an output, if they can be looked up."""
    manifest = kept[-1]
    if find_past is None or name not in manifest.places:
        return None
    receipts = {m.batch: m.outputs[name] for m in kept if name in m.outputs}
    waits = not newest["published"] and not newest["problems"]
    digest = manifest.digests.get(name)
    rows = None if digest is None else int(digest["rows"])
    if waits:  # it is whole, and the next start publishes it
        own = receipts.pop(manifest.batch, ())
        rows = None if rows is None else rows - sum(r["rows"] for r in own if "/" not in r["name"])
    past = find_past(
        manifest.places[name],
        manifest.batch - waits,
        receipts,
        rows,
        lambda: manifest.batch if (now := store.latest()) is None else now.batch,
    )
    counts = {"batches": past.batches, "parts": past.parts, "bytes": past.bytes}
    return {**counts, "problems": list(past.problems)}


def _history(store: Store, manifest: Manifest) -> int:
    """How many epochs are in files; reading them checks that all are there."""
    return sum(1 for _ in logged(store, manifest))


def _state_lines(state: Mapping[str, Any]) -> list[str]:
    ended = ", the run has finished" if state["finished"] else ""
    ended += f", committed {state['committed']}" if state["committed"] else ""
    lines = [
        f"batch {state['batch']}{ended}",
        f"frontier {state['frontier']}",
    ]
    for name, of in state["subqueries"].items():
        lines.append(
            f"subquery {name}: epoch {of['epoch']}, {counted(of['instances'], 'instance')}, "
            f"{counted(state['buckets'], 'bucket')}"
        )
        lines += [f"  instance {i}: {counted(n, 'bucket')}" for i, n in of["mapping"].items()]
    lines.append(f"sources: {len(state['sources'])}")
    for source in state["sources"]:
        lines.append(_line(source, "id"))
    for name, of in state["operators"].items():
        lines.append(
            f"state {name}: {counted(of['segments'], 'segment')}, {counted(of['rows'], 'row')}, "
            f"{size_text(of['bytes'])}, {counted(of['buckets'], 'live bucket')}"
        )
    lines += [_table_line(n, v) for n, versions in state["tables"].items() for v in versions]
    for title in ("counters", "policy"):
        # What a policy remembers is for it alone, and long; --json has it.
        single = {n: v for n, v in state[title].items() if not isinstance(v, dict)}
        if single:
            lines += [title, *_pairs(single)]
    if state["epochs"]:
        before = state["epochs_logged"]
        lines.append(f"epochs, after {before:,} that are in epoch/" if before else "epochs")
        lines += [_epoch_line(epoch) for epoch in state["epochs"]]
    return lines


def _table_line(name: str, version: Mapping[str, Any]) -> str:
    """One version of a table that streams are joined to."""
    since = version["from_us"]
    when = "" if since == MIN_US else f", for tuples from {frontier_text(since)} on"
    return (
        f"table {name}: {counted(version['rows'], 'row')}, {size_text(version['bytes'])}, version "
        f"{version['digest'][:12]}, read {version['read']}{when}"
    )


def _epoch_line(epoch: Mapping[str, Any]) -> str:
    """An epoch as a line: with time and reason if somebody asked for it, else its members."""
    if "by" not in epoch:
        return _line(epoch, "epoch")
    times = [f"{name} {epoch[name]}" for name in ("asked", "applied", "completed") if name in epoch]
    return f"  {epoch['subquery']} {epoch_text(epoch)} ({', '.join(times)})"


def _query_lines(
    query: Mapping[str, Any] | None, changes: Sequence[Mapping[str, Any]]
) -> list[str]:
    """The query that made the newest state, and its changes."""
    if query is None:
        return []
    lines = ["query", *(f"  {line}" for line in query["streams"])]
    for subquery in query["subqueries"]:
        said = [*subquery["state"], *(line for port in subquery["after"] for line in port)]
        lines += [f"  {subquery['title']}", *(f"    {line}".replace("`", "") for line in said)]
    return lines + [f"batch {c['batch']}: query changed: {c['changed']}" for c in changes]


def _used(owner: Mapping[str, Any]) -> list[str]:
    """The number of a run, and what is known about it."""
    return [str(v) if name == "number" else f"{name} {v}" for name, v in owner.items()]


def _spare_lines(spare: Sequence[Mapping[str, Any]]) -> list[str]:
    if not spare:
        return ["every file is referred to"]
    total = size_text(sum(entry["bytes"] for entry in spare))
    lines = [f"files that nothing refers to: {len(spare)}, {total} (the next start removes them)"]
    return lines + [f"  {entry['name']} {size_text(entry['bytes'])}" for entry in spare]


def _verified_lines(verified: Mapping[str, Any]) -> list[str]:
    summary = f"{verified['files']} segments, {size_text(verified['bytes'])} checked"
    outputs = verified["outputs"]
    damaged = [p for p in verified["problems"] if p not in _output_problems(outputs)]
    whole = "all are whole" if not damaged else f"{len(damaged)} damaged"
    lines = [f"{summary}: {whole}", *damaged]
    for name, of in outputs.items():
        lines += [_output_line(name, of), *of["problems"], *_past_lines(name, of["past"])]
    return lines


def _past_lines(name: str, past: Mapping[str, Any] | None) -> list[str]:
    """The condition of the published batches in a line, with problems after it."""
    if past is None or not (past["batches"] or past["problems"]):
        return []
    wrong = len(past["problems"])
    title = f"published batches of output {name}" if name else "published batches of the output"
    checked = (
        f"{past['batches']} batches, {past['parts']} parts, {size_text(past['bytes'])} checked"
    )
    said = f"{wrong} damaged, missing or added" if wrong else "none is damaged"
    return [f"{title}: {checked}: {said}", *past["problems"]]


def _output_problems(outputs: Mapping[str, Any]) -> list[str]:
    return [problem for of in outputs.values() for problem in of["problems"]]


def _output_line(name: str, of: Mapping[str, Any]) -> str:
    """The condition of the newest batch of an output, in a line; the caller adds problems."""
    title = f"newest batch of output {name}" if name else "newest batch of the output"
    if not of["looked_at"]:
        return f"{title}: NOT LOOKED AT, like those before it. {_ELSEWHERE}"
    if not of["checked"]:
        return f"{title}: it has no parts"
    summary = f"{title}: {of['parts']} parts, {size_text(of['bytes'])} checked"
    wrong = len(of["problems"])
    if of["published"]:
        return f"{summary}: published, {f'{wrong} changed since' if wrong else 'as committed'}"
    again = f"{wrong} damaged before it was published, so that it will run again"
    return f"{summary}: {again if wrong else 'staged, all are whole'}"


def _line(values: Mapping[str, Any], first: str) -> str:
    """Members in one line, in the order of the file, after the one that identifies the entry.

    Members that have members of their own are left out; the JSON output has them.
    """
    plain = [name for name, value in values.items() if not isinstance(value, dict)]
    names = sorted(plain, key=lambda name: name != first)
    return "  " + ", ".join(_member(name, values[name]) for name in names)


def _member(name: str, value: Any) -> str:
    if name.endswith("_us") and isinstance(value, int):
        return f"{name.removesuffix('_us')} {frontier_text(value)}"
    return f"{name} {value}"


def _pairs(values: Mapping[str, Any]) -> list[str]:
    return [f"  {name}: {', '.join(str(value).splitlines())}" for name, value in values.items()]


def size_text(size: int) -> str:
    """Bytes for people: three digits or so, in powers of 1024."""
    if size < 1024:
        return f"{size} B"
    power = min((size.bit_length() - 1) // 10, 4)
    found = size / 1024**power
    return f"{found:,.{1 if found < 99.95 else 0}f} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"
