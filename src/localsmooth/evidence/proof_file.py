"""Proofs as one file of a run: JSON with arrays in base64, packed; read with suspicion, and verified by the kernel."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from localsmooth.collective import Ceiling, DualPoint, Leaf, Node, Proof, SplitFeed, SplitSpending, Tighten
from localsmooth.disk import write_atomically
from localsmooth.errors import OutputError
from localsmooth.evidence.counts import KeptProof, KeptProofs

__all__ = ["PROOFS", "kept_proofs", "proofs_digest", "result_digest", "save_proofs"]

PROOFS = "proofs.json.zz"
"""File of a run directory with the proofs of its counts: `zlib.decompress` shows the JSON."""

_FORMAT, _VERSION = "localsmooth-proofs", 2
_EARLIER = 1  # does not say of which result its proofs are
_LARGEST = 1 << 31


def save_proofs(folder: Path, proofs: KeptProofs) -> None:
    """Write the proofs of a run's result, in place of those of an earlier one.

    Raises
    ------
    OutputError
        If that is not possible.
    """
    if not proofs:
        try:
            (folder / PROOFS).unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(folder / PROOFS, str(error)) from error
        return
    rows = [
        {"item": item, "target": target, "way": kept.way, "alone": kept.alone, "part": kept.part, **_plain(kept.proof)}
        for (item, target), several in proofs.items()
        for kept in several
    ]
    content = {"format": _FORMAT, "version": _VERSION, "result": result_digest(folder), "proofs": rows}
    write_atomically(folder / PROOFS, zlib.compress(json.dumps(content, allow_nan=False).encode(), 9))


def kept_proofs(folder: Path) -> KeptProofs:
    """Read the proofs that were kept with a run's result.

    There are none where there is no file, or the run was certified anew since: budgets and counts may be others.

    Raises
    ------
    ValueError
        If the file is damaged.
    """
    path = folder / PROOFS
    if not path.is_file():
        return {}
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(path.read_bytes(), _LARGEST)
        content = json.loads(text)
        if not unpacking.eof or content["format"] != _FORMAT or content["version"] not in (_EARLIER, _VERSION):
            raise ValueError("it is cut off, or of another version")
        if content["version"] == _EARLIER or content["result"] != result_digest(folder):
            return {}
        made: dict[tuple[str, str], list[KeptProof]] = defaultdict(list)
        for row in content["proofs"]:
            made[str(row["item"]), str(row["target"])].append(
                KeptProof(int(row["way"]), int(row["alone"]), _proof(row), int(row.get("part", 0)))
            )
    except (zlib.error, ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"{PROOFS} is damaged ({error}). Delete it: proofs are then looked for again") from error
    return dict(made)


def proofs_digest(folder: Path) -> str:
    """Hexadecimal SHA-256 of the file with the proofs; empty where there is none."""
    path = folder / PROOFS
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def result_digest(folder: Path) -> str:
    """Hexadecimal SHA-256 of a run's result, byte by byte."""
    return hashlib.sha256((folder / "result.nc").read_bytes()).hexdigest()


def _packed(array: Float[np.ndarray, "..."]) -> str:
    return base64.b64encode(np.ascontiguousarray(array, "<f8").tobytes()).decode()


def _unpacked(text: str) -> Float[np.ndarray, "numbers"]:
    return np.frombuffer(base64.b64decode(text, validate=True), "<f8").astype(np.float64)


def _plain(proof: Proof) -> dict[str, Any]:
    """A proof as JSON; the tree as a list in which every node comes before its children, since it may be deep."""
    nodes: list[list[Any]] = []
    waiting: list[tuple[Node, list[Any], int]] = [(proof.root, [], 0)]
    while waiting:
        node, parent, place = waiting.pop()
        if parent:
            parent[place] = len(nodes)
        if isinstance(node, Leaf):
            nodes.append(
                ["leaf", [[_packed(p.slopes), _packed(p.shares), _packed(p.multipliers)] for p in node.points]]
            )
        elif isinstance(node, Tighten):
            ceilings = [
                [int(c.piece), _packed(np.array([c.value])), _packed(c.multipliers), _packed(c.feeds)]
                for c in node.ceilings
            ]
            nodes.append(["tighten", ceilings, 0])
            waiting.append((node.child, nodes[-1], 2))
        else:
            feed = isinstance(node, SplitFeed)
            nodes.append(["feed" if feed else "spending", int(node.piece if feed else node.column), int(node.at), 0, 0])
            waiting.extend([(node.below, nodes[-1], 3), (node.above, nodes[-1], 4)])
    return {
        "index": int(proof.index),
        "ceilings": _packed(proof.ceilings),
        "rows": proof.multipliers.shape[1],
        "multipliers": _packed(proof.multipliers),
        "nodes": nodes,
    }


def _proof(row: dict[str, Any]) -> Proof:
    ceilings, multipliers = _unpacked(row["ceilings"]), _unpacked(row["multipliers"])
    made: dict[int, Node] = {}
    plain: list[list[Any]] = row["nodes"]
    for place in range(len(plain) - 1, -1, -1):
        kind, *parts = plain[place]
        if kind == "leaf":
            made[place] = Leaf(tuple(DualPoint(*map(_unpacked, point)) for point in parts[0]))
        elif kind == "tighten":
            lowered = tuple(
                Ceiling(int(piece), float(_unpacked(value)[0]), _unpacked(prices), _unpacked(feeds))
                for piece, value, prices, feeds in parts[0]
            )
            made[place] = Tighten(lowered, made[parts[1]])
        elif kind in ("feed", "spending"):
            split = SplitFeed if kind == "feed" else SplitSpending
            made[place] = split(int(parts[0]), int(parts[1]), made[parts[2]], made[parts[3]])
        else:
            raise ValueError(f"{kind} is no node of a proof")
    return Proof(int(row["index"]), ceilings, multipliers.reshape(len(ceilings), int(row["rows"])), made[0])
