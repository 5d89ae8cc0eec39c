"""Finds syntax of other SQL dialects before parsing, and says how to write it here.

Examples are windows of Flink, Spark and ksqlDB, and statements of databases. The parser would
report a later word and confuse the user.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sqlglot import Token, TokenType

from tidegate.calendar.microsecond import UNITS_US
from tidegate.errors import QueryError
from tidegate.query.surface.advice import Advice, read_advice
from tidegate.sql.advice.refusal import PROCESS
from tidegate.sql.advice.slip import place_of

_TABLE = rf"""
WINDOW > (?P<kind>TUMBLING|HOPPING|SESSION) \( ::
    a window is written after its stream; got WINDOW {{kind}} (...). Write FROM {{stream}}
    {{window}}.
TUMBLE HOP WINDOW SESSION SESSION_WINDOW() ::
    a window is written after its stream; got {{word}}(...). Write FROM {{stream}} {{window}}, and
    leave {{word}} out; window_start and window_end are columns of the result.
CUMULATE() :: windows that grow are not available yet; got CUMULATE(...)
TUMBLE_START HOP_START SESSION_START() ::
    is a column of the result; got {{word}}(...). Write window_start.
TUMBLE_END HOP_END SESSION_END TUMBLE_ROWTIME HOP_ROWTIME SESSION_ROWTIME() ::
    is a column of the result; got {{word}}(...). Write window_end.
WINDOW > \. START :: is a column of the result; got window.start. Write window_start.
WINDOW > \. END :: is a column of the result; got window.end. Write window_end.
GROUP BY < WINDOW > ([,;)]|HAVING|ORDER BY|LIMIT|$) ::
    every row is of one window already; got GROUP BY window. Leave it out; window_start and
    window_end are columns of the result.
, < WINDOW > ([,;)]|HAVING|ORDER BY|LIMIT|$) ::
    every row is of one window already; got window. Leave it out; window_start and window_end are
    columns of the result.
(?![.,]$).+ < EMIT > (?P<said>(CHANGES|AFTER|AT)\b( [^\s;]+)?( [^\s;]+)?) ::
    rows of a window come when it is final, and before that at multiples of a time; got EMIT
    {{said}}. Write EMIT EVERY '1 second'.
(?![.,]$).+ < EMIT > (?P<said>(FINAL|ON)\b( [^\s;]+)?( [^\s;]+)?) ::
    every window is put out once, when it is final; got EMIT {{said}}. Leave EMIT {{said}} out.
;? < CREATE > STREAM IF ::
    a stream lasts as long as the script; got IF NOT EXISTS. Leave IF NOT EXISTS out.
;? < CREATE > MAKES+ TABLE ::
    a table is made of files; got CREATE {{said}}. Write CREATE TABLE {{name}} FROM 'uri'
;? < CREATE > TABLE IF ::
    a table lasts as long as the script; got IF NOT EXISTS. Leave IF NOT EXISTS out.
;? < CREATE > TABLE (?P<name>\S+) AS ::
    what a script makes of a query is a stream; got CREATE TABLE ... AS. Write CREATE STREAM
    {{name}} AS SELECT ...
;? < CREATE > MAKES* VIEW ::
    what a script makes is a stream; got CREATE {{said}}. Write CREATE STREAM {{name}} AS SELECT ...
;? < CREATE > MAKES+ STREAM ::
    what a script makes is a stream; got CREATE {{said}}. Write CREATE STREAM {{name}} ...
;? < CREATE > MAKES* SOURCE ::
    what a script makes is a stream; got CREATE {{said}}. Write CREATE STREAM {{name}} FROM 'uri'
    TIME ts
;? < CREATE > MAKES* SINK ::
    an output is named before its query; got CREATE {{said}}. Write INSERT INTO {{name}} SELECT ...
;? < CREATE > MAKES* FUNCTION ::
    functions are not made in SQL; got CREATE {{said}}. There is no way yet in SQL; in Python there
    is @tg.function: see docs/python.md.
