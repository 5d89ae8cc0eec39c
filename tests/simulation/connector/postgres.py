"""A table of Postgres in simulated courses: each statement, COPY, COMMIT and ROLLBACK is a call."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NoReturn

import psycopg
import pytest
from psycopg import sql

from tests.postgres.server import Server
from tests.simulation.connector.boundary import Boundary
from tests.simulation.connector.connector import Found, SinkConnector, plain
from tidegate.sink import postgres
from tidegate.sink.protocol import Sink
from tidegate.testing.simulation.world import World

LOCK = "SET lock_timeout = '30s'", "SET lock_timeout = '60ms'"
"""A driver that stands still does not let go of a row, however long another waits for it."""

_tables = itertools.count()


class ConnectionWays:
    """Breaks a connection, or has the server refuse: then the transaction has failed there too."""

    def __init__(self, connection: psycopg.Connection[Any] | None = None) -> None:
        self._connection = connection

    def refused(self) -> NoReturn:
        if self._connection is None:
            raise psycopg.OperationalError("simulated: connection refused")
        psycopg.Cursor(self._connection).execute("SELECT 1 / 0")
        raise AssertionError("the server divides by no zero")

    failed = refused

    def lost(self) -> NoReturn:
        if self._connection is not None:
            self._connection.pgconn.finish()
        raise psycopg.OperationalError("simulated: server closed the connection unexpectedly")


class CancelsCopy(ConnectionWays):
    """What the server says of a COPY that does not come to its end."""

    def refused(self) -> NoReturn:
        raise psycopg.errors.QueryCanceled("simulated: COPY from stdin failed")

    failed = refused


class CourseCursor(psycopg.Cursor[Any]):
    """A cursor whose statements are calls, named by their first words."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        text = query if isinstance(query, str) else query.as_string(self.connection)
        if isinstance(query, str):
            query = query.replace(*LOCK)
        return self._call(_words(text), lambda: super(CourseCursor, self).execute(query, params))

    @contextmanager
    def copy(self, statement: Any, params: Any = None, **options: Any) -> Iterator[Any]:
        table = statement.as_string(self.connection)
        side = " of side output" if re.search(r'_(late|rejected)"', table) else ""
        with ExitStack() as stack:
            opened = super().copy(statement)
            end = stack.pop_all
            copy = self._call(f"COPY{side}", lambda: stack.enter_context(opened), CancelsCopy)
            yield copy
            self._call(f"end of COPY{side}", lambda: end().close(), CancelsCopy)

    def _call(
        self, name: str, work: Callable[[], Any], ways: type[ConnectionWays] = ConnectionWays
    ) -> Any:
        connection = self.connection
        assert isinstance(connection, CourseConnection)
        return connection.boundary.call(name, work, ways(connection))


class CourseConnection(psycopg.Connection[Any]):
    """A connection that knows its boundary."""

    boundary: Boundary

    def commit(self) -> None:
        work = super().commit
        self.boundary.call("COMMIT", work, ConnectionWays(self))

    def rollback(self) -> None:
        work = super().rollback
        self.boundary.call("ROLLBACK", work, ConnectionWays(self))


def _words(text: str) -> str:
    """What a statement does, without what differs from course to course."""
    return " ".join(re.split(r"[\"'(%;,]", text)[0].split()[:3])


class PostgresCourses(SinkConnector):
    """The sink of a table on a server; a table for each course."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self._server = server
        self._watch = server.connect()
        self._watch.autocommit = True

    @contextmanager
    def entered(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(psycopg, "connect", self._connect)
            yield

    def close(self) -> None:
        self._watch.close()

    def place(self) -> str:
        return f"course_{next(_tables)}"

    def sink(self, place: str) -> Sink:
        return postgres(self._server.uri(place))

    def read(self, world: World, place: str) -> Found:
        """In the order in which rows were written."""
        rows = [plain(row) for row in self._rows(place)]
        late = [(row["stream"], row["tuple"]) for row in self._rows(f"{place}_late")]
        return {"rows": list(map(repr, rows)), "late": list(map(repr, late))}

    def _rows(self, table: str) -> list[dict[str, Any]]:
        there = self._watch.execute("SELECT to_regclass(%s)", (table,)).fetchone()
        if there == (None,):
            return []
        query = sql.SQL("SELECT * FROM {} ORDER BY ctid").format(sql.Identifier(table))
        cursor = self._watch.execute(query)
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def _connect(self, conninfo: str, **options: Any) -> psycopg.Connection[Any]:
        def connect() -> CourseConnection:
            made = CourseConnection.connect(conninfo, cursor_factory=CourseCursor, **options)
            made.boundary = self.boundary
            self.boundary.at_death(lambda: self._end(made))
            return made

        return self.boundary.call("connect", connect, ConnectionWays())

    def _end(self, connection: psycopg.Connection[Any]) -> None:
        """Close the socket of a driver that has died, and wait until the server has seen it."""
        if not connection.closed:
            pid = connection.info.backend_pid
            connection.pgconn.finish()
            self._watch.execute("SELECT pg_terminate_backend(%s, 30000)", (pid,))
