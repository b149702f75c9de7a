"""`localsmooth export`: the certificate of a finished run."""

from __future__ import annotations

from pathlib import Path

from localsmooth.cli.commands import Log
from localsmooth.cli.telling import telling
from localsmooth.cli.verify import EvidenceTeller
from localsmooth.evidence import export_certificate

__all__ = ["export"]


def export(run: Path, certificate: Path, key: Path | None, log: Log) -> None:
    """Verify a finished run and write its certificate."""
    told = EvidenceTeller(log)
    with telling(log) as teller, told.failing():
        found = export_certificate(run, certificate, key, tell=told.checked)
        told.summary(found)
        signed, public = ("", "") if key is None else (f", signed in {certificate}.sig", " --public-key PUBLIC.pem")
        teller.say(f"Certificate: {certificate}{signed}. Check it: localsmooth verify {run} {certificate}{public}")
