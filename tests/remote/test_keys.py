"""Keys and passwords in URIs: refused for every scheme, shown nowhere, kept nowhere."""

from __future__ import annotations

import pytest
from pyarrow.fs import AzureFileSystem

from tidegate.errors import OptionError
from tidegate.remote.object_uri import object_place
from tidegate.remote.scheme import refuse_keys, shown, without_keys
from tidegate.sink.registry import of
from tidegate.source.registry import open_uri
from tidegate.source.subscription import AS_FOUND
from tidegate.source.table import open_table
from tidegate.state.store import Store

WITH_KEYS = [
    ("s3://AKIA:hunter2@bucket/a?region=x", "s3://bucket/a?region=x", "AWS_SECRET_ACCESS_KEY"),
    ("s3a://AKIA:hunt%2Fer2@bucket/a", "s3://bucket/a", "AWS_SECRET_ACCESS_KEY"),
    ("abfs://box:hunter2@acc.dfs.core.windows.net/a", "abfs://box@acc.", "AZURE_CLIENT_SECRET"),
    ("abfs://box@acc.dfs.core.windows.net/a?client_secret=hunter2", "abfs://box@acc.", "AZURE_"),
    ("gs://key:hunter2@bucket/a", "gs://bucket/a", "GOOGLE_APPLICATION_CREDENTIALS"),
    ("postgresql://me:hunter2@db:5432/shop?table=t", "postgresql://me@db:5432/", "PGPASSWORD"),
    ("postgresql://me:hun@ter2@db/shop?table=t", "postgresql://me@db/shop", "PGPASSWORD"),
    ("postgresql://me@db/shop?table=t&password=hunter2", "postgresql://me@db/", "~/.pgpass"),
    ("kafka://me:hunter2@broker:9092/topic", "kafka://me@broker:9092/", "SASL_PASSWORD"),
    ("kafka://h:1/t?sasl.password=hunter2&from=latest", "kafka://h:1/t?from=", "SASL_PASSWORD"),
    ("kafka://h:1/t?ssl.key.pem=hunter2", "kafka://h:1/t", "SASL_PASSWORD"),
    ("kafka://h:1/t?sasl.jaas.config=hunter2", "kafka://h:1/t", "SASL_PASSWORD"),
    ("delta+s3://AKIA:hunter2@bucket/t", "delta+s3://bucket/t", "AWS_SECRET_ACCESS_KEY"),
    ("iceberg:postgresql://me:hunter2@db/c?table=a.b", "iceberg:postgresql://me@db/c", "docs/"),
    ("http://me:hunter2@host:5000", "http://me@host:5000", "OPENLINEAGE_API_KEY"),
    ("https://host/api?token=hunter2", "https://host/api", "OPENLINEAGE_API_KEY"),
]
WITHOUT = [
    "s3://bucket/a?region=x",
    "gs://anonymous@bucket/a",
    "abfs://box@acc.dfs.core.windows.net/a?client_id=1",
    "postgresql://me@db/shop?table=t",
    "kafka://a:1,b:2/t?key=id&password_file=/run/secrets/kafka",
    "kafka://h:1/t?sasl.oauthbearer.token.endpoint.url=https://a/b&ssl.key.location=key.pem",
    "generator:taxi?rows=10",
    "/data/a?b@c:d.csv",
    "C:/x",
]


@pytest.mark.parametrize(("uri", "kept", "place"), WITH_KEYS, ids=[u for u, _, _ in WITH_KEYS])
def test_a_uri_with_keys_is_refused_and_says_where_they_belong(
    uri: str, kept: str, place: str
) -> None:
    with pytest.raises(OptionError, match="a URI must be without keys and passwords") as refused:
        refuse_keys(uri, "--out", OptionError)
    told = str(refused.value)
    assert place in told
    for text in (told, shown(uri), without_keys(uri)):
        assert "hunter2" not in text
        assert "hunt%2Fer2" not in text
        assert "ter2" not in text
    assert without_keys(uri).replace("s3a:", "s3:").startswith(kept)


@pytest.mark.parametrize("uri", WITHOUT)
def test_a_uri_without_keys_stays_as_it_is(uri: str) -> None:
    refuse_keys(uri, "--out", OptionError)
    assert (shown(uri), without_keys(uri)) == (uri, uri)


@pytest.mark.parametrize("uri", [uri for uri, _, _ in WITH_KEYS])
def test_sources_sinks_and_checkpoints_refuse_it_alike(uri: str) -> None:
    for use in (
        lambda: open_uri(uri, "rides", "ts", False),
        lambda: open_table(uri, "zones", AS_FOUND),
        lambda: of(uri),
        lambda: Store.open(uri),
    ):
        with pytest.raises(Exception, match="a URI must be without keys and passwords") as refused:
            use()
        assert "ter2" not in str(refused.value)


def test_arrow_gets_the_key_of_an_azure_account_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = "aHVudGVy/zI="
    uris = ["abfs://box@acc.dfs.core.windows.net/a", "abfs://acc@127.0.0.1:1/box?enable_tls=false"]
    authorities = [{}, {"blob_storage_authority": "127.0.0.1:1", "blob_storage_scheme": "http"}]
    for uri, authority in zip(uris, authorities, strict=True):
        dfs = {name.replace("blob", "dfs"): value for name, value in authority.items()}
        expected = AzureFileSystem(account_name="acc", account_key=key, **authority, **dfs)
        monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_KEY", raising=False)
        assert not object_place(uri).file_system().equals(expected)
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", key)
        place = object_place(uri)
        assert place.file_system().equals(expected)
        assert key not in repr(place)
