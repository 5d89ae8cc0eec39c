"""`tidegate ctl`: shows and changes a query that runs in another process."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import click

from tidegate.calendar.microsecond import time_text
from tidegate.cli.option.mapping import mapping_text
from tidegate.cli.option.value import PathText, Whole
from tidegate.cli.text.answer import Command, CommandAnswer, answers
from tidegate.control.client import ask
from tidegate.control.message import PAUSE, POLICY, RESUME, STATUS, STOP
from tidegate.driver.metric.metric import Where
from tidegate.driver.metric.registry import lines_at, rows_line
from tidegate.driver.metric.text import backlog_text, ms_text
from tidegate.driver.report.decision_text import budget_lines, controller_lines
from tidegate.elastic.owners import buckets_of
from tidegate.elastic.share import SHED, share_text
from tidegate.errors import OptionError
from tidegate.state.epoch import counted, epoch_text
from tidegate.state.inspect import frontier_text, size_text

SHOWN = 10
"""The newest switches that the text shows; --json has all that the query remembers."""

_SLOW = 1.3
"""The status mentions slow batches from this factor of their earlier time on."""


class CheckpointFirst(click.Group):
    """A command group whose commands follow the checkpoint; a missing one is explained."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] in self.commands and not os.path.exists(args[0]):
            if not {"-h", "--help"} & set(args[1:]):
                raise OptionError(
                    "ctl",
                    "needs CHECKPOINT before the command",
                    " ".join(args),
                    f"Write `tidegate ctl CHECKPOINT {' '.join(args)}`.",
                )
            args = ["CHECKPOINT", *args]  # of no matter for help
        return super().parse_args(ctx, args)


@click.group(cls=CheckpointFirst, no_args_is_help=False)
@click.argument("checkpoint", type=PathText(), metavar="CHECKPOINT")
@click.pass_context
def ctl(context: click.Context, checkpoint: str) -> None:
    """Look at the query that runs on CHECKPOINT, and change its parallelism while it runs.

    A change takes effect with the next batch, and replaces one that is still pending. The results
    are the same with and without it. Works for the user who runs the query, on the host of its
    driver.
    """
    context.obj = checkpoint


def _change(command: Command) -> Command:
    """The options of all commands that change the mapping."""
    for option in (
        click.option("--why", metavar="TEXT", default="", help="A reason, for the timeline."),
        click.option(
            "--subquery",
            metavar="NAME",
            help="For one subquery, as `status` and `tidegate explain` name them (default: all).",
        ),
    ):
        command = option(command)
    return command


