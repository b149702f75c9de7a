"""Letters that the usual font of figures lacks, such as Chinese ones, from fonts that are installed."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache

import matplotlib
import xarray as xr
from matplotlib.font_manager import FontProperties, fontManager, get_font

__all__ = ["lettered", "letters_of"]

# Of fonts with the same letters, those that are made for reading go first.
_PREFERRED = (
    *("Noto Sans CJK", "Source Han Sans", "Noto Sans", "PingFang", "Hiragino Sans", "Microsoft YaHei", "Yu Gothic"),
    *("Malgun Gothic", "WenQuanYi", "Droid Sans Fallback", "SimHei", "Arial Unicode"),
)
_LAST = len(_PREFERRED)
_PLACEHOLDERS = "Last Resort"  # draws a box for every letter
_SHOWN = 8


def letters_of(datasets: Iterable[xr.Dataset], *more: str) -> frozenset[str]:
    """Every letter in the names of some results: of methods, classes, items and outputs.

    Parameters
    ----------
    datasets
        Results, or overlaps.
    more
        Other texts.
    """
    texts = list(more)
    for dataset in datasets:
        texts += [text for text in dataset.attrs.values() if isinstance(text, str)]
        named = (variable for variable in dataset.variables.values() if variable.dtype.kind in "UO")
        texts += [str(text) for variable in named for text in variable.values.ravel()]
    return frozenset("".join(texts))


@contextmanager
def lettered(letters: Iterable[str]) -> Generator[None]:
    """Let figures that are made within take letters that their font lacks from other fonts.

    Parameters
    ----------
    letters
        What is to be shown.

    Warns
    -----
    UserWarning
        Once, naming letters that no installed font has; a box is drawn in their place.
    """
    own = list(matplotlib.rcParams["font.family"])
    there = _known(_file_of(tuple(own)))
    lacking = frozenset(
        letter for letter in letters if letter.isprintable() and not letter.isspace() and ord(letter) not in there
    )
    families, missing = _families(lacking)
    if missing:
        shown = "".join(sorted(missing)[:_SHOWN]) + ("…" if len(missing) > _SHOWN else "")
        warnings.warn(
            f"No installed font has the letters {shown}: boxes stand in their place. Install one that does, such as "
            "Noto Sans CJK for Chinese, Japanese and Korean",
            stacklevel=3,
        )
    with matplotlib.rc_context({"font.family": [*own, *families]}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font", UserWarning)  # which was said, once
        yield


def _families(lacking: frozenset[str]) -> tuple[list[str], frozenset[str]]:
    """Families that have the letters between them, few where that is possible, and the letters that none has."""
    chosen: list[str] = []
    for name, file in _installed():
        if not lacking:
            break
        known = _known(file)
        if any(ord(letter) in known for letter in lacking):
            chosen.append(name)
            lacking = frozenset(letter for letter in lacking if ord(letter) not in known)
    return chosen, lacking


def _installed() -> Iterator[tuple[str, str]]:
    """Families with the files of their regular letters, the preferred ones first."""
    names = {font.name for font in fontManager.ttflist if not font.name.startswith(_PLACEHOLDERS)}
    ranks = {name: next((r for r, start in enumerate(_PREFERRED) if name.startswith(start)), _LAST) for name in names}
    for name in sorted(names, key=lambda name: (ranks[name], name)):
        yield name, _file_of((name,))


def _file_of(families: tuple[str, ...]) -> str:
    return str(fontManager.findfont(FontProperties(family=list(families))))


@lru_cache(maxsize=256)
def _known(file: str) -> frozenset[int]:
    """Numbers of the letters of a font; none where it cannot be read."""
    try:
        return frozenset(get_font(file).get_charmap())
    except (OSError, RuntimeError):
        return frozenset()
