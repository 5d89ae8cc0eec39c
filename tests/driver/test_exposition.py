"""What /metrics has of a run, and what it has not; its two formats; its server."""

from __future__ import annotations

import math
import re
import socket
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any
from urllib import request

import numpy as np
import pytest

import tidegate as tg
from tests.driver.batch_report import reported
from tests.driver.scene import COUNTS, PASSED, Row, drain, loop_of, memory, plan_of, table
from tidegate import schedule
from tidegate.driver.exposition.observer import MetricsObserver
from tidegate.driver.exposition.text import OPEN, PLAIN, wanted, written
from tidegate.driver.loop import Loop
from tidegate.driver.metric.family import BOUNDS_S, COUNTER, TimeHistogram
from tidegate.driver.metric.registry import FAMILIES
from tidegate.driver.report.latency import LatencyLog
from tidegate.elastic.request import Request, Scale
from tidegate.gate.answer_time import AnsweredTuples
from tidegate.model.live.expectation import Expectation

Series = dict[str, float]
ROWS: list[Row] = [(float(i), "abc"[i % 3], i) for i in range(60)]
JOIN = "SELECT a.k FROM s AS a [RANGE 5 SECONDS] JOIN s AS b [RANGE 5 SECONDS] ON a.k = b.k"
NESTED = f"SELECT MAX(v) AS v FROM ({COUNTS}) [RANGE 20 SECONDS]"
MEDIANS = "SELECT k, MEDIAN(v) AS m FROM s [RANGE 10 SECONDS] GROUP BY k"
QUERIES = (
    COUNTS,
    JOIN,
    NESTED,
    f"{COUNTS} WITH SHED 50 PERCENT BY CONCEPT",
    f"{COUNTS} WITH SHED 90 PERCENT BY CONCEPT TOTAL",
    f"{MEDIANS} WITH ERROR 10 PERCENT BY MEAN",
    f"{MEDIANS} WITH BALANCE ERROR 10 PERCENT CONFIDENCE 95 PERCENT TRIM ALL",
    f"{COUNTS} WITH PARTITIONER shuffle",
)
ELSEWHERE = {
    "tidegate_exchange_jobs": "jobs on several hosts",
    "tidegate_latency_predicted_seconds": "a live run of seconds",
    "tidegate_latency_measured_seconds": "a live run of seconds",
    "tidegate_load_predicted_ratio": "a live run of seconds",
    "tidegate_backlog_bytes": "text files that are followed",
    "tidegate_backlog_files": "folders that are followed",
    "tidegate_start_seconds": "a run on Spark",
    "tidegate_rows_outside": "a history with UNTIL, and then a topic",
}
"""Families that the queries above do not have, and what has them."""


def observed(loop: Loop) -> MetricsObserver:
    observer = MetricsObserver(loop)
    observer.begin()
    return observer


def series(text: str) -> Series:
    """By name and labels, as they are written; each once, and after its type."""
    found: Series = {}
    types: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            types[name] = kind
        elif not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            assert name not in found, line
            base = re.sub(r"_(bucket|sum|count)$", "", name.partition("{")[0])
            assert base in types, line
            found[name] = float(value)
    return found


def exported(observer: MetricsObserver, query: str = "q") -> Series:
    return series(written({query: observer}, PLAIN))


def names(found: Iterable[str]) -> set[str]:
    """Those of families."""
    bare = {name.partition("{")[0] for name in found}
    return {re.sub(r"_(bucket|sum|count|total)$", "", name) for name in bare}


@contextmanager
def live(sql: str, path: Path, *rows: Row, **options: Any) -> Iterator[tuple[Loop, Any]]:
    """A loop over a source that has not ended, in several batches, with its observer."""
    loop = loop_of(plan_of(sql), [memory(*rows)], path, batch_rows=25, **options)
    with closing(loop):
        observer = observed(loop)
        drain(loop)
        yield loop, observer