class Numbers(click.Command):
    """A command with numeric arguments: -1 is a number, not an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for word in args:
            if re.fullmatch(r"-\d[\d,-]*", word):
                raise OptionError(ctx.info_name or "ctl", "numbers must not be negative", word)
        return super().parse_args(ctx, args)


@ctl.command(cls=Numbers)
@click.argument("instances", metavar="N", type=Whole())
@_change
@click.pass_obj
@answers
def scale(checkpoint: str, instances: int, subquery: str | None, why: str) -> CommandAnswer:
    """Go on with N instances; the buckets are spread evenly, with the fewest moves."""
    return _ask(checkpoint, "scale", subquery, why, instances=instances)


@ctl.command()
@_change
@click.pass_obj
@answers
def rebalance(checkpoint: str, subquery: str | None, why: str) -> CommandAnswer:
    """Spread the load of the buckets evenly over the instances there are."""
    return _ask(checkpoint, "rebalance", subquery, why)


@ctl.command(cls=Numbers)
@click.argument("buckets", metavar="BUCKETS")
@click.argument("instance", metavar="INSTANCE", type=Whole())
@_change
@click.pass_obj
@answers
def move(
    checkpoint: str, buckets: str, instance: int, subquery: str | None, why: str
) -> CommandAnswer:
    """Give BUCKETS, for example 3,4,10-12, to an instance by its number, from 0 on."""
    return _ask(checkpoint, "move", subquery, why, buckets=buckets_of(buckets), instance=instance)


@ctl.command()
@click.argument("mapping", metavar="FILE_OR_JSON")
@_change
@click.pass_obj
@answers
def switch(checkpoint: str, mapping: str, subquery: str | None, why: str) -> CommandAnswer:
    """Say of all buckets who has them.

    JSON, or a file with it: the owner of each bucket as [0, 1, 0, 1], or the buckets of each
    instance as {"0": "0-31", "1": "32-63"}, which is what `status --json` has under `buckets`.
    """
    return _ask(checkpoint, "switch", subquery, why, mapping=mapping_text(mapping, "switch"))


@ctl.command()
@click.argument("policy", metavar="POLICY")
@click.pass_obj
@answers
def policy(checkpoint: str, policy: str) -> CommandAnswer:
    """Let another policy decide: fixed, threshold, model or auto, also as 'auto?latency=2'.

    It counts for this run; the option --policy is for the next one.
    """
    found = ask(checkpoint, {"command": POLICY, "policy": policy})
    return CommandAnswer(
        found, lambda: f"{found['name']} decides after the next batch and all that follow"
    )


@ctl.command()
@click.argument("share", metavar="SHARE", nargs=-1, required=True)
@click.option("--why", metavar="TEXT", default="", help="A reason, for the status.")
@click.pass_obj
@answers
def shed(checkpoint: str, share: tuple[str, ...], why: str) -> CommandAnswer:
    """Shed another share of the tuples: `90 percent`, `off`, or `auto`.

    For a query that has WITH SHED. It counts for tuples after all that were read so far. With SHED
    UP TO, a share is held until `auto` leaves it to the backlog again.
    """
    found = ask(checkpoint, {"command": SHED, "share": " ".join(share), "why": why})
    return CommandAnswer(found, lambda: "\n".join(_shed_lines(found)))


def _shed_lines(found: Mapping[str, Any]) -> list[str]:
    """The request, and the share shed until it takes effect, per subquery."""
    return [
        f"{name}: {found['request']}, from the next batch on; before, {_shed_now(of['before'])}"
        for name, of in found["subqueries"].items()
    ]


def _add_plain(command: str, help_: str) -> None:
    """Adds a command without arguments; its answer is the query's new state."""

    @ctl.command(command, help=help_)
    @click.pass_obj
    @answers
    def told(checkpoint: str) -> CommandAnswer:
        found = ask(checkpoint, {"command": command})
        return CommandAnswer(found, lambda: str(found["state"]))


_add_plain(PAUSE, "Begin no batch after the running one, until `resume`; input waits where it is.")
_add_plain(RESUME, "Go on after `pause`.")
_add_plain(STOP, "End the query after the running batch; the same command starts it again.")


@ctl.command()
@click.pass_obj
@answers
def status(checkpoint: str) -> CommandAnswer:
    """Show what the query does: batch, watermark, rate, latency, backlog, instances, switches."""
    found = ask(checkpoint, {"command": STATUS})
    return CommandAnswer(found, lambda: status_text(found))


def _ask(
    checkpoint: str, command: str, subquery: str | None, why: str, **arguments: object
) -> CommandAnswer:
    question = {"command": command, "subquery": subquery, "why": why, **arguments}
    found = ask(checkpoint, question)
    lines = (_asked_text(name, of) for name, of in found["subqueries"].items())
    return CommandAnswer(found, lambda: "\n".join(lines))


def _asked_text(subquery: str, of: Mapping[str, int]) -> str:
    """The requested change of one subquery."""
    now = counted(of["instances"], "instance")
    if of["before"] == of["instances"] and not of["buckets_moved"]:
        return f"{subquery}: stays as it is, with {now}"
    was = "" if of["before"] == of["instances"] else f" ({of['before']:,} before)"
    moved = counted(of["buckets_moved"], "bucket")
    return f"{subquery}: {now}{was}, {moved} moved, from the next batch on"


