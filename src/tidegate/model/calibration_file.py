"""What was measured of a query, as a file between `tidegate calibrate` and those who predict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate import disk
from tidegate.errors import OptionError
from tidegate.model.calibration import Calibration
from tidegate.model.estimator import Estimator
from tidegate.model.known import Known

FORMAT = 1
"""The number of the file's format."""

_REMEDY = "`tidegate calibrate QUERY.sql --json FILE` writes one."


@dataclass(frozen=True)
class QueryCalibration:
    """What was measured of the subqueries of a query, with how many rows and instances.

    `fingerprint` names the meaning of the query, `slots` is how many instances ran at once, None
    where all did, `beside` knows what whole batches took beside the work of instances, and `facts`
    are the machine, versions and windows, for people.
    """

    fingerprint: str
    rows: int
    batches: int
    instances: int
    slots: int | None
    subqueries: tuple[Known, ...]
    beside: Estimator
    facts: Mapping[str, Any]

    def recorded(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "calibration": FORMAT,
            "facts": dict(self.facts),
            "rows": self.rows,
            "batches": self.batches,
            "instances": self.instances,
            "slots": self.slots,
            "fingerprint": self.fingerprint,
            "subqueries": [of.recorded() for of in self.subqueries],
            "beside": self.beside.recorded(),
        }

    @staticmethod
    def restored(recorded: Mapping[str, Any]) -> QueryCalibration:
        """What `recorded` gave."""
        plain = ("fingerprint", "rows", "batches", "instances", "slots", "facts")
        return QueryCalibration(
            **{name: recorded[name] for name in plain},
            subqueries=tuple(Known.restored(of) for of in recorded["subqueries"]),
            beside=Estimator.restored(recorded["beside"]),
        )

    def join(self, where: str) -> Calibration:
        """What is known of the only join of the query, for the model of joins."""
        joins = [of for of in self.subqueries if of.kind == "join"]
        found = joins[0].calibration() if len(joins) == 1 else None
        if found is None:
            got = ", ".join(of.name for of in joins) or "one without"
            raise OptionError(where, "must be of a query with one join that took tuples", got)
        return found


def read_calibration(path: str, where: str = "--calibration") -> QueryCalibration:
    """A file that `tidegate calibrate` has written."""
    try:
        with disk.current().open(path) as file:
            recorded = json.load(file)
    except FileNotFoundError:
        raise OptionError(where, "must be a calibration", f"no such file {path}", _REMEDY) from None
    except OSError as error:
        got = f"{path}: {error.strerror or error}"
        raise OptionError(where, "must be a calibration", got, _REMEDY) from None
    except ValueError:
        raise OptionError(
            where, "must be a calibration", f"{path}, which is not JSON", _REMEDY
        ) from None
    written = recorded.get("calibration") if isinstance(recorded, dict) else None
    if written is None:
        raise OptionError(where, "must be a calibration", f"{path}, which is other JSON", _REMEDY)
    if written != FORMAT:
        got = f"{path} with the format {written}"
        raise OptionError(where, f"must have the format {FORMAT}", got, _REMEDY)
    try:
        return QueryCalibration.restored(recorded)
    except (KeyError, TypeError, ValueError) as error:
        got = f"{path}, where something is missing or damaged ({error})"
        raise OptionError(where, "must be a calibration", got, _REMEDY) from None
