"""Asks a schema registry, by Confluent's REST interface, for schemas, and registers new ones.

Credentials come from the environment of the process that asks, or from a file that it names; they
are in no option, checkpoint or task. The schema of an id never changes, so each is asked for once,
and tasks get the schemas that the driver has.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from tidegate import schedule
from tidegate.errors import OptionError, RunError, near
from tidegate.remote.scheme import refuse_keys
from tidegate.storage import disk

PREFIX = "TIDEGATE_REGISTRY_"
"""The prefix of variables of the environment that are settings: TIDEGATE_REGISTRY_PASSWORD."""

SETTINGS = ("username", "password", "token", "ca", "config")
"""User and password, or a bearer token; a file of certificates; a file with the other settings."""

_KEPT_IN = f"{PREFIX}USERNAME and {PREFIX}PASSWORD, or in a file that {PREFIX}CONFIG names"

ANSWER_S = 10.0
"""How long one request may take."""

_TRIES = 4
_PAUSE_S = 0.25
_MOST_BYTES = 32 * 2**20
_NOT_FOUND = 404
_BUSY = (408, 429, 500, 502, 503, 504)
_ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema of a registry: its id, its language (AVRO, JSON, PROTOBUF) and its text.

    `named` are the texts of the schemas that it refers to, each after those it needs itself.
    """

    id: int
    kind: str
    text: str
    named: tuple[str, ...] = ()


@dataclass(frozen=True)
class SchemaRegistry:
    """The registry at a URL; picklable, together with the schemas that it has fetched.

    Keeps every schema it has fetched, so it grows with the versions that writers have used.
    """

    url: str
    form: str = ""
    """The format to ask for: `serialized` gives Protobuf descriptors where a registry knows it."""

    _known: dict[int, RegisteredSchema] = field(default_factory=dict, compare=False, repr=False)

    def by_id(self, schema_id: int) -> RegisteredSchema | None:
        """The schema of an id, None where there is none; RunError where the registry is silent."""
        if schema_id not in self._known:
            found = self._ask(f"/schemas/ids/{schema_id}")
            if found is None:
                return None
            self._known[schema_id] = self._made(schema_id, found)
        return self._known[schema_id]

    def of_subject(self, subject: str, version: str = "latest") -> RegisteredSchema | None:
        """A version of a subject; None where there is none."""
        found = self._ask(f"/subjects/{quote(subject, safe='')}/versions/{version}")
        if found is None:
            return None
        made = self._made(int(found["id"]), found)
        self._known[made.id] = made
        return made

    def subjects(self) -> list[str]:
        """The names of all subjects, sorted."""
        found: Any = self._ask("/subjects")
        return sorted(found or [])

    def register(self, subject: str, text: str, kind: str = "AVRO") -> int:
        """Add a schema to a subject, unless it is there; its id."""
        path = f"/subjects/{quote(subject, safe='')}/versions"
        body = {"schema": text} | ({} if kind == "AVRO" else {"schemaType": kind})
        found = self._ask(path, body)
        if found is None:
            raise self._failure("must take schemas", f"no place {path}")
        return int(found["id"])

    def _made(self, schema_id: int, found: Mapping[str, Any]) -> RegisteredSchema:
        named = tuple(dict.fromkeys(self._named(found.get("references") or [], set())))
        return RegisteredSchema(schema_id, found.get("schemaType", "AVRO"), found["schema"], named)

    def _named(self, references: list[Mapping[str, Any]], seen: set[tuple[str, int]]) -> list[str]:
        found = []
        for reference in references:
            place = str(reference["subject"]), int(reference["version"])
            if place in seen:
                continue
            seen.add(place)
            answer = self._ask(f"/subjects/{quote(place[0], safe='')}/versions/{place[1]}")
            if answer is None:
                got = f"no version {place[1]} of subject {place[0]}"
                raise self._failure("must have the schemas that others refer to", got)
            found += self._named(answer.get("references") or [], seen)
            found.append(str(answer["schema"]))
        return found

    def _ask(self, path: str, body: object = None) -> dict[str, Any] | None:
        """The answer to a request, None for "not found"; tries again while the registry is busy."""
        settings = read_settings(self.url)
        clock = schedule.current().clock
        for attempt in range(_TRIES):
            if attempt:
                clock.sleep(_PAUSE_S * 2**attempt)
            try:
                return self._answer(path, body, settings)
            except HTTPError as error:
                if error.code == _NOT_FOUND:
                    return None
                got = f"{error.code} {error.reason}{_said(error)}"
                if error.code not in _BUSY:
                    must = "must give what it is asked for"
                    remedy = "Check the address and the schema."
                    if error.code in (401, 403):
                        remedy = f"Have credentials in {_KEPT_IN}."
                    raise self._failure(must, got, remedy) from None
            except (URLError, OSError, ValueError) as error:
                got = str(getattr(error, "reason", None) or error)
        raise self._failure(f"must answer within {ANSWER_S:g} s", got)

    def _answer(self, path: str, body: object, settings: Mapping[str, str]) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        query = f"?format={self.form}" if self.form and data is None else ""
        asked = Request(self.url.rstrip("/") + path + query, data, {"Accept": _ACCEPT})
        if data is not None:
            asked.add_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        if "token" in settings:
            asked.add_header("Authorization", f"Bearer {settings['token']}")
        elif "username" in settings:
            pair = f"{settings['username']}:{settings.get('password', '')}".encode()
            asked.add_header("Authorization", f"Basic {base64.b64encode(pair).decode()}")
        trust = None
        if self.url.startswith("https:"):
            trust = ssl.create_default_context(cafile=settings.get("ca"))
        with urlopen(asked, timeout=ANSWER_S, context=trust) as answer:
            found: dict[str, Any] = json.loads(answer.read(_MOST_BYTES))
        return found

    def _failure(self, must: str, got: str, remedy: str = "") -> RunError:
        remedy = remedy or "Check its address and that it runs, then start again."
        return RunError(f"schema registry {self.url}", must, got, remedy)


