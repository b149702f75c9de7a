"""Certificates: every leaf of one is checked against the run, and a signature against the bytes."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localsmooth.errors import InvalidInputError
from localsmooth.evidence import DoesNotHoldError, export_certificate, verify_run
from localsmooth.evidence.certificate import canonical, certificate_content, differing
from localsmooth.evidence.proof_file import PROOFS, kept_proofs, proofs_digest
from localsmooth.evidence.walk import walk

from .runs import chunk_files, make_run, rewrite_chunk

ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")


def write_keys(folder: Path, name: str, password: bytes | None = None) -> tuple[Path, Path]:
    key = ed25519.Ed25519PrivateKey.generate()
    hidden = serialization.NoEncryption() if password is None else serialization.BestAvailableEncryption(password)
    private, public = folder / f"{name}.pem", folder / f"{name}-public.pem"
    pem = serialization.Encoding.PEM
    private.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, hidden))
    public.write_bytes(key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return private, public


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two items with its certificate, signed."""
    made = tmp_path_factory.mktemp("certificate")
    make_run(made / "run", count=2)
    private, _ = write_keys(made, "key")
    export_certificate(made / "run", made / "certificate.json", private)
    return made


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Places of all values that hold no others, empty lists and objects among them."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    below = [leaf for key, each in inner for leaf in leaves(each, (*place, key))]
    yield from below or [place]


