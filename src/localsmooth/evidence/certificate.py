"""A certificate: what a run promises and which run that is, as one short text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from localsmooth.evidence.proof_file import result_digest
from localsmooth.evidence.walk import Evidence
from localsmooth.results import budget_kinds, run_info
from localsmooth.runs import RunIdentity, digest
from localsmooth.tasks import FINISHED

__all__ = ["SCHEMA", "SCHEMA_VERSION", "canonical", "certificate_content", "differing"]

SCHEMA = "localsmooth-certificate"
SCHEMA_VERSION = 1


def certificate_content(evidence: Evidence, proofs: str) -> dict[str, Any]:
    """What the certificate of a run says: nothing but what follows from its files.

    Parameters
    ----------
    evidence
        The run, read and checked.
    proofs
        Digest of its proofs.

    Returns
    -------
    dict[str, Any]
        Plain JSON values. `counts` holds for each target and bound one number for each budget, in the order of
        `promise.budgets` (of several kinds each combination, the last kind fastest).
    """
    result, record, store = evidence.result, evidence.record, evidence.store
    run, identity = run_info(result), store.configuration
    assert identity is not None
    content: Mapping[str, Any] = identity.content
    smoothing = run.smoothing
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "model": {**content["model"], "device": run.device, "precision": run.precision},
        "data": {
            "digest": "" if smoothing is None else smoothing.data,
            "items": [str(name) for name in result["item"].values],
            "labelled": record.labelled,
        },
        "smoothing": {
            "noise": record.noise,
            "layout": "" if smoothing is None else smoothing.layout,
            "plan": dict(content["plan"]),
            "input_bounds": None if run.input_bounds is None else list(run.input_bounds),
        },
        "promise": {
            "method": run.method,
            "threat": run.threat,
            "norm": run.norm,
            "units": run.units,
            "budgets": {kind: result[kind].values.tolist() for kind in budget_kinds(result)},
            "alpha": run.alpha,
            "holds_for": "each item on its own, with probability 1 - alpha over the samples of the bound stage",
            "words": run.promise,
            "proven": run.proven,
            "assumptions": list(run.assumptions),
            "trusted": list(evidence.verification.trusted),
            "unchecked": list(evidence.verification.unchecked),
        },
        "items": [_item(result.sel(item=name), evidence, index) for index, name in enumerate(result["item"].values)],
        "left_out": list(run.left_out),
        "digests": {
            "configuration": identity.sha256,
            "tallies": evidence.tallies,
            "record": hashlib.sha256((store.path / FINISHED).read_bytes()).hexdigest(),
            "result": str(result.attrs.get("checksum", "")),
            "result_file": result_digest(store.path),
            "proofs": proofs,
        },
        "made": {
            "sampled": record.sampled,
            "package": "" if smoothing is None else smoothing.package,
            "versions": dict(record.versions),
        },
    }


def _item(result: xr.Dataset, evidence: Evidence, index: int) -> dict[str, Any]:
    targets = [str(name) for name in result["target"].values]
    certified = result["certified"].values
    return {
        "name": str(result["item"].values),
        "rule": evidence.rules[index] if evidence.rules else "",
        "predictions": digest(np.asarray(result["prediction"].values)),
        "total": dict(zip(targets, result["total"].values.tolist(), strict=True)),
        "counts": {
            target: {
                str(bound): certified[at, place].ravel().tolist() for place, bound in enumerate(result["bound"].values)
            }
            for at, target in enumerate(targets)
        },
    }


def canonical(content: Mapping[str, Any]) -> bytes:
    """The bytes of a certificate: JSON with sorted keys, one entry a line, and a newline at the end."""
    return (json.dumps(content, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def differing(content: Mapping[str, Any], text: bytes) -> str:
    """Say in which entries a certificate differs from what a run says; empty if it is the same, byte by byte.

    Parameters
    ----------
    content
        What the run says.
    text
        The bytes of the certificate.
    """
    if canonical(content) == text:
        return ""
    try:
        said = json.loads(text)
        if not isinstance(said, dict):
            return "it is no certificate"
        if (said.get("schema"), said.get("schema_version")) != (SCHEMA, SCHEMA_VERSION):
            return "schema: it is no certificate of a version that is known here"
        names = RunIdentity(content).differences(RunIdentity(said))
    except (ValueError, RecursionError):
        return "it is not JSON"
    if not names:
        return "its bytes are not those that this run's certificate has, although its entries are"
    return f"{', '.join(names[:5])}{' and more' if len(names) > 5 else ''}: not what the run says"
