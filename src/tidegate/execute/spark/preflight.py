"""Checks a cluster before the first batch: executors start, and reach files, code and Python.

On a single host tasks see what the driver sees, and this check is skipped.
"""

from __future__ import annotations

import logging
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext, cloudpickle
from pyspark.errors import PySparkException

from tidegate import schedule
from tidegate.errors import OptionError, RunError, TidegateError
from tidegate.execute.exchange import begin, leave
from tidegate.execute.job import Job
from tidegate.execute.runner import Draft
from tidegate.execute.spark import probe
from tidegate.execute.spark.failure import first_line, without_stacks
from tidegate.execute.spark.group import JobGroup
from tidegate.execute.spark.loss import EXECUTORS, have_it, of_environment
from tidegate.execute.spark.probe import CHECKPOINT, CODE, OUTPUT, PYTHON, SOURCE, Question
from tidegate.state.handle import StoreHandle
from tidegate.storage import disk
from tidegate.storage.whole_file import whole_file
from tidegate.version import __version__

_log = logging.getLogger(__name__)

_LIMIT = "spark.scheduler.maxRegisteredResourcesWaitingTime"
"""Spark's setting for the longest wait for executors."""

_LOOK_S = 0.2
_PATIENCE_S = 5.0
"""A longer wait for executors is logged."""

_MOST_FILES = 100
"""The most input files that are checked; a batch may have thousands."""

_MOST_TASKS = 1_000


def preflight(context: SparkContext, group: JobGroup, drafts: Sequence[Draft]) -> None:
    """Let executors check what the batch needs; raise the problems found as one error.

    Waits for the first executor as long as Spark's setting allows; cancelling the group ends the
    wait. Each free core runs one check. Executors that start later are not checked.
    """
    with _question([d.job for d in drafts]) as question:
        reports = _answers(context, group, question)
    _judge(reports)


Look = Callable[[Iterable[int]], Iterator[dict[str, Any]]]
"""The check that runs in a task."""


def preflight_by(ask: Callable[[Look], list[Any]], master: str, drafts: Sequence[Draft]) -> None:
    """The same check where the number of executors is unknown.

    `ask` runs a function in some tasks and returns their answers.
    """
    with _question([d.job for d in drafts]) as question:
        cloudpickle.register_pickle_by_value(probe)
        try:
            reports = ask(partial(probe.look, tuple(question)))
        except PySparkException as error:
            raise _unstarted(master, error) from error
        finally:
            cloudpickle.unregister_pickle_by_value(probe)
    _judge(reports)


@contextmanager
def _question(jobs: Sequence[Job]) -> Iterator[Question]:
    """The question for the tasks. The driver's test files exist while the context is open."""
    token = schedule.current().token().encode()
    folders: dict[str, tuple[str, str, str, bytes]] = {}
    code: list[tuple[str, str, Callable[[], object]]] = []
    first = jobs[0]
    store = first.store.open()
    left: list[str] = []
    remote = f"staged/preflight-{token.decode()}"
    try:
        if store.files.local:
            begin(first)
            path = leave(first, "preflight", token).path
            folders[path] = (CHECKPOINT, store.files.root, path, token)
        else:
            store.write(remote, token)
            code.append((CHECKPOINT, store.location, partial(_reach, first.store, remote)))
        for folder in dict.fromkeys(_folder_of(job.parts) for job in jobs):
            if folder:
                path = f"{folder}/.preflight-{token.decode()}"
                with whole_file(path, sync="nothing") as file:
                    left.append(path)
                    file.write(token)
                folders[path] = (OUTPUT, folder.partition("/_staging/")[0], path, token)
        readers = (split.reader for job in jobs for split in job.splits)
        paths = (reader.input_file for reader in readers)
        inputs = dict.fromkeys(path for path in paths if path and path.startswith("/"))
        work = cloudpickle.dumps([job.subquery for job in jobs])
        code.append((CODE, "", partial(pickle.loads, work)))
        yield Question(
            tuple(folders.values()), tuple(inputs)[:_MOST_FILES], cloudpickle.dumps(code)
        )
    finally:
        if not store.files.local:
            store.delete(remote)
        for path in left:
            disk.unlink_if_there(path)


def _reach(handle: StoreHandle, name: str) -> None:
    """In a worker: read the driver's test file in a remote checkpoint, and write one beside it."""
    store = handle.open()
    own = f"{name}-{schedule.current().token()}"
    store.write(own, store.read(name))
    store.delete(own)


def _folder_of(writer: Any) -> str:
    """The local folder into which tasks write parts of an output; empty if there is none."""
    folder = getattr(writer, "folder", "")
    return folder if isinstance(folder, str) and folder.startswith("/") else ""


