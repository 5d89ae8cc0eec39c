"""What other SQL has in words of its own, between a script's tokens and the parser.

Windows of Flink, Spark and ksqlDB, statements of databases: the parser would stumble over a later
word, so they are found before it, and told with what to write here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType

from tidegate.errors import NO_WAY, QueryError
from tidegate.microsecond import UNITS_US
from tidegate.sql.refusal import PROCESS

_WINDOWS = ("TUMBLE", "WINDOW", "HOP", "CUMULATE")
_SESSIONS = ("SESSION", "SESSION_WINDOW")
_BOUNDS = {
    f"{kind}_{word}": f"window_{'start' if word == 'START' else 'end'}"
    for kind in ("TUMBLE", "HOP", "SESSION")
    for word in ("START", "END", "ROWTIME")
}
_MADE_OF = ("MATERIALIZED", "TEMPORARY", "TEMP", "OR", "REPLACE", "GLOBAL", "EXTERNAL", "UNIQUE")
_EXISTS = ("IF", "NOT", "EXISTS")
_FINAL = ("FINAL", "ON")
_EARLY = ("CHANGES", "AFTER", "AT", "EVERY")


@dataclass(frozen=True)
class _Place:
    """A token and what is around it."""

    tokens: Sequence[Token]
    at: int

    def word(self, offset: int = 0) -> str:
        """The token so far away in capitals; empty outside of the script."""
        at = self.at + offset
        return self.tokens[at].text.upper() if 0 <= at < len(self.tokens) else ""

    @property
    def opens(self) -> bool:
        """Whether the word is a call, and not a name with something in parentheses after it."""
        return self.word(1) == "(" and self.word(-1) not in ("INTO", "WITH", "STREAM", "TABLE")

    @property
    def first(self) -> bool:
        return self.at == 0 or self.word(-1) == ";"

    def inside(self) -> list[Token]:
        """What stands in the parentheses of a call."""
        depth, found = 0, []
        for token in self.tokens[self.at + 1 :]:
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            if depth == 0:
                break
            found.append(token)
        return found[1:]

    def stream(self) -> str:
        """The name of the stream that the statement reads, as far as tokens tell."""
        words = [t.text for t in self.inside()]
        if "TABLE" in (w.upper() for w in words[:1]) and len(words) > 1:
            return words[1]
        start = max((i for i in range(self.at) if self.tokens[i].text == ";"), default=0)
        for token, after in zip(self.tokens[start:], self.tokens[start + 1 :]):
            if token.token_type is TokenType.FROM and after.token_type is TokenType.VAR:
                call = after.text.upper() in (*_WINDOWS, *_SESSIONS)
                return words[0] if call and words else after.text
        return "stream"

    def durations(self) -> list[str]:
        """The durations among the arguments of a call."""
        return list(_durations(self.inside()))

    def told(self, requirement: str, got: str, remedy: str) -> QueryError:
        token = self.tokens[self.at]
        column = max(1, token.col - len(token.text) + 1)
        return QueryError(f"SQL line {token.line}, column {column}", requirement, got, remedy)


def _durations(tokens: Sequence[Token]) -> Iterator[str]:
    for token, after in zip(tokens, [*tokens[1:], None]):
        words = token.text.split()
        unit = after.text.upper() if after is not None else ""
        if token.token_type not in (TokenType.STRING, TokenType.NUMBER):
            continue
        if len(words) == 2 and words[1].upper().removesuffix("S").lower() in UNITS_US:
            yield _duration(*words)
        elif unit.removesuffix("S").lower() in UNITS_US:
            yield _duration(token.text, unit)


def _duration(amount: str, unit: str) -> str:
    plain = unit.upper().removesuffix("S")
    return f"{amount} {plain}" if amount == "1" else f"{amount} {plain}S"


def refuse_elsewhere(tokens: Sequence[Token]) -> None:
    """Say how it is written here where a script has words of other SQL."""
    for at, token in enumerate(tokens):
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            continue
        for rule in _RULES.get(token.text.upper(), ()):
            error = rule(_Place(tokens, at))
            if error is not None:
                raise error


def _window(place: _Place) -> QueryError | None:
    word = place.word()
    if not place.opens:
        return None
    if word == "CUMULATE":
        return place.told("windows that grow are not available yet", f"{word}(...)", NO_WAY)
    lengths = place.durations() or ["5 MINUTES"]
    if len(lengths) > 1:
        size, slide = lengths[:2] if word == "WINDOW" else lengths[1::-1]
        window = f"[RANGE {size} SLIDE {slide}]"
    else:
        window = f"[RANGE {lengths[0]}]"
    return place.told(
        "a window is written after its stream",
        f"{word}(...)",
        f"Write FROM {place.stream()} {window}, and leave {word} out; window_start and window_end "
        "are columns of the result.",
    )


def _session(place: _Place) -> QueryError | None:
    word = place.word()
    bracketed = place.word(-1) == "["
    if not bracketed and not place.opens:
        return None
    got = f"{word}(...)" if place.opens else f"[{word} ...]"
    return place.told("session windows are not available yet", got, PROCESS)


def _bound(place: _Place) -> QueryError | None:
    word = place.word()
    if word == "WINDOW" and place.word(1) == "." and place.word(2) in ("START", "END"):
        column = f"window_{place.word(2).lower()}"
        return place.told(
            "is a column of the result", f"window.{place.word(2).lower()}", f"Write {column}."
        )
    if word == "WINDOW" or not place.opens:
        return None
    return place.told("is a column of the result", f"{word}(...)", f"Write {_BOUNDS[word]}.")


def _grouped_window(place: _Place) -> QueryError | None:
    if place.opens or place.word(-1) not in ("GROUP BY", ","):
        return None
    if place.word(1) not in (",", "", ";", "HAVING", "ORDER BY", "LIMIT", ")"):
        return None
    return place.told(
        "every row is of one window already",
        f"{place.word(-1)} window".lstrip(", "),
        "Leave it out; window_start and window_end are columns of the result.",
    )


def _tumbling(place: _Place) -> QueryError | None:
    kinds = ("TUMBLING", "HOPPING", "SESSION")
    if place.word(1) not in kinds or place.word(2) != "(":
        return None
    after = _Place(place.tokens, place.at + 1)
    if place.word(1) == "SESSION":
        return place.told("session windows are not available yet", "WINDOW SESSION (...)", PROCESS)
    lengths = after.durations() or ["5 MINUTES"]
    slide = f" SLIDE {lengths[1]}" if len(lengths) > 1 else ""
    return place.told(
        "a window is written after its stream",
        f"WINDOW {place.word(1)} (...)",
        f"Write FROM {after.stream()} [RANGE {lengths[0]}{slide}].",
    )


def _emit(place: _Place) -> QueryError | None:
    if place.word(1) not in (*_FINAL, *_EARLY) or place.word(-1) in ("", ".", ","):
        return None
    written = " ".join(w for w in (place.word(i) for i in range(4)) if w and w != ";")
    if place.word(1) in _EARLY:
        return place.told("a window is put out once, when it is final", written, NO_WAY)
    return place.told(
        "every window is put out once, when it is final", written, f"Leave {written} out."
    )


def _create(place: _Place) -> QueryError | None:
    if not place.first:
        return None
    if place.word(1) == "STREAM" and place.word(2) == "IF":
        return place.told(
            "a stream lasts as long as the script", "IF NOT EXISTS", "Leave IF NOT EXISTS out."
        )
    words = [place.word(i) for i in range(1, 10)]
    at = next((i for i, w in enumerate(words) if w not in _MADE_OF), 0)
    if words[at] not in _MAKES or (at == 0 and words[0] == "STREAM"):
        return None
    requirement, remedy = _MAKES[words[at]]
    after = next((i for i in range(at + 1, 9) if words[i] not in _EXISTS), at + 1)
    name = place.tokens[place.at + after + 1].text if words[after] else "name"
    said = " ".join(["CREATE", *words[:after]])
    return place.told(requirement, said, remedy.format(name=name))


_MAKES = {
    "TABLE": ("tables are not available yet", NO_WAY),
    "VIEW": ("what a script makes is a stream", "Write CREATE STREAM {name} AS SELECT ..."),
    "STREAM": ("what a script makes is a stream", "Write CREATE STREAM {name} ..."),
    "SOURCE": ("what a script makes is a stream", "Write CREATE STREAM {name} FROM 'uri' TIME ts"),
    "SINK": ("an output is named before its query", "Write INSERT INTO {name} SELECT ..."),
    "FUNCTION": (
        "functions are not made in SQL",
        "There is no way yet in SQL; in Python there is @tg.function: see docs/python.md.",
    ),
    **dict.fromkeys(
        ("INDEX", "DATABASE", "SCHEMA", "CATALOG", "CONNECTION"),
        ("a script makes streams only", NO_WAY),
    ),
}
"""By what CREATE would make: why not, and what to do."""


def _insert(place: _Place) -> QueryError | None:
    if not place.first:
        return None
    if place.word(1) == "OVERWRITE":
        return place.told(
            "an output is added to, batch by batch, and never written over",
            "INSERT OVERWRITE",
            "Write INSERT INTO name SELECT ...; --out says where it goes.",
        )
    skip = 1 if place.word(2) == "TABLE" else 0
    name = place.tokens[place.at + 2 + skip].text if place.word(2 + skip) else "name"
    if place.word(3 + skip) == "VALUES":
        return place.told(
            "INSERT INTO names the output of a query, and takes no rows",
            "VALUES",
            f"Write INSERT INTO {name} SELECT ...; rows come from files: CREATE STREAM r FROM "
            "'rows.csv'.",
        )
    if place.word(3 + skip) == "(" and place.word(4 + skip) not in ("SELECT", "WITH", "FROM", "("):
        return place.told(
            "an output has the columns of its query",
            f"a list of columns after {name}",
            f"Write INSERT INTO {name} SELECT ... AS name",
        )
    return None


def _top(place: _Place) -> QueryError | None:
    number = place.at + 1 < len(place.tokens) and (
        place.tokens[place.at + 1].token_type is TokenType.NUMBER
    )
    if place.word(-1) != "SELECT" or not number:
        return None
    said = f"TOP {place.word(1)}"
    return place.told("is written at the end", said, f"Write LIMIT {place.word(1)}.")


def _watermark(place: _Place) -> QueryError | None:
    if place.word(1) != "FOR":
        return None
    column = place.tokens[place.at + 2].text if place.word(2) else "ts"
    rest = place.tokens[place.at :]
    length = next(_durations(rest), None)
    disorder = f" DISORDER {length}" if length else ""
    return place.told(
        "how far tuples may be out of order is said by DISORDER",
        "WATERMARK FOR",
        f"Write TIME {column}{disorder}.",
    )


def _pattern(place: _Place) -> QueryError | None:
    if not place.opens:
        return None
    return place.told("patterns of rows are not available yet", "MATCH_RECOGNIZE", PROCESS)


def _relation_to_stream(place: _Place) -> QueryError | None:
    word = place.word()
    if not place.opens:
        return None
    if word == "DSTREAM":
        return place.told("rows that leave a window are not put out", f"{word}(...)", NO_WAY)
    return place.told(
        "every result is a stream of new rows already", f"{word}(...)", f"Leave {word} out."
    )


def _bracket(place: _Place) -> QueryError | None:
    if place.word(1) == "NOW":
        return place.told("windows of one instant are not available yet", "[NOW]", NO_WAY)
    if place.word(2) == "UNBOUNDED":
        return place.told(
            "a window must have a size, else its state grows for ever",
            f"[{place.word(1)} UNBOUNDED]",
            NO_WAY,
        )
    if place.word(1) == "PARTITION BY":
        return place.told(
            "windows of rows are of the groups of GROUP BY",
            "[PARTITION BY ...]",
            NO_WAY,
        )
    return None


def _statement(place: _Place) -> QueryError | None:
    word = place.word()
    if not place.first:
        return None
    return place.told(
        "a script holds CREATE STREAM, INSERT INTO and SELECT",
        word,
        "Run `tidegate explain QUERY.sql` to see the plan, the streams and their columns.",
    )


def _asof(place: _Place) -> QueryError | None:
    if not place.opens:
        return None
    return place.told("ASOF JOIN is not available yet", "MATCH_CONDITION", NO_WAY)


def _outer_mark(place: _Place) -> QueryError | None:
    if place.word(-1) != "(" or place.word(1) != ")":
        return None
    return place.told("only inner joins are available yet", "(+)", NO_WAY)


_Rule = Callable[[_Place], QueryError | None]

_RULES: dict[str, tuple[_Rule, ...]] = {
    "WINDOW": (_tumbling, _window, _bound, _grouped_window),
    **dict.fromkeys(("TUMBLE", "HOP", "CUMULATE"), (_window,)),
    **dict.fromkeys(_SESSIONS, (_session,)),
    **dict.fromkeys(_BOUNDS, (_bound,)),
    **dict.fromkeys(("ISTREAM", "DSTREAM", "RSTREAM"), (_relation_to_stream,)),
    **dict.fromkeys(("EXPLAIN", "DESCRIBE", "DESC", "SHOW"), (_statement,)),
    "EMIT": (_emit,),
    "CREATE": (_create,),
    "INSERT": (_insert,),
    "TOP": (_top,),
    "WATERMARK": (_watermark,),
    "MATCH_RECOGNIZE": (_pattern,),
    "MATCH_CONDITION": (_asof,),
    "[": (_bracket,),
    "+": (_outer_mark,),
}
"""By the word they begin with; most words begin none."""
