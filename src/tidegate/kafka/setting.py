"""Reads settings of Kafka's clients, with credentials, from the environment or a file.

A stored URI names at most the file. Tasks read the settings again on their own hosts, so no
checkpoint, plan or task holds a secret.
"""

from __future__ import annotations

import os

from tidegate.errors import UserError, near
from tidegate.storage import disk

CONFIG = "config"
"""The parameter of a URI that names a file with settings."""

PREFIX = "TIDEGATE_KAFKA_"
"""The prefix of variables of the environment that are settings: TIDEGATE_KAFKA_SASL_PASSWORD."""

SETTINGS = (
    "security.protocol sasl.mechanism sasl.username sasl.password "
    "sasl.kerberos.service.name sasl.kerberos.principal sasl.kerberos.keytab "
    "sasl.oauthbearer.method sasl.oauthbearer.client.id sasl.oauthbearer.client.secret "
    "sasl.oauthbearer.scope sasl.oauthbearer.extensions sasl.oauthbearer.token.endpoint.url "
    "ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem "
    "ssl.key.location ssl.key.pem ssl.key.password ssl.keystore.location ssl.keystore.password "
    "ssl.endpoint.identification.algorithm enable.ssl.certificate.verification "
    "client.id client.rack socket.timeout.ms broker.address.family"
).split()
"""What users may set, in librdkafka's names. Settings that decide which records are read or
written, such as group.id, are missing: Tidegate sets them."""


def read_settings(config: str | None, where: str, error: type[UserError]) -> dict[str, str]:
    """The settings of the file; without a file, those of the environment."""
    return from_environment(where, error) if config is None else _from_file(config, where, error)


def from_environment(where: str, error: type[UserError]) -> dict[str, str]:
    """The settings of all variables with the prefix, by name; refuses unknown ones."""
    variables = {variable_of(name): name for name in SETTINGS}
    found: dict[str, str] = {}
    for variable, value in sorted(os.environ.items()):
        if not variable.startswith(PREFIX):
            continue
        if variable not in variables:
            must = f"variables that begin with {PREFIX} must be settings of Kafka's clients"
            raise error(where, must, variable, near(variable, variables))
        found[variables[variable]] = value
    return found


def _from_file(path: str, where: str, error: type[UserError]) -> dict[str, str]:
    """Lines of name=value; # begins a comment."""
    place = f"{where}, {CONFIG}={path}"
    try:
        text = disk.read(path).decode()
    except (OSError, UnicodeDecodeError) as reason:
        got = reason.strerror if isinstance(reason, OSError) else "other bytes than UTF-8"
        remedy = "Name a file that every host of the run can read."
        raise error(place, "the file with settings must be readable", got, remedy) from None
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, equals, value = (part.strip() for part in line.partition("="))
        if not name or name.startswith("#"):
            continue
        if not equals:
            remedy = "Write sasl.username=NAME, one setting in a line."
            raise error(place, "a line must be name=value", f"line {number} without =", remedy)
        if name not in SETTINGS:
            must = "settings must be of these clients, in librdkafka's words"
            raise error(place, must, name, near(name, SETTINGS))
        found[name] = value
    return found


def variable_of(name: str) -> str:
    """The variable of the environment for a setting."""
    return PREFIX + name.upper().replace(".", "_")
