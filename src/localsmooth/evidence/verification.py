"""The two things that there are to do: verify a run, with a certificate or without, and export a certificate."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from localsmooth.disk import expanded, require_writable, write_atomically
from localsmooth.errors import InvalidInputError
from localsmooth.evidence.certificate import canonical, certificate_content, differing
from localsmooth.evidence.ledger import Checked, Ledger, Verification
from localsmooth.evidence.proof_file import kept_proofs, proofs_digest, save_proofs
from localsmooth.evidence.signature import loaded_private_key, signature_of, signature_path, signature_problem
from localsmooth.evidence.walk import walk

__all__ = ["export_certificate", "verify_run"]

_LARGEST = 1 << 28
_PAIR = "certificate"
_RESULT, _SHOWN = "result.nc", {".nc", ".html", ".csv"}

AnyPath = str | os.PathLike[str]


def verify_run(
    run: AnyPath,
    certificate: AnyPath | None = None,
    public_key: AnyPath | None = None,
    *,
    tell: Callable[[Checked], None] | None = None,
) -> Verification:
    """Check a finished run from its files alone, without the model: every step from tallies to counts.

    Parameters
    ----------
    run
        The run directory.
    certificate
        A certificate that must be the one of this run, entry by entry; None for none.
    public_key
        Ed25519 key (PEM) whose signature must lie beside the certificate; None for none.
    tell
        Told each line of what holds, as it comes.

    Returns
    -------
    Verification
        What was checked, what was not and why, and what must be taken on trust.

    Raises
    ------
    DoesNotHoldError
        At the first thing that does not hold, naming it.
    InvalidInputError
        If a path leads nowhere, or there is a key and nothing that it could have signed.
    """
    if public_key is not None and certificate is None:
        raise InvalidInputError("public_key", "there is no certificate whose signature could be checked", "Name one")
    file = None if certificate is None else expanded(certificate)
    if file is not None and not file.is_file():
        raise InvalidInputError("certificate", f"{file} is no file", "Name a certificate that export wrote")
    evidence = walk(run, tell, kept_proofs)
    ledger = Ledger(tell)
    if beside := _others(Path(evidence.store.path)):
        ledger.note(f"not looked at: {', '.join(beside)}")
    if file is None:
        return evidence.verification.extended(ledger)
    with ledger.step(_PAIR):
        if file.stat().st_size > _LARGEST:
            raise ValueError("the file is too large to be a certificate")
        text = file.read_bytes()
        content = certificate_content(evidence, proofs_digest(evidence.store.path))
        if problem := differing(content, text):
            raise ValueError(problem)
    ledger.holds("the certificate is the one of this run", len(text), "bytes")
    signature = signature_path(file)
    if public_key is not None:
        with ledger.step("signature"):
            if not signature.is_file():
                raise ValueError(f"there is no {signature}; ask for it, or name no public key")
            if problem := signature_problem(text, signature.read_bytes(), expanded(public_key)):
                raise ValueError(problem)
        ledger.holds("the certificate was signed with the key that belongs to the public one", 1, "signatures")
    elif signature.is_file():
        ledger.leave(f"not checked: {signature}, since no public key was named (--public-key, public_key= in Python)")
    return evidence.verification.extended(ledger)


def _others(folder: Path) -> list[str]:
    """Results and pages beside `result.nc`, which whoever is shown the directory may take for verified."""
    return sorted(path.name for path in folder.iterdir() if path.suffix in _SHOWN and path.name != _RESULT)


def export_certificate(
    run: AnyPath,
    path: AnyPath,
    key: AnyPath | None = None,
    *,
    tell: Callable[[Checked], None] | None = None,
) -> Verification:
    """Verify a run, keep the proofs of its counts in its directory, and write its certificate.

    Parameters
    ----------
    run
        The run directory.
    path
        File to write, such as certificate.json.
    key
        Ed25519 key (PEM, without a password) to sign it with, into a file with .sig after its name; None for none.
    tell
        Told each line of what holds, as it comes.

    Returns
    -------
    Verification
        What was checked.

    Raises
    ------
    DoesNotHoldError
        If something in the run does not hold.
    InvalidInputError
        If a path leads nowhere, the key cannot be used, no proof was found of some counts, or nothing in the result
        could be checked, since its record does not say what was asked.
    OutputError
        If a file cannot be written.
    """
    target: Path = require_writable(path)
    private = None if key is None else loaded_private_key(expanded(key))
    evidence = walk(run, tell, kept_proofs)
    if not evidence.compared:
        raise InvalidInputError(
            "run",
            "its record cannot give back what was asked to be proven, so that nothing in its result could be checked",
            "Register the class (docs/extending.md), with fields of plain values, and certify into the directory again",
        )
    if evidence.open:
        raise InvalidInputError(
            "run",
            f"no proof was found again of {len(evidence.open)} counts, the first of {evidence.open[0]}",
            "Certify it with less (recertify without exact), or export on a machine that has more time",
        )
    folder = evidence.store.path
    save_proofs(folder, evidence.proofs)
    text = canonical(certificate_content(evidence, proofs_digest(folder)))
    write_atomically(target, text)
    if private is not None:
        write_atomically(signature_path(target), signature_of(text, private))
    return evidence.verification