def status_text(found: Mapping[str, Any]) -> str:
    """The status of a query for a terminal, one fact per line."""
    lines = [
        f"batch {found['batch']:,}, watermark {frontier_text(found['frontier_us'])}",
        rows_line(found),
        *_speed(found),
        f"state {found['state_rows']:,} rows, {size_text(found['state_bytes'])}, at most "
        f"{found['state_rows_max']:,} rows, {size_text(found['state_bytes_max'])}",
        *lines_at(Where.STATUS, found),
    ]
    for name, of in found["subqueries"].items():
        lines.append(f"{name}: {counted(of['instances'], 'instance')}, epoch {of['epoch']}")
    lines += [f"{name}: {_shed_text(of)}" for name, of in found.get("shedding", {}).items()]
    if found["executors"] is not None:
        lines.append("executors: {wanted:,} wanted, {there:,} there".format(**found["executors"]))
    if found["policy"]["name"] != "fixed":
        failed = f", failed: {found['policy']['failure']}" if found["policy"]["failure"] else ""
        lines.append(f"policy {found['policy']['name']}{failed}")
        if found["policy"]["remark"]:
            lines.append(f"  {found['policy']['remark']}")
        lines += controller_lines(found["policy"], SHOWN)
    lines += budget_lines(found.get("budget"))
    for of in found["pending"]:
        why = f": {of['why']}" if of["why"] else ""
        lines.append(
            f"pending for {of['subquery']}: {of['request']}, asked by {of['by']} at "
            f"{of['asked']}{why}"
        )
    lines += found["window_lines"]
    lines += found["change_lines"]
    lines += found["advice"]
    switches = [e for e in found["epochs"] if "by" in e]
    if switches:
        lines.append("switches" + (", the newest" if len(switches) > SHOWN else ""))
        lines += [f"  {e['subquery']} {epoch_text(e)}" for e in switches[-SHOWN:]]
    return "\n".join(lines)


def _shed_text(of: Mapping[str, Any]) -> str:
    """How much a subquery sheds, since when, and who asked for it."""
    since = "" if not of["changes"] else f" since {time_text(of['changes'][-1]['from_us'])}"
    most = "" if of["most"] is None else f", at most {share_text(of['most'])}"
    return f"{_shed_now(of['share'])}{since}, as {of['by']} says{most}"


def _shed_now(share: float) -> str:
    return f"sheds {share_text(share)}" if share else "sheds nothing"


def _speed(found: Mapping[str, Any]) -> list[str]:
    if found["newest_batch_ms"] is None:
        return ["no batch in this run yet"]
    batch_ms, latency = found["recent_batches_ms"], found["latency_recent_batches_ms"]
    backlog = found["backlog"]
    lines = [
        f"{found['rows_per_second']:,.0f} rows/s; batch time {ms_text(found['newest_batch_ms'])}, "
        f"p50 {ms_text(batch_ms['p50'])}, p95 {ms_text(batch_ms['p95'])}"
    ]
    if latency is not None:
        parts = [f"{name} {ms_text(latency[name])}" for name in ("p50", "p95", "p99")]
        lines.append(f"latency {', '.join(parts)}, from arrival to commit")
    predicted = found["predicted"]
    if predicted is not None and predicted["load"] is not None:
        lines.append(_predicted_text(predicted))
    if backlog is not None:
        lines.append(f"backlog {backlog_text(backlog)}")
    return lines


def _predicted_text(found: Mapping[str, Any]) -> str:
    """The model's prediction for the last second, beside what was measured."""
    measured_ms = found["measured_latency_ms"]
    beside = "" if measured_ms is None else f", measured {ms_text(measured_ms)}"
    behind = ", falls behind" if found["load"] >= 1 else ""
    slowdown = found.get("slowdown", 1.0)
    slow = f"; batches take {slowdown:.1f} times as long as before" if slowdown >= _SLOW else ""
    return (
        f"predicted mean latency {ms_text(found['latency_ms'])}{beside}; "
        f"load {found['load']:.0%}{behind}{slow}"
    )
