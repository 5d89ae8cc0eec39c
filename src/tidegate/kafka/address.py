"""Takes `kafka://host:port[,host:port]/topic?name=value` apart.

The caller has already refused URIs with keys (`remote.scheme.refuse_keys`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote

from tidegate.errors import UserError, near
from tidegate.kafka.setting import CONFIG, SETTINGS, variable_of

_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_EXAMPLE = "kafka://localhost:9092/rides"


@dataclass(frozen=True)
class KafkaAddress:
    """A topic: `servers` in the form that clients take, its name, and the parameters as given.

    `where` names the stream or the sink in messages.
    """

    where: str
    servers: str
    topic: str
    parameters: Mapping[str, str]

    @property
    def config(self) -> str | None:
        """The file with settings of the client; None where the environment has them."""
        return self.parameters.get(CONFIG)

    @staticmethod
    def parse(uri: str, where: str, error: type[UserError], known: Sequence[str]) -> KafkaAddress:
        """Take a URI apart; raises `error` where it names no topic or has unknown parameters.

        `known` are the parameters of the caller, source or sink, besides `config`.
        """
        scheme, slashes, rest = uri.partition("://")
        place, _, query = rest.partition("?")
        servers, _, topic = place.partition("/")
        if not slashes or scheme.lower() != "kafka" or not servers:
            remedy = f"Write it like {_EXAMPLE}."
            raise error(where, "must be of the form kafka://host:port/topic", uri, remedy)
        for server in servers.split(","):
            found = _SERVER.fullmatch(server)
            if found is None or not 0 < int(found[2]) < 65536:
                remedy = f"Write it like {_EXAMPLE}; with several brokers host:port,host:port."
                raise error(where, "a broker must be host:port", repr(server), remedy)
        topic = unquote(topic)
        if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
            must = "after the brokers a topic must be named, of letters, digits, '.', '_' and '-'"
            raise error(where, must, repr(topic), f"Write it like {_EXAMPLE}.")
        return KafkaAddress(where, servers, topic, _parameters(query, where, error, known))


def _parameters(
    query: str, where: str, error: type[UserError], known: Sequence[str]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in (*known, CONFIG):
            remedy = near(name, (*known, CONFIG))
            if name in SETTINGS:
                remedy = f"Set {variable_of(name)}, or have it in a file that ?{CONFIG}=FILE names."
            raise error(where, "parameters must be known", f"parameter {name}", remedy)
        if name in found:
            got = f"{name} twice"
            raise error(where, "a parameter can be given once", got, f"Keep one {name}.")
        if not value:
            remedy = f"Write {name}=VALUE or leave it out."
            raise error(where, "a parameter must have a value", f"{name}=", remedy)
        found[name] = value
    return found
