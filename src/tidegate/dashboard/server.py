"""The HTTP server of the live page: files, status and batches as JSON, events, and changes.

Its own threads answer and hold no lock that a batch needs. GET changes nothing; changes need a
token.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from tidegate import schedule
from tidegate.clock import Clock
from tidegate.dashboard.address import DashboardAddress
from tidegate.dashboard.guard import DeniedError, Guard
from tidegate.dashboard.query_view import MOST_BATCHES, WatchedQuery, is_running
from tidegate.driver.exposition.text import wanted, written
from tidegate.driver.journal.files import line_batch
from tidegate.errors import OptionError, TidegateError
from tidegate.json_text import json_text

if TYPE_CHECKING:
    from tidegate.driver.exposition.observer import MetricsObserver

PICTURE_S = 1.0
"""The longest time that several readers share one picture."""

PICTURE_SHARE = 0.01
"""If making a picture takes long, it is made less often, to stay within this share of the time."""

_EVENTS_S = 0.1
"""The pause of an event stream after each look. Nobody sees more, and tiny batches come by the
hundred per second.
"""

_AT_ONCE = 256
"""Batches that an event stream reads at once."""

MOST_STREAMS = 32
"""Pages that can be open at once."""

_MOST_ASKED_BYTES = 2 * 2**20
_PATIENCE_S = 30.0
_LOOK_S = 1.0
_JSON, _EVENTS = "application/json", "text/event-stream"
_FORM = "application/x-www-form-urlencoded"
"""What curl and others call a body whose type nobody gave."""
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PageRequest:
    """A request: parameters of the path, headers, and the body of a POST."""

    parameters: Mapping[str, str]
    headers: Message
    body: bytes = b""
    peer: str = ""

    def number(self, name: str, otherwise: int) -> int:
        text = self.parameters.get(name, str(otherwise))
        if not text.removeprefix("-").isdigit():
            raise DeniedError(400, f"{name} must be a whole number; got {text}")
        return int(text)


@dataclass(frozen=True)
class PageAnswer:
    """A response with a body, or with an iterator of its pieces."""

    type: str
    body: bytes | Iterator[bytes]
    status: int = 200


@dataclass
class ShownQuery:
    """A query on the page, and its latest picture, which several readers share."""

    query: WatchedQuery
    clock: Clock
    _made: tuple[float, Mapping[str, Any]] | None = None

    def picture(self) -> Mapping[str, Any]:
        """The query's picture, at most PICTURE_S old, or older if it takes long to make. Readers
        get the same object until it is made anew.
        """
        now, made = self.clock.now(), self._made
        if made is None or now >= made[0]:
            picture = self.query.picture()
            took_s = self.clock.now() - now
            made = self._made = now + max(PICTURE_S, took_s / PICTURE_SHARE), picture
        return made[1]

    def ask(self, question: Mapping[str, Any]) -> Any:
        """Sends a command; the next picture is made anew, so that it shows the result."""
        self._made = None
        return self.query.ask(question)


@dataclass
class Dashboard:
    """The queries that a server shows, in the order in which they were added; grows with them."""

    guard: Guard
    queries: list[ShownQuery] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)
    streams: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(MOST_STREAMS))

    def observers(self) -> dict[str, MetricsObserver]:
        """The metrics of all queries for `/metrics`; equal titles get a number."""
        found: dict[str, MetricsObserver] = {}
        for query in [shown.query for shown in self.queries]:
            if (metrics := query.metrics()) is not None:
                same = sum(name.partition(" #")[0] == query.title for name in found)
                found[f"{query.title} #{same + 1}" if same else query.title] = metrics
        return found

    def shown(self, request: PageRequest) -> ShownQuery:
        """The query that the request names; the first one by default."""
        number = request.number("query", 0)
        if not 0 <= number < len(self.queries):
            raise DeniedError(404, f"there is no query {number}; there are {len(self.queries)}")
        return self.queries[number]


Route = Callable[[Dashboard, PageRequest], PageAnswer]


def _queries(dashboard: Dashboard, request: PageRequest) -> PageAnswer:
    found = []
    for number, shown in enumerate(dashboard.queries):
        picture, query = shown.picture(), shown.query
        found.append(
            {
                "id": str(number),
                "title": query.title,
                "state": picture.get("state"),
                "checkpoint": query.checkpoint,
                "control": is_running(picture),
            }
        )
    return PageAnswer(_JSON, json_text(found).encode())


def _status(dashboard: Dashboard, request: PageRequest) -> PageAnswer:
    return PageAnswer(_JSON, json_text(dashboard.shown(request).picture()).encode())


def _batches(dashboard: Dashboard, request: PageRequest) -> PageAnswer:
    after = request.number("after", -1)
    most = min(max(request.number("most", MOST_BATCHES), 0), MOST_BATCHES)
    lines = dashboard.shown(request).query.batches(after, most + 1)
    more = b"true" if len(lines) > most else b"false"
    return PageAnswer(
        _JSON, b'{"batches": [' + b",".join(lines[:most]) + b'], "more": ' + more + b"}"
    )


def _events(dashboard: Dashboard, request: PageRequest) -> PageAnswer:
    shown = dashboard.shown(request)
    after = request.number("after", -1)
    last = request.headers.get("Last-Event-ID", "")
    after = max(after, int(last)) if last.isdigit() else after
    if not dashboard.streams.acquire(blocking=False):
        raise DeniedError(503, f"{MOST_STREAMS} pages are open; close one")
    return PageAnswer(_EVENTS, _event_stream(dashboard, shown, after))


def _event_stream(dashboard: Dashboard, shown: ShownQuery, after: int) -> Iterator[bytes]:
    """Batches as they come, and each new picture, until the query ends."""
    told: Mapping[str, Any] | None = None
    try:
        while not dashboard.closing.is_set():
            picture = shown.picture()
            lines = shown.query.batches(after, _AT_ONCE)
            for line in lines:
                after = line_batch(line)
                yield b"id: %d\nevent: batch\ndata: %b\n\n" % (after, line)
            if picture is not told:
                told = picture
                yield b"event: status\ndata: %b\n\n" % json_text(picture).encode()
            if not lines and not is_running(picture):
                yield b"event: end\ndata: {}\n\n"
                return
            if not lines:
                yield b": at work\n\n"  # fails if the reader is gone, which frees its place
                shown.query.wait(after, _LOOK_S)
            elif len(lines) < _AT_ONCE:
                dashboard.closing.wait(_EVENTS_S)
    finally:
        dashboard.streams.release()


def _control(dashboard: Dashboard, request: PageRequest) -> PageAnswer:
    dashboard.guard.check_change(request.headers)
    kind = request.headers.get("Content-Type", _JSON)
    if not kind.startswith((_JSON, _FORM)):  # a page of another site cannot send the token
        raise DeniedError(415, f"Content-Type must be {_JSON}; got {kind}")
    try:
        question = json.loads(request.body)
    except ValueError as error:
        raise DeniedError(400, f"must be JSON; got {error}") from None
    if not isinstance(question, dict):
        raise DeniedError(400, "must be an object of JSON")
    number = str(question.pop("query", "0"))
    shown = dashboard.shown(replace(request, parameters={"query": number}))
    done = shown.ask({**question, "by": "page", "from": request.peer})
    return PageAnswer(_JSON, json_text({"done": done}).encode())


def _file(name: str) -> Route:
    kind = _TYPES[name.rpartition(".")[2]]

    def answer(dashboard: Dashboard, request: PageRequest) -> PageAnswer:
        return PageAnswer(f"{kind}; charset=utf-8", _page().joinpath(name).read_bytes())

    return answer


def _page() -> Any:
    return files(__package__).joinpath("page")


def page_files() -> list[str]:
    """The names of all files of the page."""
    known = (f.name for f in _page().iterdir())
    return sorted(name for name in known if name.rpartition(".")[2] in _TYPES)


def _metrics(dashboard: Dashboard, request: PageRequest) -> PageAnswer:
    """The metrics of the running queries of this process."""
    form = wanted(request.headers.get("Accept", ""))
    return PageAnswer(form.content_type, written(dashboard.observers(), form).encode())


GET: dict[str, Route] = {
    "/metrics": _metrics,
    "/api/queries": _queries,
    "/api/status": _status,
    "/api/batches": _batches,
    "/api/events": _events,
}
POST: dict[str, Route] = {"/api/control": _control}


class DashboardServer:
    """Listens as soon as it is created, until `close`; queries are added while it runs."""

    def __init__(self, address: DashboardAddress, token: str, where: str = "dashboard") -> None:
        self.dashboard = Dashboard(Guard(token, address.host))
        routes = {f"/{name}": _file(name) for name in page_files()}
        if "/index.html" in routes:
            routes["/"] = routes.pop("/index.html")
        handler = type(
            "Handler", (_Handler,), {"dashboard": self.dashboard, "gets": {**GET, **routes}}
        )
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        kind = type("Server", (_Server,), {"address_family": family})
        try:
            self._server = kind((address.host, address.port), handler)
        except OSError as error:
            raise OptionError(
                where,
                "must be a port that is free, on an address of this host",
                f"{address.host}:{address.port}, {error.strerror or error}",
                "Choose another, or 0 for any that is free.",
            ) from None
        self.address = replace(address, port=self._server.server_address[1])
        schedule.current().start("tidegate-dashboard", self._server.serve_forever, daemon=True)

    def add(self, query: WatchedQuery) -> None:
        """Shows one more query."""
        self.dashboard.queries.append(ShownQuery(query, schedule.current().clock))

    def close(self) -> None:
        """Stops answering. Event streams end by themselves within a second."""
        self.dashboard.closing.set()
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.debug("dashboard: a request of %s failed", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    dashboard: Dashboard
    gets: Mapping[str, Route]
    protocol_version = "HTTP/1.1"
    server_version = "tidegate"
    sys_version = ""
    timeout = _PATIENCE_S

    def do_GET(self) -> None:
        self._answer(self.gets, POST)

    def do_HEAD(self) -> None:
        self._answer(self.gets, POST)

    def do_POST(self) -> None:
        self._answer(POST, self.gets)

    def log_message(self, format: str, *args: Any) -> None:
        _log.debug("dashboard: " + format, *args)

    def _answer(self, routes: Mapping[str, Route], others: Mapping[str, Route]) -> None:
        try:
            found = self._found(routes, others)
        except DeniedError as error:
            found = PageAnswer(_JSON, _error(str(error)), error.status)
        except TidegateError as error:
            found = PageAnswer(_JSON, _error(str(error)), 400)
        self._send(found)

    def _found(self, routes: Mapping[str, Route], others: Mapping[str, Route]) -> PageAnswer:
        body = self._body()
        self.dashboard.guard.check_host(self.headers)
        asked = urlsplit(self.path)
        route = routes.get(asked.path)
        if route is None:
            known = asked.path in others
            raise DeniedError(405 if known else 404, f"no {self.command} of {asked.path}")
        values = parse_qs(asked.query, keep_blank_values=True)
        parameters = {name: of[-1] for name, of in values.items()}
        peer = str(self.client_address[0])
        return route(self.dashboard, PageRequest(parameters, self.headers, body, peer))

    def _body(self) -> bytes:
        text = self.headers.get("Content-Length", "0")
        if not text.isdigit() or int(text) > _MOST_ASKED_BYTES:
            self.close_connection = True
            raise DeniedError(413, f"must have a length of at most {_MOST_ASKED_BYTES:,} bytes")
        return self.rfile.read(int(text))

    def _send(self, answer: PageAnswer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.type)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        if isinstance(answer.body, bytes):
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)
            return
        self.close_connection = True
        self.send_header("Connection", "close")
        self.end_headers()
        pieces = answer.body
        try:
            for piece in pieces:
                self.wfile.write(piece)
        except OSError:  # who read has gone
            _log.debug("dashboard: a page was closed")
        finally:
            pieces.close()  # type: ignore[attr-defined]  # a generator, which lets its place go


def _error(why: str) -> bytes:
    return json_text({"error": why}).encode()
