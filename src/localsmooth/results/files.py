"""Results on disk: NetCDF files, written whole or not at all and read with suspicion."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import numpy as np
import xarray as xr
from xarray.backends import H5NetCDFStore

from localsmooth.disk import expanded, write_atomically
from localsmooth.errors import InvalidInputError
from localsmooth.results.names import CLASS, KIND
from localsmooth.results.output_names import NAMES
from localsmooth.results.run import ATTRIBUTES
from localsmooth.results.validate import validate

__all__ = ["load", "read", "require_whole", "save", "set_aside", "write"]

_FILTERS = {1, 2, 3}  # deflate, shuffle, checksum: the ones that HDF5 has built in and that load no plugin


def save(dataset: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Write a result to a NetCDF file, with a checksum over its contents; an older file is replaced atomically.

    Parameters
    ----------
    dataset
        A result from `build_dataset`.
    path
        File to write; its folder exists.

    Raises
    ------
    InvalidInputError
        If the data set is not a valid result.
    OutputError
        If the file cannot be written.
    """
    write(validate(dataset), path)


def write(dataset: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Write a data set that was found valid, with its checksum."""
    sealed = dataset.copy(deep=False)
    sealed.attrs = {name: value for name, value in dataset.attrs.items() if name != "checksum"}
    sealed.attrs["checksum"] = _checksum(sealed)
    encoding: dict[str, dict[str, Any]] = {}
    for name, array in sealed.variables.items():
        array.encoding = {}
        if array.dtype.kind != "U":
            encoding[str(name)] = {"zlib": True, "complevel": 1, "_FillValue": None}
    write_atomically(path, _serialised(sealed, encoding))


def _serialised(dataset: xr.Dataset, encoding: Mapping[str, Mapping[str, Any]]) -> bytes:
    """The bytes of a NetCDF file, made in memory: the HDF5 library cannot be trusted to survive a full disk."""
    content = io.BytesIO()
    with h5netcdf.File(content, "w") as file:
        dataset.dump_to_store(H5NetCDFStore(file), encoding=encoding)
    return content.getvalue()


def set_aside(dataset: xr.Dataset, path: str | os.PathLike[str], *beside: Path) -> Path | None:
    """Rename the file that `save` would replace, unless it holds the same numbers.

    Parameters
    ----------
    dataset
        The result that is about to be saved.
    path
        Where.
    beside
        Files that are about the older result, and are renamed with it.

    Returns
    -------
    Path | None
        The older file's new name, with the first number that is free; None if there was nothing to keep.
    """
    target = expanded(path)
    if not target.exists():
        return None
    try:
        older = load(target)
        said = ("method", "alpha", "threat", "assumptions")
        same = all(older.attrs.get(name) == dataset.attrs.get(name) for name in said)
        if same and older.drop_attrs(deep=False).equals(dataset.drop_attrs(deep=False)):
            return None
    except InvalidInputError:
        pass  # damaged, or of another version: not ours to lose
    for other in beside:
        if other.exists():
            _numbered(other)
    return _numbered(target)


def _numbered(target: Path) -> Path:
    """Give a file the first number that is free; returns its new name."""
    number = 1
    while (kept := target.with_name(f"{target.stem}-{number}{target.suffix}")).exists():
        number += 1
    os.replace(target, kept)
    return kept


def load(path: str | os.PathLike[str], max_bytes: int = 8 * 2**30) -> xr.Dataset:
    """Read a result back into memory; nothing in the file is executed, and nothing outside of it is read.

    Parameters
    ----------
    path
        File written by `save`.
    max_bytes
        Largest size of the contents in memory, so that a small file cannot unpack to an enormous one.

    Raises
    ------
    InvalidInputError
        If the file is missing, foreign, damaged, too large, of another version, or reaches outside itself.
    """
    return read(path, lambda opened: require_whole(validate(opened)), max_bytes)


def read(
    path: str | os.PathLike[str], check: Callable[[xr.Dataset], xr.Dataset], max_bytes: int = 8 * 2**30
) -> xr.Dataset:
    """Do as `load` for another kind of data set.

    Parameters
    ----------
    path, max_bytes
        As for `load`.
    check
        Returns what was read, or raises errors of its contents, to which the file's name is added.

    Raises
    ------
    InvalidInputError
        As `load` does.
    """
    path = expanded(path)
    field = f"result file {os.fspath(path)!r}"
    if path.is_dir():
        remedy = f"Pass a file in it, such as {os.fspath(path / 'result.nc')}"
        raise InvalidInputError(field, "is a directory", remedy)
    if not path.is_file():
        raise InvalidInputError(field, "does not exist", "Pass the result.nc of a finished run, or what `save` wrote")
    try:
        with h5py.File(path, "r") as opened:
            _inspect(opened, max_bytes)
        with xr.open_dataset(path, engine="h5netcdf", mask_and_scale=False, decode_times=False) as opened:
            dataset = opened.load()
        for name in ("item", "target", "bound", CLASS, KIND):
            if name in dataset.coords:
                names = np.array([str(value) for value in dataset[name].values.tolist()], dtype=np.str_)
                dataset = dataset.assign_coords({name: (name, names)})
        if NAMES in dataset:
            dataset[NAMES] = dataset[NAMES].astype(np.str_)
        for array in dataset.variables.values():
            if array.attrs.get("_FillValue", 0.0) != array.attrs.get("_FillValue", 0.0):
                del array.attrs["_FillValue"]  # NaN for NaN: what xarray's own writer adds
        return check(dataset)
    except InvalidInputError as error:
        raise InvalidInputError(field, f"{error.field}: {error.problem}", error.remedy) from error
    except Exception as error:  # the HDF5 library's errors on damaged files have no common base
        raise InvalidInputError(
            field, f"cannot be read ({type(error).__name__}: {error})", "Pass a file written by `save`"
        ) from error


def require_whole(dataset: xr.Dataset) -> xr.Dataset:
    """Compare the checksum; a file that xarray wrote from a result has none, and may hold nothing that is not known.

    Raises
    ------
    InvalidInputError
        If it does not fit the contents, or there is none beside something unknown.
    """
    if "checksum" not in dataset.attrs:
        unknown = sorted(set(map(str, dataset.attrs)) - ATTRIBUTES)
        if unknown:
            raise InvalidInputError(
                ", ".join(unknown),
                "is no attribute of a result, and there is no checksum",
                "The file is damaged, or was changed: write it with localsmooth.results.save",
            )
    elif dataset.attrs["checksum"] != _checksum(dataset):
        raise InvalidInputError(
            "checksum",
            "does not fit the contents",
            "The file is damaged; certify again. If you changed the result, write it with localsmooth.results.save",
        )
    return dataset


def _inspect(opened: h5py.File, max_bytes: int) -> None:
    """Refuse whatever makes HDF5 follow links, load plugins or unpack without limit."""
    size = 0
    for name in map(str, opened):
        if not isinstance(opened.get(name, getlink=True), h5py.HardLink):
            raise InvalidInputError(name, "is a link", "Results hold their own data")
        member = opened[name]
        if not isinstance(member, h5py.Dataset):
            raise InvalidInputError(name, "is not an array", "Results are flat")
        settings = member.id.get_create_plist()
        if settings.get_external_count() > 0 or member.is_virtual:
            raise InvalidInputError(name, "keeps its data in another file", "Results hold their own data")
        filters = {settings.get_filter(index)[0] for index in range(settings.get_nfilters())}
        if not filters <= _FILTERS:
            raise InvalidInputError(name, f"uses the filters {sorted(filters)}", "Results are packed with deflate")
        text = h5py.check_string_dtype(member.dtype)
        if member.dtype.kind not in "biuf" and text is None:
            raise InvalidInputError(name, f"has the type {member.dtype}", "Results hold numbers and text")
        size += member.size * member.dtype.itemsize
        if size > max_bytes:
            raise InvalidInputError(name, f"unpacks to more than {max_bytes} bytes", "Raise max_bytes if you trust it")


def _checksum(dataset: xr.Dataset) -> str:
    """SHA-256 over names, dimensions, types, values and attributes."""
    digest = hashlib.sha256()
    for name in sorted(map(str, dataset.variables)):
        array = dataset[name]
        values = np.ascontiguousarray(array.values)
        header = [name, array.dims, values.dtype.kind, values.shape, _plain(array.attrs)]
        digest.update(json.dumps(header, sort_keys=True).encode())
        if values.dtype.kind == "U":
            digest.update(json.dumps(values.tolist()).encode())
        else:
            digest.update(values.astype(values.dtype.newbyteorder("<")).tobytes())
    digest.update(json.dumps(_plain(dataset.attrs), sort_keys=True).encode())
    return digest.hexdigest()


def _plain(attrs: dict[Any, Any]) -> dict[str, Any]:
    return {
        str(name): value.item() if hasattr(value, "item") else value
        for name, value in attrs.items()
        if name != "checksum"
    }