def _answers(context: SparkContext, group: JobGroup, question: Question) -> list[Mapping[str, Any]]:
    asked = schedule.current().start(
        "tidegate-preflight", partial(_ask, context, group, question), daemon=True
    )
    try:
        _wait_for_executors(context, asked)
        return asked.result()
    except (PySparkException, Py4JJavaError) as error:
        raise _unstarted(context.master, error) from error
    except BaseException:
        group.cancel()
        raise


def _ask(context: SparkContext, group: JobGroup, question: Question) -> list[Mapping[str, Any]]:
    """Runs in its own thread: one task per core."""
    group.join()
    tasks = min(max(context.defaultParallelism, 2), _MOST_TASKS)
    cloudpickle.register_pickle_by_value(probe)
    try:
        with without_stacks():
            numbers = context.parallelize(range(tasks), tasks)
            look = partial(probe.look, tuple(question))
            reports: list[Mapping[str, Any]] = numbers.mapPartitions(look).collect()
            return reports
    finally:
        cloudpickle.unregister_pickle_by_value(probe)


def _wait_for_executors(context: SparkContext, asked: Future[Any]) -> None:
    """Return when an executor has started or the answers have arrived."""
    java = context._jsc.sc()
    limit_s = float(java.conf().getTimeAsSeconds(_LIMIT, "30s"))
    clock = schedule.current().clock
    begun, told = clock.now(), False
    while not asked.done() and int(java.getExecutorMemoryStatus().size()) < 2:  # the driver is one
        waited = clock.now() - begun
        if waited > limit_s:
            raise _no_executor(context, limit_s)
        if waited > _PATIENCE_S and not told:
            told = True
            _log.warning(
                "%s: no executor has come up yet; waiting for up to %d s", context.master, limit_s
            )
        with suppress(TimeoutError):
            asked.exception(timeout=_LOOK_S)


def _no_executor(context: SparkContext, limit_s: float) -> RunError:
    conf = context.getConf()
    needs = f"{conf.get('spark.executor.memory', '1g')} of memory"
    if cores := conf.get("spark.executor.cores"):
        needs += f" and {cores} cores"
    driver = f"{conf.get('spark.driver.host')}:{conf.get('spark.driver.port')}"
    return RunError(
        context.master,
        f"an executor must come up within {limit_s:.0f} s",
        "none",
        f"See that it has workers with {needs} free, and that they can reach the driver at "
        f"{driver}. --conf {_LIMIT}=5min waits longer.",
    )


def _unstarted(master: str, error: BaseException) -> TidegateError:
    """The error for workers that failed before the check began."""
    found = of_environment(str(error))
    if found is not None:
        return OptionError(*found.args)
    return RunError(
        master,
        "its executors must run a first task",
        first_line(error),
        "Nothing was started.",
    )


def _judge(reports: Sequence[Mapping[str, Any]]) -> None:
    """Raise the first kind of problem that was reported, with all hosts that reported it."""
    for report in reports:
        there = report["versions"].get("tidegate")
        if there is not None and there != __version__:
            report["problems"].append((PYTHON, report["python"], f"tidegate {there}"))
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for report in reports:
        for problem in report["problems"]:
            found.setdefault(tuple(problem), {})[report["host"]] = None
    order = (PYTHON, CHECKPOINT, SOURCE, OUTPUT, CODE)
    for (kind, what, why), hosts in sorted(found.items(), key=lambda f: order.index(f[0][0])):
        raise _problem(kind, what, why, ", ".join(hosts))
    _warn_of_versions(reports)


def _problem(kind: str, what: str, why: str, hosts: str) -> OptionError:
    got = f"{why} on {hosts}"
    if kind == PYTHON:
        return OptionError(
            EXECUTORS,
            f"their Python must have tidegate {__version__} and what it needs",
            f"{got}, with {what}",
            have_it(),
        )
    if kind == CODE:
        return OptionError(
            EXECUTORS,
            "must be able to load the classes and functions of the query",
            got,
            "Send the module with --conf spark.submit.pyFiles=MODULE.py (spark-submit --py-files), "
            "or install it there.",
        )
    remedies = {
        CHECKPOINT: "Give a --checkpoint that all hosts share: a mounted folder, or a URI as "
        "s3://bucket/folder. Without one the state is in a temporary folder of the driver.",
        SOURCE: "Put the input where all hosts have it under this name.",
        OUTPUT: "Give an --out that all hosts share.",
    }
    verb = "read" if kind == SOURCE else "read and write"
    return OptionError(
        f"{kind} {what}", f"every executor must be able to {verb} it", got, remedies[kind]
    )


def _warn_of_versions(reports: Sequence[Mapping[str, Any]]) -> None:
    """Log executors whose versions of computing libraries differ from the driver's."""
    for name in probe.COMPARED:
        here = getattr(sys.modules.get(name), "__version__", None)
        there = {r["versions"][name]: r["host"] for r in reports}
        for version, host in there.items():
            if here is not None and version != here:
                _log.warning("%s %s on %s, %s on the driver", name, version, host, here)