;? < CREATE > MAKES* (INDEX|DATABASE|SCHEMA|CATALOG|CONNECTION) ::
    a script makes streams only; got CREATE {{said}}
;? < INSERT > OVERWRITE ::
    an output is added to, batch by batch, and never written over; got INSERT OVERWRITE. Write
    INSERT INTO name SELECT ...; --out says where it goes.
;? < INSERT > \S+( TABLE)? (?P<name>\S+) VALUES ::
    INSERT INTO names the output of a query, and takes no rows; got VALUES. Write INSERT INTO
    {{name}} SELECT ...; rows come from files: CREATE STREAM r FROM 'rows.csv'.
;? < INSERT > \S+( TABLE)? (?P<name>\S+) \( (?!SELECT\b|WITH\b|FROM\b|\() ::
    an output has the columns of its query; got a list of columns after {{name}}. Write INSERT INTO
    {{name}} SELECT ... AS name
SELECT < TOP > (?P<rows>[\d.]+) :: is written at the end; got TOP {{rows}}. Write LIMIT {{rows}}.
WATERMARK > FOR( (?P<column>\S+))? ::
    how far tuples may be out of order is said by DISORDER; got WATERMARK FOR. Write TIME
    {{column}}{{disorder}}.
MATCH_RECOGNIZE() :: patterns of rows are not available yet; got MATCH_RECOGNIZE. {PROCESS}
DSTREAM() :: rows that leave a window are not put out; got DSTREAM(...)
ISTREAM RSTREAM() ::
    every result is a stream of new rows already; got {{word}}(...). Leave {{word}} out.
[ > NOW :: windows of one instant are not available yet; got [NOW]
[ > (?P<kind>\S+) UNBOUNDED ::
    a window must have a size, else its state grows for ever; got [{{kind}} UNBOUNDED]
[ > PARTITION BY :: windows of rows are of the groups of GROUP BY; got [PARTITION BY ...]
;? < EXPLAIN DESCRIBE DESC SHOW > ::
    a script holds CREATE STREAM, INSERT INTO and SELECT; got {{word}}. Run `tidegate explain
    QUERY.sql` to see the plan, the streams and their columns.
\( < + > \) :: outer joins are written in FROM; got (+). Write LEFT JOIN ... ON ... there.
"""
"""About a word: the word before it, `<`, the words, `>` and what follows. `()` is a call.

`MAKES* VIEW` has any number of words as TEMPORARY before VIEW, and IF NOT EXISTS and a name after
it. The groups of a pattern, `word`, `stream`, `window` and `disorder` may be used below it.
"""

_MORE = "(MATERIALIZED |TEMPORARY |TEMP |OR |REPLACE |GLOBAL |EXTERNAL |UNIQUE )"
_CALLED = "(?!INTO$|WITH$|STREAM$|TABLE$).*"
_CALLS = ("TUMBLE", "HOP", "WINDOW", "CUMULATE", "SESSION", "SESSION_WINDOW")
_SLIDE_FIRST = ("TUMBLE", "HOP")
_GAPS = ("SESSION", "SESSION_WINDOW")
_UNNAMED = {"name": "name", "column": "ts"}
_QUOTED = {TokenType.STRING: "'", TokenType.IDENTIFIER: "`"}

_Rule = tuple[re.Pattern[str], re.Pattern[str], Advice]


def rules() -> Iterator[tuple[str, _Rule]]:
    """For each word: the patterns before and after it, and the advice."""
    for entry in read_advice(_TABLE):
        about = re.sub(r"^([A-Z_ ]+)\(\)$", rf"{_CALLED} < \1 > \\(", entry.about)
        before, words, after = re.findall(r"^(?:(.+) < )?(.*?) >(.*)$", about)[0]
        after = re.sub(
            r"MAKES([*+]) (.*)",
            rf"(?P<said>{_MORE}\1\2( IF| NOT| EXISTS)*)( (?P<name>[^\\s;]+))?",
            after.strip(),
        )
        after += r"\b" if after[-1:].isalpha() else ""
        rule = (re.compile(before or ".*", re.DOTALL), re.compile(after, re.IGNORECASE), entry)
        yield from ((word, rule) for word in words.split())


_RULES: dict[str, list[_Rule]] = {}
for _word, _rule in rules():
    _RULES.setdefault(_word, []).append(_rule)


def refuse_foreign(tokens: Sequence[Token]) -> None:
    """Raises with advice for words of other SQL dialects."""
    words = [_word_of(token) for token in tokens]
    for at, token in enumerate(tokens):
        rules = _RULES.get(words[at].upper(), ())
        following = " ".join(words[at + 1 : at + 20]) if rules else ""
        for before, after, advice in rules:
            match = after.match(following)
            if match is None or not before.fullmatch(words[at - 1].upper() if at else ""):
                continue
            fields = _Fields(tokens, at, match.groupdict())
            got, remedy = (text.format_map(fields) for text in (advice.got, advice.remedy))
            raise QueryError(place_of(token), advice.why, got, remedy)


def _word_of(token: Token) -> str:
    """A token as a word without spaces; quoted tokens differ from keywords."""
    quote = _QUOTED.get(token.token_type)
    return token.text if quote is None else quote + token.text.replace(" ", "\0") + quote


class _Fields(dict[str, str]):
    """Values for an advice text about the words around `at`: pattern groups and more."""

    def __init__(self, tokens: Sequence[Token], at: int, groups: dict[str, str | None]) -> None:
        super().__init__(word=tokens[at].text.upper())
        for name, found in groups.items():
            shown = (found or _UNNAMED[name]).strip("`").replace("\0", " ")
            self[name] = shown if name in _UNNAMED else shown.upper()
        self._tokens, self._at = tokens, at

    def __missing__(self, name: str) -> str:
        return {"stream": self._stream, "window": self._window, "disorder": self._disorder}[name]()

    def _inside(self) -> list[Token]:
        """The tokens in the next parentheses."""
        depth, found = 0, []
        for token in self._tokens[self._at + 1 :]:
            change = {"(": 1, ")": -1}.get(token.text, 0)
            depth += change
            if depth == 0 and change:
                break
            if depth:
                found.append(token)
        return found[1:]

    def _window(self) -> str:
        lengths = list(_durations(self._inside()))[:2] or ["5 MINUTES"]
        if self["word"] in _GAPS or self.get("kind") in _GAPS:
            return f"[SESSION GAP {lengths[0]}]"
        if self["word"] in _SLIDE_FIRST:
            lengths.reverse()
        return f"[RANGE {' SLIDE '.join(lengths)}]"

    def _disorder(self) -> str:
        return next((f" DISORDER {d}" for d in _durations(self._tokens[self._at :])), "")

    def _stream(self) -> str:
        """The stream that the statement reads, as far as tokens tell."""
        words = [t.text for t in self._inside()]
        if "TABLE" in (w.upper() for w in words[:1]) and len(words) > 1:
            return words[1]
        start = max((i for i in range(self._at) if self._tokens[i].text == ";"), default=0)
        for token, after in zip(self._tokens[start:], self._tokens[start + 1 :]):
            if token.token_type is TokenType.FROM and after.token_type is TokenType.VAR:
                return words[0] if words and after.text.upper() in _CALLS else after.text
        return "stream"


def _durations(tokens: Sequence[Token]) -> Iterator[str]:
    for token, after in zip(tokens, [*tokens[1:], None]):
        if token.token_type in (TokenType.STRING, TokenType.NUMBER):
            amount, *units = [*token.text.split(), after.text if after else ""][:2] or [""]
            unit = "".join(units).upper().removesuffix("S")
            if unit.lower() in UNITS_US:
                yield f"{amount} {unit}" if amount == "1" else f"{amount} {unit}S"
