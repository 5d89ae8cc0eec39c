"""The prompt of `tidegate sql`: history, multi-line input and completion with Tab."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer

from tidegate.sql.statement import KEYWORDS, function_names
from tidegate.storage.user_folder import user_folder

_BEFORE = re.compile(r"(?:(\w+)\.)?(\w*)$")
_PROMPT, _MORE = "tidegate> ", "     ...> "


class SqlCompleter(Completer):
    """Completes columns, streams, tables, functions and keywords; names of the data come first."""

    def __init__(self, streams: Callable[[], Mapping[str, Sequence[str]]]) -> None:
        self._streams = streams
        self._words = [*function_names(), *KEYWORDS]

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        match = _BEFORE.search(document.text_before_cursor)
        assert match is not None  # it may be empty
        of, begun = match.groups()
        for word in self._candidates(of, begun):
            if word.lower().startswith(begun.lower()):
                yield Completion(_quoted(word), start_position=-len(begun))

    def _candidates(self, of: str | None, begun: str) -> list[str]:
        streams = self._streams()
        named = [n for n in streams if of is None or n.lower() == of.lower()] or list(streams)
        columns = list(dict.fromkeys(c for n in named for c in streams[n]))
        if of is not None:
            return columns
        words = [w.lower() for w in self._words] if begun.islower() else self._words
        return list(dict.fromkeys([*streams, *columns, *words]))


def prompt_session(
    complete: Callable[[str], bool], streams: Callable[[], Mapping[str, Sequence[str]]]
) -> PromptSession[str]:
    """A prompt; Enter ends the input if `complete` returns True."""
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer: Any = event.current_buffer
        if complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return PromptSession(
        _PROMPT,
        multiline=True,
        prompt_continuation=_MORE,
        key_bindings=keys,
        history=_history(),
        completer=SqlCompleter(streams),
        complete_while_typing=False,
        lexer=PygmentsLexer(SqlLexer),
    )


def _history() -> History:
    """The user's earlier input from a file, or only this session's if there is no folder for it."""
    folder = user_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "sql_history").touch()
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(folder / "sql_history"))


def _quoted(word: str) -> str:
    if re.fullmatch(r"\w+", word) and not word[0].isdigit():
        return word
    return f"`{word.replace('`', '``')}`"
