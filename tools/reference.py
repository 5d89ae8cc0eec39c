"""Makes docs/reference/*.md from the code, and the results in docs/sql/functions.md.

.venv/bin/python -m tools.reference            # write
.venv/bin/python -m tools.reference --check    # fail where a page is not what the code says
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, fields
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
from tools.generated import main
from tools.markdown_text import code, first_sentence, table
from tools.sql_reference import FUNCTIONS, aggregate_page, function_page

from tidegate import errors
from tidegate.cli.main import commands
from tidegate.driver.metric.registry import FAMILIES
from tidegate.elastic.registry import POLICIES
from tidegate.query.clause.registry import CLAUSES
from tidegate.query.grammar import SyntaxPart
from tidegate.query.stream import Stream
from tidegate.query.window.registry import WINDOWS
from tidegate.route.registry import PARTITIONERS
from tidegate.session.session import Session
from tidegate.sink.registry import SINKS
from tidegate.source.registry import FORMATS, SOURCES, TABLES
from tidegate.sql.advice import foreign, refusal

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"
HEAD = "<!-- Written by tools/reference.py from the code; `make reference` writes it again. -->\n\n"
SHARED = 2
"""An option that so many commands have is told once."""

Option = tuple[str, str]
"""How an option is written, and what it does."""


def prose(text: str) -> str:
    """A help text as a paragraph, with what Markdown would take for markup as it is."""
    flat = re.sub(r"\[default: (.*)\]$", r"(default: \1)", " ".join(text.split()))
    return re.sub(r"<([^>]*)>", r"`<\1>`", flat.replace("*", r"\*"))


# --- commands


def walk(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """A command and all below it, by their whole names."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from walk(found, f"{name} {below}")


def options_of(command: click.Command) -> list[Option]:
    """The options of a command in their order; --help is not told for each."""
    context = click.Context(command)
    told = []
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record and record[1] and "--help" not in parameter.opts:
            told.append((" ".join(record[0].split()), prose(record[1])))
    return told


def option_rows(options: Iterable[Option]) -> str:
    return table(("option", "meaning"), ((code(written), told) for written, told in options))


def command_page() -> str:
    found = list(walk(commands, "tidegate"))
    of = {name: options_of(command) for name, command in found}
    users: dict[Option, list[str]] = {}
    for name, options in of.items():
        for option in options:
            users.setdefault(option, []).append(name)
    shared = [option for option, by in users.items() if len(by) >= SHARED]
    parts = [
        "# Commands and options\n\nEvery command and option, from the command line itself. "
        "[Command line](../cli.md) explains the live view, the shell and exit codes.",
        "## Shared options\n\nSeveral commands have these. Each command names the ones it takes.",
        option_rows(shared),
    ]
    for name, command in found:
        usage = " ".join(command.collect_usage_pieces(click.Context(command, info_name=name)))
        parts.append(f"## {name}\n\n```synopsis\n{name} {usage}\n```")
        parts.append(prose((command.help or command.get_short_help_str(300)).partition("\f")[0]))
        own = [option for option in of[name] if option not in shared]
        if own:
            parts.append(option_rows(own))
        taken = [re.split(r"[ ,]", option[0])[0] for option in of[name] if option in shared]
        if taken:
            linked = ", ".join(code(word) for word in taken)
            parts.append(f"[Shared](#shared-options): {linked}.")
    return "\n\n".join(parts)


# --- clauses


def placeholder(part: SyntaxPart) -> str:
    """What stands for the value of a part, with its unit."""
    words = getattr(part.value, "words", ())
    if words:
        return "|".join(word.upper() for word in words)
    kind = type(part.value).__name__.removesuffix("Value")
    named = {"Duration": "d", "Range": "d", "Text": "'text'", "Name": "name", "Error": "x PERCENT"}
    return named.get(kind, f"n {part.value.unit}".rstrip())


def syntax(made: Any) -> str:
    """A clause or window as it is written, with what may be left out in brackets."""
    words = [made.word]
    for part in made.parts:
        written = f"{part.word} {placeholder(part)}".strip()
        words.append(written if part.required or not part.word else f"[{written}]")
    return " ".join(words)


def clause_page() -> str:
    windows = [
        [
            code(f"[{syntax(made)}]"),
            code(f".window({python_window(made)})"),
            first_sentence(made.__doc__),
        ]
        for made in WINDOWS.values()
    ]
    clauses = []
    for made in CLAUSES.values():
        added = [f"NAME{end}" for end in made.beside] + [name for name, _ in made.last]
        method = code(f".{called(made)}(...)") if called(made) else ""
        columns = ", ".join(map(code, added)) or "none"
        clauses.append(
            [code(f"{made.lead} {syntax(made)}".strip()), method, columns, module_said(made)]
        )
    return "\n\n".join(
        [
            "# Clauses\n\nEvery window and every clause of SQL, with the method in Python. `d` is "
            "a duration, `n` a number, and what is in brackets inside may be left out.",
            "## Windows\n\nWindows stand after a stream or a subquery: "
            "[windows](../sql/windows.md).",
            table(("SQL", "Python", "what it is"), windows),
            "## Clauses after the query\n\nThey follow `LIMIT`, in any order.",
            table(("SQL", "Python", "columns added", "what it does"), clauses),
        ]
    )


