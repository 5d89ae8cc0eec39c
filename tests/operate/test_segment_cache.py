"""Segments that stay mapped: loaded once while they are asked for, and let go when they are not."""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from tidegate.operate.segment_cache import Opened


def test_a_table_is_loaded_once_while_its_owner_asks_for_it() -> None:
    opened, loaded = Opened(most=2), []

    def load(name: str) -> pa.Table:
        loaded.append(name)
        return pa.table({"name": [name]})

    def ask(owner: str, *names: str) -> list[str]:
        found = opened.tables(owner, {n: partial(load, n) for n in names})
        assert list(found) == list(names)
        assert [t.column("name")[0].as_py() for t in found.values()] == list(names)
        before = loaded.copy()
        loaded.clear()
        return before

    assert ask("a", "1", "2") == ["1", "2"]
    assert ask("a", "2", "3") == ["3"]
    assert ask("a", "1", "3") == ["1"]
    assert ask("b", "1", "4") == ["4"], "what another owner has is not loaded again"
    assert ask("c", "1") == []
    assert ask("b", "1", "4") == []
    assert ask("a", "1", "3") == ["3"], "nobody had it any more"


def test_who_does_not_ask_any_more_keeps_nothing() -> None:
    """Others go on asking; what they have is theirs still."""
    opened = Opened(most=9)
    tables = {str(i): pa.table({"i": [i]}) for i in range(9)}
    loads = {name: partial(tables.__getitem__, name) for name in tables}
    opened.tables("ended", loads)
    for _ in range(4):
        for owner in ("a", "b", "c"):
            assert opened.tables(owner, {"1": loads["1"]}) == {"1": tables["1"]}
    assert set(opened._kept) == {"a", "b", "c"}
    assert all(set(kept) == {"1"} for kept in opened._kept.values())
