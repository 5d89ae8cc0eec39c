"""Changes how much a running query sheds, and records from which event time on.

A request waits for the next batch, like a request for a switch. It applies to tuples later than all
that were read before that batch, so no tuple falls under two rates. The manifest records the rates
that later tuples may need, and the newest changes with who asked. With the same record the rows are
the same, for any cut, restart and replay.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tidegate.approx.rate import RateLog
from tidegate.batch import MIN_US
from tidegate.driver.checkpoint.replay import Replay
from tidegate.driver.report.window_log import WindowDigest
from tidegate.elastic.share import SHED, ShareRequest, share_text
from tidegate.elastic.shed_rule import BacklogSeen, ShedMemory, decide
from tidegate.errors import OptionError
from tidegate.gate.cut import Cut
from tidegate.model.observation import ShedSeen
from tidegate.operate.sieve import Sieve
from tidegate.plan.physical import Plan, Subquery
from tidegate.state.manifest import Manifest

ENGINE = "backlog"
"""The asker of changes that the backlog rule of UP TO makes."""

_POLICY = "policy "
"""The prefix of askers that are policies."""

MOST_CHANGES = 32
"""The most changes that a manifest keeps: the newest."""

_WITHOUT = (
    "Write WITH SHED UP TO 98 PERCENT after its aggregate, in Python .shed(up_to=0.98): it sheds "
    "nothing until it has to, or is told to."
)


class Shedding:
    """The rates of the subqueries that shed; any thread may call `ask` and `status`.

    Grows with the subqueries, and with the changes that later tuples may still fall before.
    """

    def __init__(self, plan: Plan) -> None:
        self._names = plan.names
        self._sieves = {s.key: sieve for s in plan.subqueries if (sieve := _sieve(s)) is not None}
        self._lock = threading.Lock()
        self._waiting: ShareRequest | None = None
        self._rates = {key: RateLog.of(sieve.first) for key, sieve in self._sieves.items()}
        self._log: list[Mapping[str, Any]] = []
        self._batch: int | None = None
        self._newest_us = MIN_US
        self._held = False
        """Whether a user has fixed the share, so that the backlog rule does not change it."""
        self._memory = ShedMemory()
        self._made: dict[str, Subquery] = {}

    @property
    def follows_backlog(self) -> bool:
        """Whether the backlog rule chooses the share: with UP TO, unless a user has fixed it."""
        return self._upto and not self._held

    @property
    def _upto(self) -> bool:
        return any(sieve.first != sieve.rate for sieve in self._sieves.values())

    def enter(self, manifest: Manifest) -> None:
        """Restore the rates and changes in a manifest."""
        recorded = manifest.shedding
        self._newest_us = recorded.get("newest_us", MIN_US)
        self._held = recorded.get("held", False)
        self._log = list(recorded.get("changes", ()))
        rates = recorded.get("rates", {})
        for key in self._sieves:
            if key in rates:
                self._rates[key] = RateLog.restored(rates[key])

    def ask(self, asked: ShareRequest) -> dict[str, dict[str, float]]:
        """Queue a request for the next batch; it replaces one that waits.

        Returns the old and the new share by subquery. An OptionError if the query cannot do it.
        """
        if not self._sieves:
            got = "one without the clause, or over a join that sheds its sides"
            raise OptionError(SHED, "needs a query that has WITH SHED", got, _WITHOUT)
        if asked.share is None and not self._upto:
            got = "one whose share is fixed"
            raise OptionError(SHED, "auto is for a query that has WITH SHED UP TO", got, _WITHOUT)
        most = min(_share(s.rate) for s in self._sieves.values()) if self._upto else 1.0
        if asked.share is not None and asked.share > most:
            raise OptionError(
                SHED,
                f"the query allows to shed up to {share_text(most)}",
                share_text(asked.share),
                "Ask for less, or write another UP TO into the query, for a new checkpoint.",
            )
        with self._lock:
            self._waiting = asked
            to = 0.0 if asked.share is None else asked.share
            return {
                self._names[key]: {"before": _share(rates.newest), "share": to}
                for key, rates in self._rates.items()
            }

    def begin(self, manifest: Manifest, cut: Cut, replay: Replay | None) -> None:
        """Apply the waiting request to the batch after a manifest; a replay keeps its rates."""
        if not self._sieves:
            return
        if replay is not None:
            self.enter(replay.after)
        elif manifest.batch + 1 != self._batch:
            self._take(manifest)
        self._batch = manifest.batch + 1
        self._newest_us = max(manifest.shedding.get("newest_us", MIN_US), cut.newest_us)
        for key, rates in self._rates.items():
            self._rates[key] = rates.since(manifest.frontier_us)

    def _take(self, manifest: Manifest) -> None:
        with self._lock:
            asked, self._waiting = self._waiting, None
        if asked is None:
            return
        before_us = manifest.shedding.get("newest_us", MIN_US)
        from_us = before_us if before_us == MIN_US else before_us + 1
        ours = asked.by == ENGINE or asked.by.startswith(_POLICY)
        self._held = not ours and asked.share is not None
        rate = 1.0 if asked.share is None else _rate(asked.share)
        for key, rates in self._rates.items():
            if rates.newest == rate:
                continue
            self._rates[key] = rates.changed(from_us, rate)
            entry = {
                "subquery": key,
                "batch": manifest.batch + 1,
                "from_us": from_us,
                "share": _share(rate),
                "before": _share(rates.newest),
                "by": asked.by,
                "why": asked.why,
                "asked": asked.time,
            }
            self._log = [*self._log, entry][-MOST_CHANGES:]

    def applied(self, subquery: Subquery) -> Subquery:
        """A subquery with the current rates in its sieves, as the tasks of the batch see it."""
        rates = self._rates.get(subquery.key)
        if rates is None or rates == RateLog.of(self._sieves[subquery.key].first):
            return subquery
        made = self._made.get(subquery.key)
        if made is None or _sieve(made).rates != rates:  # type: ignore[union-attr]
            made = self._made[subquery.key] = replace(
                subquery,
                prefixes=tuple(
                    replace(p, sieve=replace(p.sieve, rates=rates)) if p.sieve else p
                    for p in subquery.prefixes
                ),
            )
        return made

    def recorded(self) -> dict[str, Any]:
        """The part of shedding in the manifest of the batch."""
        if not self._sieves:
            return {}
        return {
            "newest_us": self._newest_us,
            "rates": {key: rates.recorded() for key, rates in self._rates.items()},
            "held": self._held,
            "changes": list(self._log),
        }

    def _asker(self, key: str) -> str:
        """Who chose the current share, for people."""
        if self._held:
            return "a user"
        newest = next((one for one in reversed(self._log) if one["subquery"] == key), None)
        if newest is not None and newest["by"].startswith(_POLICY):
            return str(newest["by"])
        return "the backlog" if self._upto else "the query"

    def after_batch(self, seen: BacklogSeen, time: str) -> None:
        """Choose the share of the next batches by the backlog; only for UP TO."""
        least = max(sieve.rate for sieve in self._sieves.values())
        kept = min(rates.newest for rates in self._rates.values())
        wanted, self._memory = decide(kept, least, seen, self._memory)
        if wanted != kept and self._waiting is None:
            why = f"{seen.waiting_rows:,} rows wait"
            self.ask(ShareRequest(_share(wanted), ENGINE, why, time))

    def seen(self, windows: Callable[[], Mapping[str, WindowDigest]]) -> ShedSeen | None:
        """What a policy may see of shedding; None if the share is not the policy's to choose.

        `windows` returns the figures of windows; it is called only while something is shed.
        """
        if not self.follows_backlog or self._waiting is not None:
            return None
        kept = min(rates.newest for rates in self._rates.values())
        found = ShedSeen(_share(kept), min(_share(s.rate) for s in self._sieves.values()))
        if kept == 1.0:
            return found
        digests = windows()
        for key in self._sieves:
            digest = digests.get(self._names[key])
            _, newest = digest.newest[-1] if digest is not None and digest.newest else (0, {})
            if newest.get("error") is not None and newest.get("kept", kept) < 1:
                return replace(found, error=newest["error"], kept=newest.get("kept", kept))
        return found

    def status(self) -> dict[str, Any]:
        """By subquery: the current share, the allowed maximum, and the newest changes."""
        return {
            self._names[key]: {
                "share": _share(rates.newest),
                "from_us": rates.rates[-1][0],
                "most": _share(self._sieves[key].rate) if self._upto else None,
                "by": self._asker(key),
                "changes": [
                    {name: value for name, value in one.items() if name != "subquery"}
                    for one in self._log
                    if one["subquery"] == key
                ],
            }
            for key, rates in self._rates.items()
        }


def _rate(share: float) -> float:
    """The rate of kept tuples for a shed share, exactly as a clause of the query computes it."""
    return float(1 - Fraction(repr(share)))


def _share(rate: float) -> float:
    """The shed share for a rate of kept tuples, without the rounding of `1 - rate`."""
    return round(1 - rate, 12)


def _sieve(subquery: Subquery) -> Sieve | None:
    """The sieve of a subquery whose rate may change; None if there is none."""
    sieves = (p.sieve for p in subquery.prefixes if p.sieve is not None)
    return next((sieve for sieve in sieves if sieve.unit is not None), None)
