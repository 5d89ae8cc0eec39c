"""Which columns identify the rows of a result, for sinks that keep the newest row per key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from tidegate.query.name import NamedExpr, is_column


@dataclass(frozen=True)
class RowKey:
    """A row replaces all earlier rows that are equal in the columns `names`.

    If there are no such columns, `lack` says why. `replaces` says whether a key can have several
    rows; otherwise each key has one.
    """

    names: tuple[str, ...] = ()
    lack: str = "rows that each stand for themselves"
    replaces: bool = False

    def shown(self, columns: Sequence[NamedExpr]) -> RowKey:
        """The key under a select list's names; a RowKey with a `lack` if the list omits one."""
        found = []
        for name in self.names:
            shown = [new for new, expression in columns if is_column(expression, [name])]
            if not shown:
                return RowKey(lack=f"rows without {name}, which tells them apart")
            found.append(shown[0])
        return replace(self, names=tuple(found))

    def kept(self, conditions: Iterable[exp.Expression]) -> RowKey:
        """The key after a filter, which must keep all rows of a key or none."""
        named = {c.name for e in conditions for c in e.find_all(exp.Column)}
        if self.replaces and not named <= set(self.names):
            return RowKey(lack="a filter that a row may pass, and the next one of its key not")
        return self

    def first(self) -> RowKey:
        """The key after a limit per window, which may keep only some of a key's rows."""
        if self.replaces:
            return RowKey(lack="a limit that a row may be within, and the next one of its key not")
        return self


NO_KEY = RowKey()