def _said(error: HTTPError) -> str:
    """The registry's own message; "" where the answer is something else, as a proxy's page."""
    try:
        return f": {json.loads(error.read(10_000))['message']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def check_url(url: str, where: str) -> str:
    """The address of a registry, checked; refuses one with credentials in it."""
    refuse_keys(url, where, OptionError, _KEPT_IN)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        must = "must be the address of a schema registry"
        raise OptionError(where, must, repr(url), "Write it like http://localhost:8081.")
    if "@" in parts.netloc or parts.query or parts.fragment:
        must = "an address must be a host, a port and a path"
        raise OptionError(where, must, "more beside them", f"Keys belong in {_KEPT_IN}.")
    return url


def read_settings(where: str, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The settings of this process: those of the environment win over those of the file."""
    environment = os.environ if environment is None else environment
    variables = {PREFIX + name.upper(): name for name in SETTINGS}
    own = {}
    for variable in sorted(v for v in environment if v.startswith(PREFIX)):
        if variable not in variables:
            must = f"variables that begin with {PREFIX} must be settings of a schema registry"
            raise OptionError(where, must, variable, near(variable, variables))
        own[variables[variable]] = environment[variable]
    path = own.pop("config", None)
    if path is None:
        return own
    try:
        lines = disk.read(path).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        must = f"{PREFIX}CONFIG must name a file that can be read"
        raise OptionError(where, must, f"{path}: {error}") from None
    found = {}
    for number, line in enumerate(lines, 1):
        name, equals, value = (part.strip() for part in line.partition("="))
        if not name or name.startswith("#"):
            continue
        if not equals or name not in SETTINGS[:-1]:
            must = "settings of a schema registry must be known"
            got = f"{name if equals else 'no ='} in line {number}"
            raise OptionError(path, must, got, near(name, SETTINGS[:-1]))
        found[name] = value
    return found | own