def test_families_are_named_as_prometheus_has_it() -> None:
    assert len({family.series_name for family in FAMILIES}) == len(FAMILIES) > 45
    for family in FAMILIES:
        assert re.fullmatch(r"tidegate_[a-z_]+[a-z]", family.series_name)
        assert not re.search(r"_(total|count|sum|bucket|info_total|ms|us)$", family.name), family
        assert family.series_name.endswith("_total") == (family.kind == COUNTER)
        assert family.help.endswith("."), family
        assert '"' not in family.help, family
        assert (family.read is None) != (family.fold is None), family
        assert not {"instance", "job"} & set(family.labels), "Prometheus sets these itself"


def test_each_family_is_exported_by_a_query_that_has_it(tmp_path: Path) -> None:
    seen: set[str] = set()
    labels = {family.full_name: {"query", "le", *family.labels} for family in FAMILIES}
    for number, sql in enumerate(QUERIES):
        source = memory(*ROWS[:40])
        loop = loop_of(plan_of(sql), [source], tmp_path / str(number), batch_rows=25)
        with closing(loop):
            observer = observed(loop)
            drain(loop)
            loop.controls.ask(Request(Scale(3), by="a test"))
            source.append(table(*ROWS[40:]))
            drain(loop)
            found = exported(observer)
        for name in found:
            used = set(re.findall(r'(\w+)="', name))
            (family,) = names([name])
            assert used <= labels[family], name
        seen |= names(found)
    assert {family.full_name for family in FAMILIES} - seen == set(ELSEWHERE)


def test_what_a_query_does_not_have_is_not_exported(tmp_path: Path) -> None:
    loop = loop_of(plan_of(PASSED), [memory(*ROWS, end=True)], tmp_path, batch_rows=25)
    with closing(loop):
        observer = observed(loop)
        before = exported(observer)
        assert before['tidegate_rows_in_total{query="q"}'] == 0
        assert not {"tidegate_latency_seconds", "tidegate_commit_seconds"} & names(before)
        drain(loop)
        found = exported(observer)
    assert found['tidegate_rows_in_total{query="q"}'] == 60
    missing = "comparisons latency_seconds backlog_rows rows_shed error_ratio switch_seconds"
    missing += " source_lag_seconds watermark_timestamp_seconds subquery_state_rows"
    assert not {f"tidegate_{name}" for name in missing.split()} & names(found)


def test_counters_go_on_after_a_restart_and_times_begin_anew(tmp_path: Path) -> None:
    counts = ('tidegate_rows_in_total{query="q"}', 'tidegate_batches_total{query="q"}')
    source = memory(*ROWS)
    for rows in ([], [(61.0, "a", 1)]):
        loop = loop_of(plan_of(COUNTS), [source], tmp_path, batch_rows=25)
        with closing(loop):
            observer = observed(loop)
            source.append(table(*rows))
            done = drain(loop)
            found = exported(observer)
        assert found['tidegate_batch_seconds_count{query="q"}'] == done
        source = memory(*ROWS, *rows)
    assert [found[name] for name in counts] == [61, 4]


def test_lags_are_those_of_event_time(tmp_path: Path) -> None:
    """Of two sources one is 20 seconds behind; the watermark waits for it."""
    ahead, behind = memory(*ROWS[:50], id="ahead"), memory(*ROWS[:30], id="behind")
    loop = loop_of(plan_of(COUNTS), [ahead, behind], tmp_path)
    with closing(loop):
        observer = observed(loop)
        drain(loop)
        found = exported(observer)
        lag = 'tidegate_source_lag_seconds{query="q",stream="s",source="%s"}'
        assert (found[lag % "ahead"], found[lag % "behind"]) == (0, 20)
        newest = 'tidegate_source_newest_event_timestamp_seconds{query="q",stream="s",source="%s"}'
        assert (found[newest % "ahead"], found[newest % "behind"]) == (49, 29)
        assert found['tidegate_watermark_timestamp_seconds{query="q"}'] == 29
        subquery = '{query="q",subquery="aggregate"}'
        assert found[f"tidegate_watermark_lag_seconds{subquery}"] == 20
        assert found[f"tidegate_local_watermark_lag_seconds{subquery}"] == 20
        behind.end()
        drain(loop)
        found = exported(observer)
        assert lag % "behind" not in found, "it has ended"
        assert found[f"tidegate_local_watermark_lag_seconds{subquery}"] == 0