def called(made: Any) -> str:
    """The method of a stream that asks for a clause; some are methods of their own."""
    if made.method:
        return str(made.method)
    tree = ast.parse(inspect.getsource(Stream))
    methods = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    makes = re.compile(rf"\b{made.__name__}[.(]")
    return next((node.name for node in methods if makes.search(ast.unparse(node))), "")


def python_window(made: Any) -> str:
    size = "" if made.argument == "range" else f"{made.argument}="
    return ", ".join([f"{size}...", *(f"{option}=..." for option in made.options)])


def module_said(made: type) -> str:
    """What the module of a clause says of it, after its name."""
    return first_sentence(inspect.getdoc(import_module(made.__module__))).partition(": ")[2]


# --- metrics


def metric_page() -> str:
    rows = [[code(f.series_name), f.kind, ", ".join(map(code, f.labels)), f.help] for f in FAMILIES]
    return "\n\n".join(
        [
            "# All metrics\n\nWhat `/metrics` serves. Every series also has the label `query`. "
            "[Metrics](../metrics.md) says how to scrape them.",
            table(("name", "type", "labels", "what it is"), rows),
        ]
    )


# --- errors


def kinds(kind: type[errors.TidegateError], depth: int = 0) -> Iterator[tuple[int, Any]]:
    yield depth, kind
    for below in kind.__subclasses__():
        if below.__module__ == errors.__name__:
            yield from kinds(below, depth + 1)


def error_page() -> str:
    rows = []
    for depth, kind in kinds(errors.TidegateError):
        exit_code = "2" if issubclass(kind, errors.UserError) else "1"
        indent = "&nbsp;&nbsp;" * depth
        told = first_sentence(inspect.getdoc(kind))
        rows.append([f"{indent}{code(kind.__name__)}", exit_code if depth else "", told])
    refused: dict[tuple[str, str], list[str]] = {}
    rules = [("", advice) for advice in refusal.REFUSALS.values()]
    for word, advice in [*rules, *((word, rule[-1]) for word, rule in foreign.rules())]:
        got = plain(advice.got, word)
        if "{" not in got.replace("{kind}", ""):
            why, remedy = plain(advice.why, "..."), plain(advice.remedy or "", "it")
            reason = why.replace("*", r"\*"), remedy.replace("*", r"\*")
            refused.setdefault(reason, []).append(code(got))
    ways = [[", ".join(dict.fromkeys(got)), *reason] for reason, got in refused.items()]
    return "\n\n".join(
        [
            "# Errors\n\nEvery message has one shape: "
            "`<where>: <requirement>; got <actual>. <what to do next>`. A mistake in a query or an "
            "option ends with exit code 2, before anything starts. A failure while running ends "
            "with 1; what was committed stands.",
            "## The tree\n\nPython raises these, from `tidegate.errors`. They keep their parts as "
            "fields: `where`, `requirement`, `got`, `remedy`.",
            table(("error", "exit code", "when"), rows),
            "## What other SQL has\n\nThe parser knows these words and says what to do; the tests "
            "follow its advice. A name in braces is what was written there.",
            table(("written", "why it is refused", "what to do"), ways),
        ]
    )


def plain(text: str, word: str) -> str:
    """A text of a table of advice for people: its first words stand for what it is told of."""
    return " ".join(text.replace("{said}", "...").replace("{word}", word).split())


# --- settings


def variables() -> list[tuple[str, str]]:
    """The variables of the environment that the package names, with what is said behind them."""
    found: dict[str, str] = {}
    pattern = re.compile(r"(TIDEGATE|OPENLINEAGE)_[A-Z_]+")
    for source in sorted((ROOT / "src").rglob("*.py")):
        tree = ast.parse(source.read_text(encoding="utf-8"))
        for body in (getattr(node, "body", []) for node in ast.walk(tree)):
            if isinstance(body, list):
                found |= documented(body, pattern)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and pattern.fullmatch(str(node.value)):
                found.setdefault(str(node.value), "")
    return sorted(found.items())


def documented(body: list[Any], pattern: re.Pattern[str]) -> dict[str, str]:
    """Names of variables that are assigned, with the docstring that follows."""
    found = {}
    for one, after in pairwise(body):
        value = getattr(one, "value", None) if isinstance(one, ast.Assign) else None
        if isinstance(value, ast.Constant) and pattern.fullmatch(str(value.value)):
            told = getattr(after, "value", None)
            if isinstance(told, ast.Constant) and isinstance(told.value, str):
                found[str(value.value)] = " ".join(told.value.split())
    return found


