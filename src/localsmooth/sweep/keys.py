"""Names for results and run directories that follow from content alone."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from localsmooth.certificates import SCORE_CERTIFICATES
from localsmooth.config import AnyFile, CentreSmoothingSection, Configuration, EdgeConfiguration, GraphConfiguration

__all__ = ["point_keys"]

_DIGITS = 16
_NOT_CONTENT = {"name", "execution", "calibration", "locality", "tune", "plugins"}


def point_keys(configuration: AnyFile, digests: dict[Path, str]) -> tuple[str, str]:
    """Hashes of everything, and of what the samples depend on; files count by their content, not by their place.

    Parameters
    ----------
    configuration
        Of the point.
    digests
        Digests of files that are known, to which others are added.
    """
    whole = configuration.model_dump(mode="python", exclude=_NOT_CONTENT)
    # Points of before are known by what files could say then: the other keys of a layout tell its kind, too.
    whole.get("layout", {}).pop("kind", None)
    for name in ("passes", "split"):
        if whole["sampling"].get(name, ...) is None:
            del whole["sampling"][name]
    if whole["certificate"].get("threat", ...) is None:
        del whole["certificate"]["threat"]
    drawn = {key: value for key, value in whole.items() if key != "certificate"}
    if not isinstance(configuration, GraphConfiguration):  # whose scores are counted in any case
        # When a group stops depends on what is to be proven.
        stops = getattr(configuration.sampling, "stop_early", False)
        drawn = whole if stops else drawn | _asked(configuration)

    def plain(value: object) -> str:
        if not isinstance(value, Path):
            raise TypeError(f"{type(value).__name__} in a configuration")
        return _digest(value, digests)

    made = (hashlib.sha256(json.dumps(each, sort_keys=True, default=plain).encode()) for each in (whole, drawn))
    key, run_key = (each.hexdigest()[:_DIGITS] for each in made)
    return key, run_key


def _asked(configuration: Configuration | EdgeConfiguration) -> dict[str, object]:
    """What the certificate asks of the samples, beyond votes."""
    section = configuration.certificate
    if isinstance(section.baseline, CentreSmoothingSection):
        return {"draws": [section.baseline.method, section.baseline.candidates]}
    if getattr(configuration.sampling, "scores", None) is None and set(section.base or ()) & set(SCORE_CERTIFICATES):
        return {"scores": section.score_bound}
    return {}


def _digest(path: Path, digests: dict[Path, str]) -> str:
    """Hash of a file's content, or of all files of a folder."""
    if path not in digests:
        state = hashlib.sha256()
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                with file.open("rb") as stream:
                    state.update(f"{file.relative_to(path)} ".encode())
                    state.update(hashlib.file_digest(stream, "sha256").digest())
        digests[path] = state.hexdigest()
    return digests[path]