def test_a_subquery_may_be_ahead_of_the_query(tmp_path: Path) -> None:
    """The local watermark is that of its own streams, the other one that of all."""
    s = tg.Session(master="none")
    fast, slow = (tg.MemorySource(table(*ROWS[:n]), time="ts") for n in (50, 20))
    streams = {"fasts": s.stream(fast), "slows": s.stream(slow)}
    count = "SELECT COUNT(*) AS n FROM t [RANGE 5 SECONDS]"
    started = s.start(
        {name: s.sql(count, t=stream) for name, stream in streams.items()},
        sinks={name: tg.sink.memory() for name in streams},
        follow=True,
        dashboard=True,
    )
    try:
        lag = 'tidegate_watermark_lag_seconds{query="fasts, slows",subquery="fasts"}'
        found = until(metrics_of(started), lag, 30)
    finally:
        started.stop()
    lags = {
        (kind, name): found[f'tidegate_{kind}lag_seconds{{query="fasts, slows",subquery="{name}"}}']
        for kind in ("watermark_", "local_watermark_")
        for name in ("fasts", "slows")
    }
    assert lags == {
        ("watermark_", "fasts"): 30,
        ("watermark_", "slows"): 0,
        ("local_watermark_", "fasts"): 0,
        ("local_watermark_", "slows"): 0,
    }


def until(url: str | None, name: str, value: float) -> Series:
    """The metrics, once one of them has a value; a scrape answers at once."""
    assert url is not None
    for _ in range(600):
        found = series(scraped(url)[1])
        if found.get(name) == value:
            return found
        schedule.current().clock.sleep(0.05)
    raise AssertionError(f"{name} is {found.get(name)} and not {value}")


def scraped(url: str, accept: str = "") -> tuple[str, str]:
    with request.urlopen(request.Request(url, headers={"Accept": accept}), timeout=30) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def test_the_histogram_of_latencies_is_that_of_all_tuples() -> None:
    log, random = LatencyLog(0.0), np.random.default_rng(5)
    seconds = np.exp(random.uniform(math.log(2e-4), math.log(100), 3_000))
    for part in np.split(seconds, 3):
        log.committed([AnsweredTuples(200.0 - part, np.ones(len(part), np.int64))], 200.0)
    upto, count, sum_s = log.upto(BOUNDS_S)
    assert count == 3_000
    assert sum_s == pytest.approx(seconds.sum())
    for bound, found in zip(BOUNDS_S, upto, strict=True):
        low, high = ((seconds <= bound * factor).sum() for factor in (0.99, 1.01))
        assert low <= found <= high


def test_times_of_batches_are_in_the_buckets_that_bound_them() -> None:
    fold = TimeHistogram(lambda report: report.sync_s)
    assert list(fold.samples()) == [], "no batch has synced anything"
    for sync_s in (0.0005, 0.001, 0.3, 90.0, None):
        fold.add(reported(sync_s=sync_s))
    found = list(fold.samples())
    upto = {dict(s.labels)["le"]: s.value for s in found if s.suffix == "_bucket"}
    assert [upto[le] for le in ("0.001", "0.25", "0.5", "60.0", "+Inf")] == [2, 2, 3, 3, 4]
    assert [s.value for s in found[-2:]] == [pytest.approx(90.3015), 4]


def test_jobs_are_counted_by_their_exchange() -> None:
    (family,) = (family for family in FAMILIES if family.name == "exchange_jobs")
    assert family.fold is not None
    fold = family.fold()
    for exchanges in ({"shuffle": 2}, {"shuffle": 1, "direct": 1}):
        fold.add(reported(exchanges=exchanges))
    found = {dict(s.labels)["exchange"]: s.value for s in fold.samples()}
    assert found == {"shuffle": 3, "direct": 1}