SEE = {
    "OPENLINEAGE": "lineage",
    "TIDEGATE_DASHBOARD": "dashboard",
    "TIDEGATE_KAFKA": "kafka",
    "TIDEGATE_REGISTRY": "messages",
    "TIDEGATE_SEGMENT": "cluster-reference",
}
"""The page about the variables that begin so."""


def variable_rows() -> list[list[str]]:
    pages = {
        n: next(page for start, page in SEE.items() if n.startswith(start)) for n, _ in variables()
    }
    return [[code(n), told, f"[{pages[n]}](../{pages[n]}.md)"] for n, told in variables()]


def default_of(field: Any) -> str:
    if field.default is not MISSING:
        return code(f"{field.name}={field.default!r}")
    return f"{code(field.name)} needed" if field.default_factory is MISSING else code(field.name)


def named(kinds_by_name: dict[str, type]) -> list[list[str]]:
    rows = []
    for name, made in kinds_by_name.items():
        of = [default_of(f) for f in fields(made) if f.init]
        rows.append([code(name), ", ".join(of) or "none"])
    return rows


def loaded(place: str) -> type:
    module, _, name = place.partition(":")
    found: type = getattr(import_module(module), name)
    return found


def start_meanings() -> dict[str, str]:
    """What the docstring of `start` says of its options, by their names."""
    text = inspect.getdoc(inspect.unwrap(Session._start)) or ""
    found = re.findall(r"^(\w+): (.)(.*)$", text, re.MULTILINE)
    return {name: first.upper() + rest for name, first, rest in found}


def shortly(text: str | None) -> str:
    """A help text up to where it goes into detail, if that is a sentence: the rest is elsewhere."""
    whole = re.split(r"; |\. | \(default", prose(text or ""))[0]
    short = whole.partition(": ")[0]
    return short if len(short.split()) > 4 else whole


def start_rows() -> list[list[str]]:
    """The options of `start`: what it says of them, or the option of `tidegate run` so called."""
    run = commands.get_command(click.Context(commands), "run")
    assert run is not None
    of = {word: parameter for parameter in run.params for word in parameter.opts}
    meanings = start_meanings()
    rows = []
    for parameter in inspect.signature(inspect.unwrap(Session._start)).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            same = "--" + parameter.name.replace("_", "-")
            same = {"--switches": "--switch"}.get(same, same)
            told = meanings.get(parameter.name) or shortly(getattr(of.get(same), "help", None))
            written = code(f"{parameter.name}={parameter.default!r}")
            rows.append([written, told.removesuffix(".")])
    return rows


def settings_page() -> str:
    policies = named({name: loaded(place) for name, place in POLICIES.items()})
    parts: list[str] = [
        "# Settings\n\nNames and defaults, from the code. [Generators](../generators.md) and "
        "[reading files](../files.md#options) have tables of their own."
    ]
    for title, about, head, rows in (
        (
            "Environment variables",
            "A name that ends with `_` is the beginning of several names.",
            ("variable", "meaning", "page"),
            variable_rows(),
        ),
        (
            "start()",
            "`stream.start(...)` and `session.start(...)` take these. [tidegate run]"
            "(commands.md#tidegate-run) says more of its options.",
            ("parameter", "meaning"),
            start_rows(),
        ),
        (
            "Policies",
            "`--policy 'threshold?maximum=8'`: [policies](../policies.md), "
            "[a latency target](../auto.md).",
            ("policy", "parameters and defaults"),
            policies,
        ),
        (
            "Partitioners",
            "`--partitioner 'pk?d=3'`: [partitioning](../partitioning.md).",
            ("partitioner", "parameters and defaults"),
            named(dict(PARTITIONERS)),
        ),
    ):
        parts.append(f"## {title}\n\n{about}\n\n{table(head, rows)}")
    parts.append(
        "## Schemes\n\n"
        + "\n".join(
            f"- **{title}**: {', '.join(code(one) for one in sorted(found))}"
            for title, found in (
                ("Streams", SOURCES),
                ("Tables, beside those", {*TABLES} - {*SOURCES}),
                ("Sinks", SINKS),
                ("Endings of files", FORMATS),
            )
        )
    )
    return "\n\n".join(parts)


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": command_page,
    "clauses.md": clause_page,
    "aggregates.md": aggregate_page,
    "metrics.md": metric_page,
    "errors.md": error_page,
    "settings.md": settings_page,
}


def made() -> dict[Path, str]:
    """All pages as the code has them now."""
    pages = {FOLDER / name: f"{HEAD}{page().rstrip()}\n" for name, page in PAGES.items()}
    return {**pages, FUNCTIONS: function_page()}


if __name__ == "__main__":
    main(made, "reference")
