from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.errors import SourceError
from tidegate.source.registry import open_uri


def test_paths_file_uris_and_generators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my rides.csv").write_text("t,i\n2024-01-01,1\n")
    monkeypatch.chdir(tmp_path)
    ids = {
        "my rides.csv": "my rides.csv",
        f"file://{tmp_path}/my%20rides.csv": f"{tmp_path}/my rides.csv",
        "*.csv": "my rides.csv",
        "generator:taxi?rows=5": "generator:taxi?rows=5",
    }
    for uri, expected in ids.items():
        connector = open_uri(uri, "rides", None, False)
        assert [s.id for s in connector.discover()] == [expected]
        assert not connector.live()


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("", "stream rides: the URI must not be empty"),
        ("kafka:topic", "must be of the form kafka://host:port/topic; got kafka:topic. Write it"),
        ("kafkb:topic", "rides, kafkb:topic: must be a path or of a known scheme; got kafkb:. Di"),
        ("kafkb:topic", "kafka, delta, delta+s3, iceberg, file, s3, gs, abfs, hdfs. A file or fol"),
        ("s4://bucket/a.csv", "got s4:. Did you mean s3"),
        ("htp://host/a.csv", "got htp:. There are: generator, kafka, delta, delta+s3"),
        (
            "s3:/bucket/a.csv",
            "a URI of s3 must have its slashes; got s3:/bucket/a.csv. Write s3://",
        ),
        (
            "s3://k:secret@b/a.csv",
            "stream rides, s3://k:...@b/a.csv: a URI must be without keys and passwords",
        ),
        (
            "s3://b/a.csv?regin=x",
            "must have parameters that s3:// knows; got regin. Did you mean re",
        ),
        ("file://host/a.csv", "a file URI must name a file on this machine"),
        ("nowhere.csv", "stream rides, nowhere.csv: the file or folder must be there"),
    ],
)
def test_what_is_refused(uri: str, message: str) -> None:
    with pytest.raises(SourceError) as raised:
        open_uri(uri, "rides", "t", False)
    assert message in str(raised.value)
