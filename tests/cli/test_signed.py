"""A signed chain is checked with the public key alone, and each kind of tampering is named."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.serialization import load_pem_public_key

import tidegate as tg
from tests.cli.pem import write_keys
from tests.secrets.planted import PLANTED, search
from tidegate.cli.main import invoke

_SQL = """CREATE STREAM r FROM 'in.csv' TIME ts;
SELECT k, COUNT(*) AS n, AVG(v) AS a FROM r [RANGE 10 SECONDS] GROUP BY k;"""
_RUN = "run q.sql --master none --out out --checkpoint ck --batch-rows 20".split()


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Input, a query, and the keys of two people."""
    monkeypatch.chdir(tmp_path)
    rows = [f"2024-01-01T00:00:{i:02d}Z,{'abc'[i % 3]},{i * 1.5}" for i in range(60)]
    Path("in.csv").write_text("\n".join(["ts,k,v", *rows]) + "\n")
    Path("q.sql").write_text(_SQL)
    write_keys("mine")
    write_keys("other")
    return tmp_path


@pytest.fixture
def signed(work: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """A finished run whose batches are signed; gives what `verify` says of it, or says of a copy.

    The text is without line breaks that a test would have to know.
    """
    assert invoke([*_RUN, "--sign", "mine.pem"]) == 0

    def check(code: int, *words: str, place: str = "ck", key: str = "mine.pub") -> str:
        capsys.readouterr()
        assert invoke(["verify", place, "--signed-by", key, *words]) == code
        said = capsys.readouterr()
        return said.out + said.err

    return check


def _links() -> list[Path]:
    return sorted(Path("ck/chain").iterdir())


def _part() -> Path:
    return sorted(Path("out").glob("batch=*/part-*"))[0]


def test_a_run_is_as_signed(signed: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    assert len(_links()) == 3
    digests = json.loads(_said(capsys, "digest", "ck", "--json"))["digests"]
    told = signed(0)
    assert f"digest {digests['']['digest']}, 18 rows, 3 files as signed" in told
    assert (
        json.loads(_said(capsys, "digest", "ck", "--signed-by", "mine.pub", "--json"))["digests"]
        == digests
    )


def _said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert invoke(words) == 0
    return capsys.readouterr().out


def test_somebody_else_needs_no_tidegate(signed: Callable[..., str]) -> None:
    """What a link is can be checked in these lines, with the page in hand."""
    public = load_pem_public_key(Path("mine.pub").read_bytes())
    before, files = "", 0
    for path in _links():
        line, signature, _ = path.read_bytes().split(b"\n")
        public.verify(base64.b64decode(signature), line)  # type: ignore[union-attr, call-arg]
        link = json.loads(line)
        assert link["previous"] == before
        assert link["format"] == "tidegate chain 1"
        for name, size, digest in link["outputs"][""]["parts"]:
            data = Path(f"out/batch={link['batch']:08d}", name).read_bytes()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (size, digest)
            files += 1
        before = hashlib.sha256(line).hexdigest()
    assert files == len(list(Path("out").glob("batch=*/part-*"))) == 3


def test_a_copy_of_the_chain_is_enough(signed: Callable[..., str]) -> None:
    shutil.copytree("ck/chain", "theirs/chain")
    shutil.move("out", "elsewhere")
    for name in ("in.csv", "q.sql", "mine.pem"):
        Path(name).unlink()
    assert "3 files as signed" in signed(0, "--out", "elsewhere", place="theirs")
    assert "must say where the output is" in signed(2, place="theirs")


def test_a_chain_of_another_key_is_named(signed: Callable[..., str]) -> None:
    assert "00000000.json: must be as it was signed, with this key" in signed(1, key="other.pub")


@pytest.mark.parametrize(
    ("tamper", "named"),
    [
        ("_flip_a_bit", "part-00000.parquet: other bytes than were signed"),
        ("_replace_rows", "part-00000.parquet: other bytes than were signed"),
        ("_remove_a_file", "part-00000.parquet: no such file, and it was signed"),
        ("_add_a_file", "part-00001.parquet: not signed"),
        ("_add_a_batch", "batch=00000009: not signed"),
        ("_swap_two_batches", "other bytes than were signed"),
        ("_edit_a_link", "must be as it was signed, with this key; got another text"),
        ("_drop_a_link", "must follow that of 0; got another one: links are missing"),
        ("_drop_the_first_link", "must be the first link; got another one: links are missing"),
        ("_drop_the_last_link", "the output has 18 rows, of which 9 are signed"),
        ("_rename_a_link", "must be the link of batch 1; got that of batch 2"),
        ("_sign_with_another_key", "must be as it was signed, with this key"),
        ("_splice_another_chain", "must follow that of 0; got another one"),
    ],
)
def test_tampering_is_found_and_named(signed: Callable[..., str], tamper: str, named: str) -> None:
    globals()[tamper]()
    assert named in signed(1)


def _flip_a_bit() -> None:
    data = bytearray(_part().read_bytes())
    data[len(data) // 3] ^= 1
    _part().write_bytes(data)


def _replace_rows() -> None:
    """A file that is right in itself, and a ledger of the CRC-32 sums that it has now."""
    rows = pq.read_table(_part())
    place = rows.column_names.index("n")
    pq.write_table(rows.set_column(place, "n", pc.add(rows["n"], 1)), _part())
    shutil.rmtree("out/_ledger")


def _remove_a_file() -> None:
    _part().unlink()


def _add_a_file() -> None:
    shutil.copy(_part(), _part().with_name("part-00001.parquet"))


def _add_a_batch() -> None:
    shutil.copytree(_part().parent, "out/batch=00000009")


def _swap_two_batches() -> None:
    first, second = sorted(Path("out").glob("batch=*"))[:2]
    first.rename("out/aside")
    second.rename(first)
    Path("out/aside").rename(second)


def _edit_a_link() -> None:
    path = _links()[1]
    path.write_bytes(path.read_bytes().replace(b'"finished":false', b'"finished":true'))


def _drop_a_link() -> None:
    _links()[1].unlink()


def _drop_the_first_link() -> None:
    _links()[0].unlink()


def _drop_the_last_link() -> None:
    _links()[-1].unlink()


def _rename_a_link() -> None:
    _links()[2].rename(_links()[1])


def _sign_with_another_key() -> None:
    _sign_again("other.pem", lambda link: link)


def _sign_again(key: str, change: Callable[[dict[str, object]], dict[str, object]]) -> None:
    """What somebody does who has a key: sign a link as they want it to be."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    private = load_pem_private_key(Path(key).read_bytes(), None)
    link = change(json.loads(_links()[1].read_bytes().split(b"\n")[0]))
    line = json.dumps(link, sort_keys=True, separators=(",", ":")).encode()
    signature = base64.b64encode(private.sign(line))  # type: ignore[union-attr, call-arg]
    _links()[1].write_bytes(line + b"\n" + signature + b"\n")


def _splice_another_chain() -> None:
    """Of another run, of the same query over other input, signed with the same key."""
    Path("in.csv").write_text(Path("in.csv").read_text().replace("24Z,a", "24Z,b"))
    again = [w.replace("out", "out2") if w == "out" else w for w in _RUN]
    again = ["ck2" if w == "ck" else w for w in again]
    assert invoke([*again, "--sign", "mine.pem"]) == 0
    shutil.copy("ck2/chain/00000001.json", "ck/chain/00000001.json")


def test_a_run_that_goes_on_goes_on_with_the_chain(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = [*_RUN, "--available-now"]
    assert invoke([*run, "--sign", "mine.pem"]) == 0
    first = len(_links())
    capsys.readouterr()
    assert invoke(run) == 2
    assert "must be given; got none for" in capsys.readouterr().err
    assert invoke([*run, "--sign", "other.pem"]) == 2
    assert "must be the key of this chain" in capsys.readouterr().err
    with Path("in.csv").open("a") as file:
        file.write("2024-01-01T00:01:30Z,a,1\n2024-01-01T00:02:30Z,a,1\n")
    assert invoke([*run, "--sign", "mine.pem"]) == 0
    assert len(_links()) > first
    assert "as signed" in _said(capsys, "verify", "ck", "--signed-by", "mine.pub")


def test_a_chain_that_is_gone_is_refused(
    signed: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree("ck/chain")
    assert invoke([*_RUN, "--sign", "mine.pem"]) == 2
    assert "must have the chain of its batches" in capsys.readouterr().err


def test_what_no_query_has_beside_a_key_is_refused(signed: Callable[..., str]) -> None:
    assert "takes --out and --json alone" in signed(2, "--from", "1970-01-01")


@pytest.mark.parametrize("name", ["batch=2x", "more.parquet"])
def test_a_stray_beside_signed_batches_is_named(signed: Callable[..., str], name: str) -> None:
    source = min(Path("out").glob("batch=*"))
    if name.startswith("batch"):
        shutil.copytree(source, Path("out") / name)
    else:
        shutil.copy(next(source.iterdir()), Path("out") / name)
    assert f"/out/{name}: not signed" in signed(1)


def test_a_link_that_a_crash_has_taken_is_written_again(signed: Callable[..., str]) -> None:
    whole = _links()[-1].read_bytes()
    _links()[-1].unlink()
    assert invoke([*_RUN, "--sign", "mine.pem"]) == 0
    assert _links()[-1].read_bytes() == whole
    assert "as signed" in signed(0)


def test_signing_may_begin_in_the_middle(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows before are covered by the digest, and their files by nothing else."""
    run = [*_RUN, "--available-now"]
    assert invoke(run) == 0
    with Path("in.csv").open("a") as file:
        file.write("2024-01-01T00:01:30Z,a,1\n2024-01-01T00:02:30Z,a,1\n")
    assert invoke([*run, "--sign", "mine.pem"]) == 0
    assert "as signed" in _said(capsys, "verify", "ck", "--signed-by", "mine.pub")
    rows = pq.read_table(_part())
    place = rows.column_names.index("n")
    pq.write_table(rows.set_column(place, "n", pc.add(rows["n"], 1)), _part())
    assert invoke(["verify", "ck", "--signed-by", "mine.pub"]) == 1
    assert "rows with digest" in capsys.readouterr().out


def test_whether_batches_are_signed_is_recorded(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A start without a key asks the manifest alone: nobody lists a chain that may not be there."""
    run = [*_RUN, "--available-now"]
    assert invoke(run) == 0
    Path("ck/chain").write_text("what cannot be listed")
    assert invoke(run) == 0
    Path("ck/chain").unlink()
    assert invoke([*run, "--sign", "mine.pem"]) == 0  # no new batch: it signs the one before
    assert len(_links()) == 1
    shutil.rmtree("ck/chain")
    capsys.readouterr()
    assert invoke(run) == 2
    assert "must be given; got none for" in capsys.readouterr().err


def test_what_is_no_key_is_refused(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = PLANTED["lineage"].value
    Path("none.pem").write_text(f"-----BEGIN PRIVATE KEY-----\n{secret}\n")
    for words in (
        [*_RUN, "--sign", "none.pem"],
        [*_RUN, "--sign", "mine.pub"],
        [*_RUN, "--sign", "missing.pem"],
        ["verify", "ck", "--signed-by", "none.pem"],
        ["run", "q.sql", "--master", "none", "--out", "out", "--sign", "mine.pem"],
        ["verify", "ck", "--signed-by", "mine.pub", "--to", "2024-01-01"],
        ["verify", "ck", "--out", "out"],
        ["digest", "ck", "--signed-by", "mine.pub", "--until", "2024-01-01"],
    ):
        assert invoke(words) == 2
    said = capsys.readouterr().err
    assert search([], [said], [PLANTED["lineage"]]) == []
    assert said.count("must be a PEM file with an Ed25519") == 4
    assert "openssl genpkey -algorithm ed25519" in said


def test_a_program_signs_and_the_key_is_in_nothing_that_it_leaves(
    work: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG, "tidegate")
    query = tg.Session(master="none").sql(_SQL)
    started = query.start(sink="out", checkpoint="ck", sign=work / "mine.pem", dashboard=True)
    started.wait()
    key = Path("mine.pem").read_text().splitlines()[1]
    texts = [caplog.text, repr(started), json.dumps(started.status(), default=str)]
    raw = base64.b64decode(key)[-32:]
    for path in [p for p in (*Path("ck").rglob("*"), *Path("out").rglob("*")) if p.is_file()]:
        data = path.read_bytes()
        assert key.encode() not in data
        assert raw not in data
    assert not any(key in text for text in texts)
    assert "as signed" in _said(capsys, "verify", "ck", "--signed-by", "mine.pub")


def test_a_chain_goes_on_after_a_cutover(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = [*_RUN, "--available-now", "--sign", "mine.pem"]
    assert invoke(run) == 0
    Path("new.sql").write_text(_SQL.replace("10 SECONDS", "20 SECONDS"))
    assert invoke(["compare", "ck", "new.sql", "--cutover", "kept"]) == 0
    with Path("in.csv").open("a") as file:
        file.write("2024-01-01T00:01:30Z,a,1\n2024-01-01T00:02:30Z,a,1\n")
    assert invoke([w.replace("q.sql", "new.sql") for w in run]) == 0
    assert "as signed" in _said(capsys, "verify", "ck", "--signed-by", "mine.pub")
    queries = [json.loads(path.read_bytes().split(b"\n")[0])["query"] for path in _links()]
    assert len(set(queries)) == 2
    assert queries[0] == queries[-2] != queries[-1]


def test_a_batch_whose_output_was_lost_is_signed_as_it_is_made_again(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = [*_RUN, "--available-now", "--sign", "mine.pem"]
    assert invoke(run) == 0
    newest = sorted(Path("out").glob("batch=*"))[-1]
    links = [path.read_bytes() for path in _links()]
    shutil.rmtree(newest)
    assert invoke(["verify", "ck", "--signed-by", "mine.pub"]) == 1
    assert invoke(run) == 0
    assert newest.is_dir()
    assert [path.read_bytes() for path in _links()] == links
    assert "as signed" in _said(capsys, "verify", "ck", "--signed-by", "mine.pub")