def changed(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return f"{value[:-1]}{'b' if value[-1] == 'a' else 'a'}" if value else "a"
    return "something" if value is None else [1] if isinstance(value, list) else {"a": 1}


def test_every_leaf_counts(folder: Path):
    evidence = walk(folder / "run", None, kept_proofs)
    content = certificate_content(evidence, proofs_digest(folder / "run"))
    text = (folder / "certificate.json").read_bytes()
    assert differing(content, text) == ""
    places = list(leaves(json.loads(text)))
    assert len(places) > 100
    for place in places:
        other = json.loads(text)
        *path, last = place
        owner = other
        for key in path:
            owner = owner[key]
        owner[last] = changed(owner[last])
        said = differing(content, canonical(other))
        assert said, place
        if place[0] not in ("schema", "schema_version"):
            assert str(place[0]) in said
        if isinstance(owner, dict):
            del owner[last]
            assert differing(content, canonical(other)), f"without {place}"
    for other in (text[:-1], text + b" ", b"", b"[]", b"{", text.replace(b"\n ", b"\n  ", 1), b"\xff"):
        assert differing(content, other)


def test_the_pair_is_verified_and_what_was_changed_is_named(folder: Path, tmp_path: Path):
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    certificate, public = copy / "certificate.json", copy / "key-public.pem"
    found = verify_run(copy / "run", certificate, public)
    assert found.complete
    assert "signed" in found.checked[-1].what
    unsigned = verify_run(copy / "run", certificate)
    assert not unsigned.complete
    assert "no public key was named (--public-key" in unsigned.unchecked[0]
    (copy / "run" / "overlap.nc").write_bytes(b"anything")
    (copy / "run" / "report.html").write_bytes(b"anything")
    assert "not looked at: overlap.nc, report.html" in verify_run(copy / "run").notes
    text = certificate.read_bytes()
    certificate.write_bytes(text.replace(b'"alpha": 0.05', b'"alpha": 0.01'))
    with pytest.raises(DoesNotHoldError, match=r"promise\.alpha: not what the run says"):
        verify_run(copy / "run", certificate)
    certificate.write_bytes(text)
    signature = copy / "certificate.json.sig"
    kept = signature.read_bytes()
    for place in range(0, len(kept), 17):
        broken = bytearray(kept)
        broken[place] ^= 1
        signature.write_bytes(bytes(broken))
        with pytest.raises(DoesNotHoldError, match="signature"):
            _verify_signature(copy)
    signature.write_bytes(kept)
    _, stranger = write_keys(tmp_path, "stranger")
    with pytest.raises(DoesNotHoldError, match="not that of this key"):
        verify_run(copy / "run", certificate, stranger)
    signature.unlink()
    with pytest.raises(DoesNotHoldError, match="there is no"):
        verify_run(copy / "run", certificate, public)


def _verify_signature(copy: Path) -> None:
    """Only the last step: what comes before was seen to hold."""
    from localsmooth.evidence.signature import signature_problem

    content = (copy / "certificate.json").read_bytes()
    problem = signature_problem(content, (copy / "certificate.json.sig").read_bytes(), copy / "key-public.pem")
    if problem:
        raise DoesNotHoldError("signature", problem)


def test_a_chunk_that_says_the_same_in_other_bytes_is_another_run(folder: Path, tmp_path: Path):
    """What a chunk says of its device is no count, and belongs to the digest of the tallies all the same."""
    from dataclasses import replace

    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    rewrite_chunk(
        chunk_files(copy / "run")[3], copy / "run", lambda chunk: replace(chunk, provenance={"device": "other"})
    )
    with pytest.raises(DoesNotHoldError, match=r"digests\.tallies"):
        verify_run(copy / "run", copy / "certificate.json")


def test_any_byte_of_the_result_file_counts(folder: Path, tmp_path: Path):
    """Those that HDF5 leaves unused, too: without the certificate nothing tells them apart."""
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    with (copy / "run" / "result.nc").open("ab") as file:
        file.write(b"\0")
    assert verify_run(copy / "run").complete
    with pytest.raises(DoesNotHoldError, match=r"digests\.result_file"):
        verify_run(copy / "run", copy / "certificate.json")


def test_exporting_again_writes_the_same_bytes(folder: Path, tmp_path: Path):
    export_certificate(folder / "run", tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (folder / "certificate.json").read_bytes()


def test_proofs_that_were_kept_are_verified_like_all_others(folder: Path, tmp_path: Path):
    run = Path(shutil.copytree(folder / "run", tmp_path / "run"))
    assert (run / PROOFS).is_file()
    content = (run / PROOFS).read_bytes()
    (run / PROOFS).write_bytes(content[:-3])
    with pytest.raises(DoesNotHoldError, match="proofs"):
        verify_run(run)
    (run / PROOFS).unlink()
    assert verify_run(run).complete
    with pytest.raises(DoesNotHoldError, match=r"digests\.proofs"):
        verify_run(run, folder / "certificate.json")


@pytest.mark.parametrize("budgets", [[0.0, 0.05, 0.15, 0.3, 0.6, 1.2], [0.3]])
def test_proofs_of_an_earlier_result_are_not_those_of_a_later_one(folder: Path, tmp_path: Path, budgets: list[float]):
    run = Path(shutil.copytree(folder / "run", tmp_path / "run"))
    assert kept_proofs(run)
    make_run(run, count=2, budgets=budgets)
    assert kept_proofs(run) == {}
    assert verify_run(run).complete
    export_certificate(run, tmp_path / "later.json")
    assert kept_proofs(run)
    assert verify_run(run, tmp_path / "later.json").complete
    with pytest.raises(DoesNotHoldError, match="digests"):
        verify_run(run, folder / "certificate.json")


def test_keys_that_cannot_be_used_are_named(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    hidden, _ = write_keys(tmp_path, "hidden", b"secret")
    (tmp_path / "no.pem").write_text("no key")
    for key, said in (
        (hidden, "password"),
        (tmp_path / "no.pem", "cannot be read"),
        (tmp_path / "missing.pem", "cannot be read"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            export_certificate(folder / "run", tmp_path / "c.json", key)
    with pytest.raises(InvalidInputError, match="no certificate whose signature"):
        verify_run(folder / "run", public_key=hidden)
    with pytest.raises(InvalidInputError, match="is no file"):
        verify_run(folder / "run", tmp_path / "none.json")
    with pytest.raises(InvalidInputError, match="no directory"):
        verify_run(folder / "nothing")
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    with pytest.raises(InvalidInputError, match="pip install cryptography"):
        export_certificate(folder / "run", tmp_path / "c.json", hidden)
    assert not (tmp_path / "c.json").exists()
