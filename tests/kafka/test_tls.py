"""Brokers that speak TLS: certificates of both sides, passwords, an authority that is unknown."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from importlib import import_module
from pathlib import Path

import pytest
from tools.kafka import PASSWORD, USER, Broker

import tidegate as tg
from tests.kafka.certificate import PASSWORD as OF_STORE
from tests.kafka.certificate import Authority
from tests.kafka.reading import committed
from tests.kafka.topic import SQL, answer, given, send, spread
from tidegate.errors import OptionError, SourceError
from tidegate.kafka.setting import SETTINGS, variable_of
from tidegate.source.registry import open_uri

LISTENERS = {"TLS": "SSL", "MUTUAL": "SSL", "LOGIN": "SASL_SSL"}
ANSWER_S = 5.0
LOGIN = {"sasl.mechanism": "PLAIN", "sasl.username": USER, "sasl.password": PASSWORD}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.at(tmp_path_factory.mktemp("tls") / "ours")


@pytest.fixture(scope="module")
def secure(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    settings = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(authority.issue("broker")),
        "ssl.keystore.password": OF_STORE,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "listener.name.mutual.ssl.client.auth": "required",
    }
    made = Broker(tmp_path_factory.mktemp("secure"), settings=settings, listeners=LISTENERS)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def of_client(authority: Authority, listener: str) -> dict[str, str]:
    """What a client needs for a listener."""
    found = {
        "security.protocol": LISTENERS[listener],
        "ssl.ca.location": str(authority.certificate),
    }
    if listener == "MUTUAL":
        store = authority.folder / "client.p12"
        store = store if store.exists() else authority.issue("client")
        found |= {"ssl.keystore.location": str(store), "ssl.keystore.password": OF_STORE}
    return found | (LOGIN if listener == "LOGIN" else {})


def give(settings: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have settings in the environment, and none besides."""
    for name in SETTINGS:
        monkeypatch.delenv(variable_of(name), raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(variable_of(name), value)


@pytest.mark.parametrize("place", ["environment", "file"])
@pytest.mark.parametrize("listener", LISTENERS)
def test_topics_are_read_and_written_over_tls(
    secure: Broker,
    authority: Authority,
    topic: str,
    listener: str,
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secure.create(topic, 2)
    secure.create(f"{topic}-out", 1)
    send(secure, topic, spread(range(300), 2))
    settings, config = of_client(authority, listener), ""
    if place == "environment":
        give(settings, monkeypatch)
    else:
        file = tmp_path / "kafka.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        config = f"?config={file}"
    session = tg.Session(master="none")
    uri = f"kafka://{secure.address_of(listener)}/{topic}"
    stream = session.stream(f"{uri}{config}", time="ts", name="r")
    sink = tg.sink.of(f"{uri}-out{config}")
    session.sql(SQL, r=stream).start(sink=sink, checkpoint=str(tmp_path / "state")).wait(60)
    rows = [record.row for record in committed(secure, f"{topic}-out")]
    for row in rows:
        row["window_start"] = datetime.fromisoformat(row["window_start"])
    assert given(rows) == answer(range(300))
    kept = b"".join(path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file())
    assert PASSWORD.encode() not in kept


def wrong(
    authority: Authority, listener: str, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> str:
    """Have settings that cannot do, and questions that end soon; words that say why."""
    for module in ("source", "sink"):
        monkeypatch.setattr(import_module(f"tidegate.{module}.kafka.topic"), "ANSWER_S", ANSWER_S)
    settings = of_client(authority, listener)
    if listener == "TLS":
        other = Authority.at(folder / "other")
        give(settings | {"ssl.ca.location": str(other.certificate)}, monkeypatch)
        return "certificate verify failed"
    if listener == "MUTUAL":
        give({n: v for n, v in settings.items() if "keystore" not in n}, monkeypatch)
        return "bad certificate|certificate required"
    give(settings | {"sasl.password": "hunter2"}, monkeypatch)
    return "Authentication failed"


@pytest.mark.parametrize("listener", LISTENERS)
def test_a_source_says_in_time_what_is_not_trusted(
    secure: Broker,
    authority: Authority,
    topic: str,
    listener: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secure.create(topic, 1)
    words = wrong(authority, listener, monkeypatch, tmp_path)
    place = f"kafka://{secure.address_of(listener)}/{topic}"
    began = time.monotonic()
    with pytest.raises(SourceError, match=words) as told:
        open_uri(place, "r", "ts", False)
    assert time.monotonic() - began < 3 * ANSWER_S
    assert "hunter2" not in str(told.value)


def test_a_sink_says_in_time_what_is_not_trusted(
    secure: Broker,
    authority: Authority,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secure.create(topic, 1)
    words = wrong(authority, "TLS", monkeypatch, tmp_path)
    rows = {"ts": ["2024-01-01T00:00:00Z"], "n": [1]}
    stream = tg.Session(master="none").stream(rows, time="ts", name="s")
    sink = tg.sink.of(f"kafka://{secure.address_of('TLS')}/{topic}")
    began = time.monotonic()
    with pytest.raises(OptionError, match=words):
        stream.start(sink=sink, checkpoint=str(tmp_path / "state"))
    assert time.monotonic() - began < 3 * ANSWER_S
