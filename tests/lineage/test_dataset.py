"""Names of datasets, beside those that the client of the specification makes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from openlineage.client.naming import dataset as naming

from tidegate.driver.lineage.dataset import Dataset, dataset_of
from tidegate.sink.address import Address
from tidegate.sink.registry import SINKS, of

GIVEN = [
    ("/data/in", naming.LocalFileSystem(path="/data/in")),
    ("file:///data/a%20b?sides=/x", naming.LocalFileSystem(path="/data/a b")),
    ("/data/in/*.csv", naming.LocalFileSystem(path="/data/in")),
    ("s3://bucket/a/b?region=x", naming.S3(bucket_name="bucket", object_key="a/b")),
    ("s3a://bucket/a/b/*.parquet", naming.S3(bucket_name="bucket", object_key="a/b")),
    ("s3://bucket/a?output=busy", naming.S3(bucket_name="bucket", object_key="a/busy")),
    ("gs://anonymous@bucket/a", naming.GCS(bucket_name="bucket", object_key="a")),
    (
        "abfs://box@acc.dfs.core.windows.net/a",
        naming.ABFSS(container="box", service="acc", path="/a"),
    ),
    ("hdfs://node:8020/a", naming.HDFS(namenode_host="node", namenode_port="8020", path="/a")),
    (
        "kafka://one:9092,two:9092/rides?from=latest",
        naming.Kafka(bootstrap_server_host="one", port="9092", topic="rides"),
    ),
    (
        "postgresql://me:hunter2@db:5433/shop?table=sales.rides",
        naming.Postgres(host="db", port="5433", database="shop", schema="sales", table="rides"),
    ),
    (
        "postgresql://me@db/shop?table=rides",
        naming.Postgres(host="db", port="5432", database="shop", schema="public", table="rides"),
    ),
    ("delta:/data/t", naming.LocalFileSystem(path="/data/t")),
    ("delta+s3://bucket/t", naming.S3(bucket_name="bucket", object_key="t")),
]


@pytest.mark.parametrize(("uri", "expected"), GIVEN, ids=[uri for uri, _ in GIVEN])
def test_a_uri_is_named_as_the_specification_says(uri: str, expected: naming.DatasetNaming) -> None:
    found = dataset_of(uri)
    assert found is not None
    assert (found.namespace, found.name) == (expected.get_namespace(), expected.get_name())


def test_a_relative_path_is_named_by_the_whole_of_it() -> None:
    found = dataset_of("in.csv")
    assert found is not None
    assert found.name == os.path.abspath("in.csv")


@pytest.mark.parametrize("uri", ["memory:1", "frame:rides", "console:"])
def test_what_only_the_process_has_is_no_dataset(uri: str) -> None:
    assert dataset_of(uri) is None


def test_what_the_specification_does_not_name_is_named_as_it_is_written() -> None:
    found = dataset_of("generator:taxi?rows=10")
    assert found is not None
    assert (found.namespace, found.name) == ("generator", "taxi")
    catalog = dataset_of("iceberg:prod?table=shop.rides")
    assert catalog is not None
    assert (catalog.namespace, catalog.name) == ("iceberg:prod", "shop.rides")


WRITTEN = {
    "out": "file://{here}/out",
    "file:///data/out?format=csv": "file:///data/out",
    "s3://bucket/a?region=x": "s3://bucket/a?region=x",
    "kafka://one:9092,two:9092/rides?key=a&config=secret.conf": "kafka://one:9092,two:9092/rides",
    "postgresql://me@db/shop?table=sales.rides&passfile=secret": (
        "postgresql://me@db/shop?table=sales.rides"
    ),
    "postgres://db:5433/shop?table=rides&newest=true": "postgresql://db:5433/shop?table=rides",
    "delta:a%20b/t?append=true": "delta:{here}/a%20b/t",
    "delta+s3://bucket/t?region=x&append=true": "delta+s3://bucket/t?region=x",
    "iceberg:lake.db?table=n.t": "iceberg:{here}/lake.db?table=n.t",
    "iceberg:prod?table=n.t&append=true": "iceberg:prod?table=n.t",
    "console:": None,
    "memory:": None,
}
"""By the URI of an output, as somebody writes it, that of its sink; at least one of each kind."""


def test_each_sink_names_the_dataset_that_its_uri_is_read_as(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kinds = {SINKS[Address.parse(uri, "out").scheme] for uri in WRITTEN}
    assert kinds == set(SINKS.values())
    for given, named in WRITTEN.items():
        sink = of(given)
        assert sink.uri == (named and named.replace("{here}", str(tmp_path)))
        assert "secret" not in repr(sink)
        assert (None if sink.uri is None else dataset_of(sink.uri)) == dataset_of(given)


@pytest.mark.parametrize(
    ("uri", "named"),
    [
        ("out", ("file", "{here}/out/busy")),
        ("s3://bucket/a?region=x", ("s3://bucket", "a/busy")),
        ("kafka://one:9092/rides", ("kafka://one:9092", "rides-busy")),
        ("postgresql://me@db/shop?table=rides", ("postgres://db:5432", "shop.public.rides_busy")),
        ("delta:t", ("file", "{here}/t/busy")),
        ("iceberg:prod?table=n.t", ("iceberg:prod", "n.t_busy")),
    ],
)
def test_an_output_with_a_name_is_a_dataset_of_its_own(
    uri: str, named: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = dataset_of(str(of(uri, "busy").uri))
    assert found == Dataset(*(text.replace("{here}", str(tmp_path)) for text in named))
