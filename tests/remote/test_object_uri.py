"""URIs of object stores mean what they mean for pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyarrow.fs import FileSystem

from tidegate.errors import OptionError
from tidegate.remote import object_uri
from tidegate.remote.object_uri import is_object_uri, object_place, with_region

ACCOUNT = {"account_name": "acc"}
ENVIRONMENT = "AWS_ACCESS_KEY_ID AWS_REGION AWS_DEFAULT_REGION AWS_ENDPOINT_URL AWS_PROFILE".split()


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


@pytest.mark.parametrize(
    ("uri", "root", "config"),
    [
        ("s3://b/x/y?region=eu-west-1", "s3://b/x/y", {"region": "eu-west-1"}),
        ("s3://b/?region=a", "s3://b", {"region": "a"}),
        ("s3://b/a%20b/?region=a", "s3://b/a b", {"region": "a"}),
        ("s3://b/x?endpoint_override=h:9", "s3://b/x", {"endpoint": "https://h:9"}),
        ("s3://b/x?endpoint_override=h:9&scheme=http", "s3://b/x", {"endpoint": "http://h:9"}),
        ("s3://b/x?endpoint_override=http%3A%2F%2Fh:9", "s3://b/x", {"endpoint": "http://h:9"}),
        ("s3://b/x?region=a&allow_bucket_creation=true", "s3://b/x", {"region": "a"}),
        ("gs://b/x/y", "gs://b/x/y", {}),
        ("gs://anonymous@b/x", "gs://b/x", {"skip_signature": True}),
        (
            "gs://b/x?scheme=http&endpoint_override=localhost:4443",
            "gs://b/x",
            {"base_url": "http://localhost:4443"},
        ),
        ("abfs://c@acc.dfs.core.windows.net/x/y", "abfs://c/x/y", ACCOUNT),
        ("abfss://c@acc.dfs.core.windows.net/x", "abfs://c/x", ACCOUNT),
        ("abfs://acc.blob.core.windows.net/c/x/y", "abfs://c/x/y", ACCOUNT),
        ("abfs://acc@c/x", "abfs://c/x", ACCOUNT),
        (
            "abfs://acc@c/x?credential_kind=anonymous",
            "abfs://c/x",
            {**ACCOUNT, "skip_signature": True},
        ),
        (
            "abfs://acc@127.0.0.1:10000/c/x?enable_tls=false",
            "abfs://c/x",
            {**ACCOUNT, "endpoint": "http://127.0.0.1:10000/acc"},
        ),
    ],
)
def test_what_a_uri_says(uri: str, root: str, config: dict[str, Any]) -> None:
    place = object_place(uri)
    assert (place.root, dict(place.config)) == (root, config)
    assert place.client() is not None


def test_pyarrow_takes_the_same_parameters() -> None:
    """Those of S3, which it reads without asking anybody."""
    uri = "s3://b/x/y?region=r&scheme=http&endpoint_override=h:9&allow_bucket_creation=true"
    _, path = FileSystem.from_uri(uri)
    assert object_place(uri).root == f"s3://{path}"


@pytest.mark.parametrize(
    ("location", "is_one"),
    [
        ("s3://b/x", True),
        ("S3://b/x", True),
        ("gs:/x", False),
        ("hdfs://h/x", False),
        ("s3", False),
    ],
)
def test_which_locations_are_object_stores(location: str, is_one: bool) -> None:
    assert is_object_uri(location) == is_one


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("s3://b/x?regin=a", r"must have parameters that s3:// knows; got regin. Did you mean reg"),
        ("s3:///x?region=a", "must name a bucket or container; got none"),
        ("gs://b/x?region=a", "parameters that gs:// knows; got region"),
        ("s3://key@b/x", "s3://key@b/x: must begin with the bucket; got a user before it. Leave"),
    ],
)
def test_mistakes(uri: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        object_place(uri)


def test_the_region_is_asked_for_where_nothing_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def resolve(bucket: str) -> str:
        asked.append(bucket)
        return "eu-north-1"

    monkeypatch.setattr(object_uri, "resolve_s3_region", resolve)
    assert with_region("s3://b/x") == "s3://b/x?region=eu-north-1"
    assert with_region("s3://b/x?scheme=http") == "s3://b/x?scheme=http&region=eu-north-1"
    for said in ("s3://b/x?region=a", "s3://b/x?endpoint_override=h", "gs://b/x"):
        assert with_region(said) == said
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert with_region("s3://b/x") == "s3://b/x"
    assert asked == ["b"]


def test_keys_of_the_users_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = a\naws_secret_access_key = b%c\n"
        "[work]\naws_access_key_id = w\naws_secret_access_key = x\naws_session_token = t\n"
    )
    uri = "s3://b/x?region=a"
    keys = {"access_key_id": "a", "secret_access_key": "b%c"}
    assert object_place(uri).config == {"region": "a", **keys}
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert object_place(uri).config["session_token"] == "t"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from the environment, which the client reads itself")
    assert object_place(uri).config == {"region": "a"}
