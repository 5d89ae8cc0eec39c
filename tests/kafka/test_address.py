"""Addresses of topics, settings of clients, and what of them is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.kafka import PASSWORD, USER, Broker

from tidegate.errors import OptionError, SourceError, UnavailableError, UserError
from tidegate.kafka import client
from tidegate.kafka.address import KafkaAddress
from tidegate.kafka.setting import read_settings


def parse(uri: str, error: type[UserError] = SourceError) -> KafkaAddress:
    return KafkaAddress.parse(uri, "stream s", error, ["from", "group"])


def test_an_address_names_brokers_a_topic_and_parameters() -> None:
    found = parse("kafka://a:9092,[::1]:9093/rides.v1?from=latest&config=k.properties")
    assert (found.servers, found.topic) == ("a:9092,[::1]:9093", "rides.v1")
    assert found.parameters["from"] == "latest"
    assert found.config == "k.properties"


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("kafka:rides", "must be of the form kafka://host:port/topic"),
        ("kafka:///rides", "must be of the form kafka://host:port/topic"),
        ("kafka://host/rides", "a broker must be host:port; got 'host'"),
        ("kafka://host:99999/rides", "a broker must be host:port"),
        ("kafka://host:9092", "a topic must be named"),
        ("kafka://host:9092/a/b", "a topic must be named"),
        ("kafka://host:9092/t?form=latest", "Did you mean from?"),
        ("kafka://host:9092/t?from=latest&from=earliest", "got from twice"),
        ("kafka://host:9092/t?from=", "got from=."),
        ("kafka://me@host:9092/t", "a broker must be host:port; got 'me@host:9092'"),
        ("kafka://host:9092/t?security.protocol=SSL", "Set TIDEGATE_KAFKA_SECURITY_PROTOCOL, or"),
    ],
)
@pytest.mark.parametrize("error", [SourceError, OptionError])
def test_wrong_addresses_are_refused(uri: str, words: str, error: type[UserError]) -> None:
    with pytest.raises(error) as caught:
        parse(uri, error)
    assert words in str(caught.value)


def test_settings_come_from_the_environment_or_from_the_file_that_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TIDEGATE_KAFKA_SASL_USERNAME", "me")
    assert read_settings(None, "s", SourceError) == {"sasl.username": "me"}
    file = tmp_path / "kafka.properties"
    file.write_text("# of the test cluster\nsecurity.protocol = SASL_SSL\nsasl.password=a=b\n")
    found = read_settings(str(file), "s", SourceError)
    assert found == {"security.protocol": "SASL_SSL", "sasl.password": "a=b"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("group.id=x", "settings must be of these clients"),
        ("sasl.pasword=hush", "Did you mean sasl.password"),
        ("just hush", "got line 1 without ="),
    ],
)
def test_wrong_lines_of_the_file_are_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "kafka.properties"
    file.write_text(text)
    with pytest.raises(SourceError) as caught:
        read_settings(str(file), "s", SourceError)
    assert words in str(caught.value)
    assert "hush" not in str(caught.value)


def test_a_missing_file_and_unknown_variables_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(SourceError, match="the file with settings must be readable"):
        read_settings("nowhere.properties", "s", SourceError)
    monkeypatch.setenv("TIDEGATE_KAFKA_SASL_PASWORD", "hush")
    with pytest.raises(SourceError, match="TIDEGATE_KAFKA_SASL_PASSWORD") as caught:
        read_settings(None, "s", SourceError)
    assert "hush" not in str(caught.value)


def test_settings_that_librdkafka_refuses_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_KAFKA_SECURITY_PROTOCOL", "SASL")
    with pytest.raises(SourceError, match=r"must be usable; got .*security.protocol"):
        client.make_admin(parse("kafka://127.0.0.1:9/t"), SourceError)


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "confluent_kafka", None)
    with pytest.raises(UnavailableError) as caught:
        client.library("stream s")
    expected = "stream s: needs confluent-kafka; got none. Run pip install 'tidegate[kafka]'."
    assert str(caught.value) == expected


def test_a_broker_that_asks_for_a_password_is_given_it(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create(topic, 2)
    monkeypatch.setenv("TIDEGATE_KAFKA_SECURITY_PROTOCOL", "SASL_PLAINTEXT")
    monkeypatch.setenv("TIDEGATE_KAFKA_SASL_MECHANISM", "PLAIN")
    monkeypatch.setenv("TIDEGATE_KAFKA_SASL_USERNAME", USER)
    monkeypatch.setenv("TIDEGATE_KAFKA_SASL_PASSWORD", PASSWORD)
    admin = client.make_admin(parse(f"kafka://{broker.sasl_address}/{topic}"), SourceError)
    assert len(admin.list_topics(topic, timeout=30).topics[topic].partitions) == 2


def test_the_client_of_the_tests_ends_before_its_broker(tmp_path: Path) -> None:
    """Otherwise librdkafka says on standard error, for as long as it lives, that nobody answers."""
    own = Broker(tmp_path / "broker")
    admin = own.admin()
    assert own.admin() is admin
    own.stop()
    with pytest.raises(RuntimeError, match="closed"):
        admin.list_topics(timeout=1)
