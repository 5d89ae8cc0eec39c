"""Reads the URI of a table of Postgres, connects to its server, and words the server's errors.

The sink and tables share this. A URI has no password and only the parameters listed here, so
checkpoints, logs and `explain` may show it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from tidegate.errors import UserError, near
from tidegate.remote.scheme import shown

if TYPE_CHECKING:
    import psycopg

CONNECTION = (
    *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslnegotiation"),
    *("channel_binding", "require_auth", "gssencmode", "krbsrvname", "target_session_attrs"),
    *("load_balance_hosts", "connect_timeout", "keepalives", "keepalives_idle", "tcp_user_timeout"),
    *("application_name", "service", "passfile"),
)
"""The parameters of a URI that describe the connection, in libpq's names."""

MOST_NAME_BYTES = 63
"""Postgres truncates longer names without an error."""


@dataclass(frozen=True)
class Database:
    """Where a database is: the part of a URI that describes the connection. Small and picklable."""

    conninfo: str
    where: str
    """The name in messages."""

    @staticmethod
    def parse(
        uri: str, given: Mapping[str, str], own: tuple[str, ...], where: str, kind: type[UserError]
    ) -> Database:
        """Check a URI with the parameters `given`; `own` are those of the caller, not of libpq."""
        parts = urlsplit(uri.partition("?")[0])
        if not uri.partition(":")[2].startswith("//"):
            raise kind(
                where,
                "a URI of Postgres must have its slashes",
                uri,
                "Write postgresql://user@host:port/database?table=name.",
            )
        for name in given:
            if name not in (*own, *CONNECTION):
                remedy = near(name, (*own, *CONNECTION))
                if name in ("host", "hostaddr", "port", "user", "dbname"):
                    remedy = "Write it before the ?, as in postgresql://user@host:port/database."
                raise kind(where, "parameters must be those of Postgres", f"{name}=...", remedy)
        if find_spec("psycopg") is None:
            raise kind(where, "needs psycopg", "none", "Run pip install 'tidegate[postgres]'.")
        asked = {name: value for name, value in given.items() if name in CONNECTION}
        asked.setdefault("connect_timeout", "10")
        asked.setdefault("application_name", "tidegate")
        place = f"postgresql://{parts.netloc}{parts.path}"
        return Database(f"{place}?{urlencode(asked)}", shown(place))

    def connect(self, **more: Any) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection with texts in UTF-8 and times in UTC; raises psycopg.Error."""
        import psycopg

        connection = psycopg.connect(self.conninfo, client_encoding="UTF8", **more)
        connection.prepare_threshold = None
        connection.autocommit = True
        connection.execute(
            "SET timezone = 'UTC'; SET datestyle = 'ISO, YMD'; SET intervalstyle = 'postgres'; "
            "SET bytea_output = 'hex'; SET extra_float_digits = 1; SET lock_timeout = '30s'"
        )
        connection.autocommit = False
        return connection


def said(error: Exception) -> str:
    """The words of the server or of libpq, in one line."""
    diag = getattr(error, "diag", None)
    words = [getattr(diag, name, None) for name in ("message_primary", "message_detail")]
    text = ": ".join(word for word in words if word) or str(error) or type(error).__name__
    return " ".join(text.partition("Is the server running")[0].split()).rstrip(".")


def remedy_of(error: Exception) -> str:
    """What the user can do about an error, by its SQLSTATE."""
    state = getattr(error, "sqlstate", None)
    if state is None:
        known = (remedy for words, remedy in _REFUSED.items() if words in str(error))
        return next(known, "See that the server runs, and that host, port and sslmode are right.")
    for start, remedy in _REMEDIES.items():
        if state.startswith(start):
            return remedy
    return "See to what the server says."


_LOGIN = "Give the user and the password that it wants: PGPASSWORD, ~/.pgpass, or PGSERVICE."
_DATABASE = "Create the database, or name another one in the URI."
_REFUSED = {
    "password": _LOGIN,
    "authentication": _LOGIN,
    'role "': "Name a user that the server has: postgresql://user@host.",
    'database "': _DATABASE,
}
"""Remedies for refused connections, which have no SQLSTATE, by words in the message."""

_REMEDIES = {
    "28": _LOGIN,
    "3D": _DATABASE,
    "3F": "Create the schema, or name another one: table=schema.name.",
    "42501": "Grant the user what it needs, or name another one in the URI.",
    "42P01": "Check the name of the table, and its schema.",
    "53": "See that the server has room and connections left.",
    "55P03": "Another session holds the row or the table: wait until it ends, or end it with "
    "pg_terminate_backend.",
    "57": "See that the server runs.",
    "08": "See that the server runs.",
}