def test_predictions_are_exported_while_there_are_some() -> None:
    read = {f.name: f.read for f in FAMILIES if f.name.endswith(("ed_seconds", "predicted_ratio"))}
    told = Expectation(load=0.5, batch_s=0.1, latency_s=0.25, measured_s=None, subqueries={})

    def samples(expected: Expectation | None) -> dict[str, float]:
        view: Any = SimpleNamespace(expected=lambda: expected)
        return {name: s.value for name, of in read.items() if of for s in of(view)}

    assert samples(None) == {}
    assert samples(told) == {"latency_predicted_seconds": 0.25, "load_predicted_ratio": 0.5}


def test_names_are_escaped_and_the_formats_say_the_same(tmp_path: Path) -> None:
    name = 'a "b"\\c\nd'
    with live(COUNTS, tmp_path, *ROWS) as (_, observer):
        plain, opened_ = (written({name: observer}, form) for form in (PLAIN, OPEN))
    label = '{query="a \\"b\\"\\\\c\\nd"}'
    assert f"tidegate_rows_in_total{label} 60\n" in plain
    rows = [[x for x in t.splitlines() if not x.startswith("#")] for t in (plain, opened_)]
    assert rows[0] == rows[1] != []
    assert "# TYPE tidegate_rows_in_total counter\n" in plain
    assert "# TYPE tidegate_rows_in counter\n" in opened_
    assert "# UNIT tidegate_commit_seconds seconds\n" in opened_
    assert opened_.endswith("\n# EOF\n")
    assert "EOF" not in plain


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", PLAIN),
        ("*/*", PLAIN),
        ("text/html, text/plain", PLAIN),
        ("application/openmetrics-text", OPEN),
        ("application/openmetrics-text;version=1.0.0;q=0.5, text/plain;q=0.2", OPEN),
        ("application/openmetrics-text;q=0.2,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", PLAIN),
        ("application/openmetrics-text;q=0", PLAIN),
        ("application/openmetrics-text;q=often", PLAIN),
    ],
)
def test_the_client_chooses_the_format(accept: str, form: Any) -> None:
    assert wanted(accept) is form


def test_a_scrape_waits_for_no_batch_and_no_batch_for_a_scrape(tmp_path: Path) -> None:
    reached, go = Event(), Event()

    def hold(step: str, batch: int) -> None:
        if (step, batch) == ("after operate", 1):
            reached.set()
            assert go.wait(60)

    s = tg.Session(master="none")
    stream = s.stream(tg.MemorySource(table(*ROWS), time="ts"))
    query = s.sql(COUNTS.replace("FROM s", "FROM t"), t=stream).start(
        sink=tg.sink.memory(), follow=True, batch_rows=25, dashboard=True, observer=hold
    )
    with closing(socket.create_connection(("127.0.0.1", port_of(query)))) as silent:
        silent.sendall(b"GET /metrics HTTP/1.1\r\n")  # and never the end of it
        assert reached.wait(60)
        found = series(scraped(metrics_of(query))[1])
        go.set()
        assert found['tidegate_batches_total{query="aggregate"}'] == 1
        until(metrics_of(query), 'tidegate_batches_total{query="aggregate"}', 3)
        query.stop()
    assert 'query="aggregate"' not in scraped(metrics_of(query))[1], "it has ended"


def port_of(query: Any) -> int:
    return int(re.findall(r":(\d+)/", query.dashboard)[0])


def metrics_of(query: Any) -> str:
    return f"{query.dashboard}metrics"


def test_who_asks_late_gets_what_who_asked_first_gets(tmp_path: Path) -> None:
    """The batches before the first question are in memory; none is counted twice."""
    with live(COUNTS, tmp_path, *ROWS) as (loop, first):
        late = observed(loop)
        assert exported(late) == pytest.approx(exported(first))  # but for when it was committed
        assert exported(late)['tidegate_batch_seconds_count{query="q"}'] >= 2
        (newest,) = loop.books.journal.recent.after(loop.manifest.batch - 1)
        told: Any = SimpleNamespace(reported=newest.report)
        late.committed(told)  # as when the batch ends between the two looks of `begin`
        assert exported(late) == pytest.approx(exported(first))
