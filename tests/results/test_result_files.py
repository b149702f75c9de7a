import dataclasses
import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localsmooth.certificates import ABSTAIN, Basis
from localsmooth.errors import InvalidInputError
from localsmooth.results import (
    NO_GROUP,
    NO_LABEL,
    OUTSIDE,
    CertifiedCurve,
    ItemResult,
    axis_names,
    build_dataset,
    item_view,
    load,
    save,
    validate,
)
from localsmooth.results import run_info as read_run

from .synthetic import BOUNDS, BUDGETS, default_item, make_item, run_info


@pytest.fixture(scope="module")
def items() -> list[ItemResult]:
    return [make_item("large", 0), make_item("small", 1, size=(20, 30), grid=(2, 2))]


@pytest.fixture(scope="module")
def dataset(items: list[ItemResult]) -> xr.Dataset:
    return build_dataset(items, run_info())


@pytest.fixture(scope="module")
def written(dataset: xr.Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("written") / "result.nc"
    save(dataset, path)
    return path


def test_dimensions_are_named(dataset: xr.Dataset):
    assert dict(dataset.sizes) == {
        "item": 2, "target": 2, "bound": 3, "budget": len(BUDGETS), "input_group": 12, "channel": 3,
        "input_y": 48, "input_x": 64, "output_y": 48, "output_x": 64,
    }  # fmt: skip
    assert dataset["bound"].values.tolist() == list(BOUNDS)
    assert dataset["radius"].attrs["units"] == dataset["budget"].attrs["units"] == "pixel values in [0, 1]"
    assert json.loads(dataset.attrs["configuration"])["noise"]["sigma_min"] == 0.2
    assert validate(dataset) is dataset


@pytest.mark.parametrize(
    ("rank", "names"),
    [
        (0, ()),
        (1, ("input_position",)),
        (3, ("input_z", "input_y", "input_x")),
        (4, ("input_0", "input_1", "input_2", "input_3")),
    ],
)
def test_axis_names(rank: int, names: tuple[str, ...]):
    assert axis_names("input", rank) == names


def test_items_come_back_at_their_own_size(items: list[ItemResult], dataset: xr.Dataset):
    for index, item in enumerate(items):
        view = item_view(dataset, index)
        assert view.name == item.name
        for name in ("candidate", "prediction", "votes", "lower_probability", "eta", "radius", "output_group",
                     "input_group", "image", "ignored"):  # fmt: skip
            np.testing.assert_array_equal(getattr(view, name), getattr(item, name))
        np.testing.assert_array_equal(view.label[view.counted], item.label[item.counted])
        for (target, bound), curve in item.curves.items():
            stored = dataset.sel(item=item.name, target=target, bound=bound)
            for name in ("certified", "lower", "upper"):
                np.testing.assert_array_equal(stored[name], getattr(curve, name))
            np.testing.assert_array_equal(stored["attack"].values[:, : curve.attack.shape[1]], curve.attack)
        assert dataset["total"].sel(item=item.name).values.tolist() == [item.counted.sum()] * 2


def test_padding_is_never_a_prediction(dataset: xr.Dataset):
    padding = dataset.isel(item=1, output_y=slice(20, None))
    assert (padding["prediction"] == OUTSIDE).all()
    assert OUTSIDE != ABSTAIN
    assert (padding["label"] == NO_LABEL).all()
    assert padding["ignored"].all()
    assert (padding["output_partition"] == NO_GROUP).all()
    assert np.isnan(padding["radius"]).all()


def test_ignored_outputs_have_no_label_and_do_not_count(dataset: xr.Dataset):
    assert (dataset["label"].values[dataset["ignored"].values] == NO_LABEL).all()
    assert dataset["total"].values[0].tolist() == [48 * 64 - 9] * 2


def test_round_trip_through_a_file(dataset: xr.Dataset, written: Path):
    loaded = load(written)
    assert loaded.attrs.pop("checksum")
    xr.testing.assert_identical(loaded, dataset)
    for name in dataset.variables:
        assert loaded[name].dtype.kind == dataset[name].dtype.kind
    assert read_run(loaded) == run_info()
    save(loaded, written)
    xr.testing.assert_equal(load(written), dataset)
    assert [p.name for p in written.parent.iterdir()] == [written.name]


def test_a_file_written_by_xarray_itself_is_read(dataset: xr.Dataset, written: Path, tmp_path: Path):
    path = tmp_path / "own.nc"
    for result in (dataset, load(written)):
        result.to_netcdf(path)
        loaded = load(path)
        loaded.attrs.pop("checksum", None)
        xr.testing.assert_identical(loaded, dataset)
        assert read_run(loaded) == run_info()
        save(loaded, path)
        load(path)


def test_a_file_without_a_checksum_is_looked_at_closely(dataset: xr.Dataset, written: Path, tmp_path: Path):
    path = tmp_path / "own.nc"
    dataset.assign(certified=dataset["certified"] + 10_000).to_netcdf(path)
    with pytest.raises(InvalidInputError, match="certified"):
        load(path)
    dataset.assign_attrs(note="mine").to_netcdf(path)
    with pytest.raises(InvalidInputError, match="note"):
        load(path)
    # Changed after it was read: the checksum is that of the old contents.
    loaded = load(written)
    loaded.isel(item=[0]).to_netcdf(path)
    with pytest.raises(InvalidInputError, match="checksum: does not fit the contents"):
        load(path)


def test_results_of_before_this_was_recorded_say_nothing_of_the_smoothing(dataset: xr.Dataset, tmp_path: Path):
    older = dataset.copy(deep=False)
    older.attrs = {name: value for name, value in dataset.attrs.items() if name != "smoothing"}
    save(older, tmp_path / "older.nc")
    assert read_run(load(tmp_path / "older.nc")) == run_info(smoothing=None)


def test_a_failed_write_leaves_the_old_file(dataset: xr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "result.nc"
    save(dataset, path)
    before = path.read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("localsmooth.disk.os.fsync", fail)
    with pytest.raises(OSError, match="No space"):
        save(dataset, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["result.nc"]


def test_unlabelled_items_have_no_accuracy():
    item = default_item()
    bare = dataclasses.replace(
        item, name="bare", label=None, curves={k: c for k, c in item.curves.items() if k[0] == "ratio"}
    )
    alone = build_dataset([bare], run_info())
    assert alone["target"].values.tolist() == ["ratio"]
    assert item_view(alone, 0).label is None
    both = validate(build_dataset([item, bare], run_info()))
    assert both["total"].sel(item="bare", target="accuracy") == 0
    with pytest.raises(InvalidInputError, match="needs labels"):
        build_dataset([dataclasses.replace(bare, curves=item.curves)], run_info())


@pytest.mark.parametrize("size", [(17,), (4, 5, 6), (2, 3, 2, 3)])
def test_other_ranks(size: tuple[int, ...], tmp_path: Path):
    label = np.zeros(size, dtype=np.int64)
    item = make_item(size=size, grid=(1,) * len(size), label=label, image=np.zeros((1, *size), dtype=np.float32))
    item = dataclasses.replace(item, ignored=None)
    save(build_dataset([item], run_info()), tmp_path / "r.nc")
    view = item_view(load(tmp_path / "r.nc"), 0)
    assert view.prediction.shape == size
    np.testing.assert_array_equal(view.radius, item.radius)


def test_a_single_output_needs_an_axis():
    item = default_item()
    scalar = {
        name: np.array(getattr(item, name)[0, 0])
        for name in ("candidate", "prediction", "votes", "lower_probability", "eta", "radius", "output_group")
    }
    with pytest.raises(InvalidInputError, match="no axis"):
        build_dataset([dataclasses.replace(item, label=None, ignored=None, **scalar)], run_info())


def test_input_and_output_sizes_may_differ():
    item = default_item()
    small = dataclasses.replace(
        item, input_group=np.repeat(np.repeat(item.input_group, 2, 0), 2, 1), image=np.zeros((3, 96, 128), np.float32)
    )
    assert item_view(validate(build_dataset([small], run_info())), 0).image.shape == (3, 96, 128)


def changed(item: ItemResult, name: str, where: object, value: object) -> ItemResult:
    array = np.array(getattr(item, name))
    array[where] = value
    return dataclasses.replace(item, **{name: array})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("label", 3), ("label", -1), ("candidate", 3), ("candidate", -1), ("votes", -1), ("votes", 1001),
        ("lower_probability", np.nan), ("lower_probability", 1.5), ("eta", np.nan), ("eta", -1.0), ("eta", 0.0),
        ("radius", np.nan), ("radius", -1.0), ("output_group", -1), ("input_group", -1), ("image", np.nan),
        ("input_group", 12), ("prediction", 2), ("prediction", -2),
    ],
)  # fmt: skip
def test_bad_values_are_refused(name: str, value: float):
    item = default_item()
    where = tuple(np.argwhere((item.prediction == 0) & (item.candidate == 0) & item.counted)[0])
    with pytest.raises(InvalidInputError):
        build_dataset([changed(item, name, where if name != "image" else (0, *where), value)], run_info())


def test_shapes_that_differ_are_refused():
    item = default_item()
    for name in ("label", "votes", "radius", "image"):
        with pytest.raises((InvalidInputError, TypeError)):  # the shape checker of the tests may speak first
            build_dataset([dataclasses.replace(item, **{name: getattr(item, name)[..., :-1]})], run_info())


def test_what_an_output_relies_on_is_kept_and_checked(tmp_path: Path):
    item = default_item()
    alive = item.prediction != ABSTAIN
    basis = np.where(alive, np.where(item.output_group % 2 == 0, Basis.VOTES, Basis.SCORES), Basis.NOTHING)
    dataset = build_dataset([dataclasses.replace(item, relies_on=basis)], run_info())
    save(dataset, tmp_path / "r.nc")
    np.testing.assert_array_equal(item_view(load(tmp_path / "r.nc"), 0).relies_on, basis)
    assert "largest mean" in dataset["relies_on"].attrs["meaning"]
    plain = build_dataset([item], run_info())["relies_on"].values[0]
    np.testing.assert_array_equal(plain, np.where(alive, Basis.VOTES, Basis.NOTHING))
    where = tuple(np.argwhere(alive)[0])
    for value in (Basis.NOTHING, 7):
        broken = changed(dataclasses.replace(item, relies_on=basis), "relies_on", where, value)
        with pytest.raises(InvalidInputError, match="relies_on"):
            build_dataset([broken], run_info())
        with pytest.raises(InvalidInputError, match="relies_on"):
            validate(dataset.assign(relies_on=(dataset["relies_on"].dims, broken.relies_on[None].astype(np.int8))))


def test_older_results_are_read_save_where_votes_and_scores_were_stacked():
    """Before an output relied on one of the two, flips were certified from both in a way that does not hold."""
    base = "Base certificates: {}; bounds joined over all outputs by bonferroni."
    for norm, names, sound in (
        ("l0", "exact-votes and sparse-scores", False),
        ("l0", "exact-votes and renyi-votes", True),
        ("l0", "sparse-scores", True),
        ("l2", "gaussian-votes and gaussian-scores", True),
    ):
        run = run_info(norm=norm, threat="", assumptions=(base.format(names), "Scores bounded by betting."))
        older = build_dataset([default_item()], run).drop_vars("relies_on")
        if sound:
            assert item_view(validate(older), 0).relies_on is None
        else:
            with pytest.raises(InvalidInputError, match=r"relies_on.*certify again"):
                validate(older)


def test_radius_and_threshold_are_0_exactly_at_abstention():
    item = default_item()
    where = tuple(np.argwhere(item.prediction == ABSTAIN)[0])
    for name in ("radius", "eta"):
        with pytest.raises(InvalidInputError, match=name):
            build_dataset([changed(item, name, where, 0.1)], run_info())


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("certified", lambda c: c.certified + 1, "more"),
        ("certified", lambda c: c.certified - 10**6, "negative"),
        ("upper", lambda c: c.certified - 1.0, "best attack"),
        ("lower", lambda c: c.certified - 1.5, "more than it proves"),
        ("attack", lambda c: c.attack * np.nan, "attack"),
        ("attack", lambda c: c.attack - 1, "attack"),
        ("attack", lambda c: c.attack[:, :3], "fewer groups"),
        ("certified", lambda c: c.certified[1:], "per budget"),
    ],
)
def test_impossible_counts_are_refused(part: str, change: object, message: str):
    item = default_item()
    curve = item.curves["ratio", "envelope"]
    values = {name: getattr(curve, name) for name in ("certified", "lower", "upper", "attack")}
    values[part] = change(curve)
    try:
        broken = CertifiedCurve(**values)
    except TypeError:  # the shape checker of the tests speaks first
        return
    with pytest.raises(InvalidInputError, match=message):
        build_dataset([dataclasses.replace(item, curves={**item.curves, ("ratio", "envelope"): broken})], run_info())


def test_wrong_outputs_never_count_for_accuracy():
    item = default_item()
    ratio = item.curves["ratio", "envelope"]
    assert ratio.certified[0] > item.stake("accuracy").most
    with pytest.raises(InvalidInputError, match=r"accuracy.*more than"):
        build_dataset([dataclasses.replace(item, curves={**item.curves, ("accuracy", "envelope"): ratio})], run_info())


def test_items_must_be_comparable():
    item = default_item()
    with pytest.raises(InvalidInputError, match="items"):
        build_dataset([], run_info())
    with pytest.raises(InvalidInputError, match="share a name"):
        build_dataset([item, item], run_info())
    flat = make_item("flat", size=(9,), grid=(3,), label=np.zeros(9, dtype=np.int64))
    with pytest.raises(InvalidInputError, match="differ"):
        build_dataset([item, flat], run_info())
    with pytest.raises(InvalidInputError, match="every target and bound"):
        build_dataset([item], run_info(bound_names=("naive", "lp", "exact")))


@pytest.mark.parametrize(
    "change",
    [
        {"budgets": {}}, {"budgets": {"budget": ()}}, {"budgets": {"budget": (0.0, 0.0)}},
        {"budgets": {"budget": (1.0, 0.5)}}, {"budgets": {"budget": (-1.0,)}}, {"budgets": {"budget": (float("nan"),)}},
        {"budgets": {"additions": (0.0, 1.0), "deletions": (1.0, 2.0)}},
        {"budgets": {"additions": (0.0,), "deletions": ()}},
        {"alpha": 0.0}, {"alpha": 1.0}, {"alpha": float("nan")}, {"n_bound": 0},
        {"n_candidate": 0}, {"class_names": ()}, {"bound_names": ()}, {"bound_names": ("lp", "lp")},
        {"input_bounds": (1.0, 0.0)}, {"configuration": {"a": object()}}, {"configuration": {"a": float("nan")}},
        {"seconds": -1.0}, {"batch_size": 0},
    ],
)  # fmt: skip
def test_bad_run_facts_are_refused(change: dict[str, object]):
    with pytest.raises(InvalidInputError, match=next(iter(change))):
        run_info(**change)


# Files


def rewritten(dataset: xr.Dataset, path: Path) -> Path:
    """Write without the checks of `save`, but with a checksum that fits."""
    from localsmooth.results.files import _checksum

    sealed = dataset.copy()
    sealed.attrs["checksum"] = _checksum(sealed)
    numbers = [name for name, array in sealed.variables.items() if array.dtype.kind != "U"]
    sealed.to_netcdf(path, engine="h5netcdf", encoding={name: {"_FillValue": None} for name in numbers})
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.drop_vars("radius"), "radius: is missing"),
        (lambda d: d.assign(extra=d["radius"]), "extra"),
        (lambda d: d.assign_attrs(format="other"), "format: is not"),
        (lambda d: d.assign_attrs(format_version=2), "format_version"),
        (lambda d: d.assign_attrs(alpha=2.0), "alpha"),
        (lambda d: d.assign_attrs(alpha="none"), "alpha"),
        (lambda d: d.assign_attrs(class_names="[1, "), "attributes"),
        (lambda d: d.assign_attrs(configuration="[" * 100_000), "attributes"),
        (lambda d: d.assign_attrs(class_names='["one"]'), "not a class"),
        (lambda d: d.transpose("output_x", ...), "dimensions"),
        (lambda d: d.rename(output_x="columns"), "dimensions"),
        (lambda d: d.assign(votes=d["votes"].astype(float)), "votes: has the type"),
        (lambda d: d.assign(votes=d["votes"] + 1000), "votes"),
        (lambda d: d.assign(certified=d["certified"] + 1), "certified"),
        (lambda d: d.assign(lower=d["lower"] - 5), "lower"),
        (lambda d: d.assign(upper=d["upper"] * 0 - 1), "upper"),
        (lambda d: d.assign(total=d["total"] + 1), "total"),
        (lambda d: d.assign(radius=-d["radius"]), "radius"),
        (lambda d: d.assign(eta=d["eta"] * 0), "eta"),
        (lambda d: d.assign(ignored=~d["ignored"]), "ignored"),
        (lambda d: d.assign(prediction=d["prediction"] * 0), "prediction"),
        (lambda d: d.isel(item=slice(0)), "length 0"),
        (lambda d: d.assign_coords(item=["same", "same"]), "repeats"),
        (lambda d: d.drop_vars("stake").assign_coords(target=["ratio", "speed"]), "stake"),
        (lambda d: d.assign_coords(budget=-d["budget"]), "budgets"),
    ],
)  # fmt: skip
def test_inconsistent_files_are_refused(dataset: xr.Dataset, tmp_path: Path, change: object, message: str):
    path = rewritten(change(dataset), tmp_path / "r.nc")
    with pytest.raises(InvalidInputError, match=message):
        load(path)


def test_foreign_files_are_refused(tmp_path: Path):
    with pytest.raises(InvalidInputError, match=r"does not exist.*result.nc"):
        load(tmp_path / "nothing.nc")
    with pytest.raises(InvalidInputError, match=r"is a directory.*result.nc"):
        load(tmp_path)
    (tmp_path / "text.nc").write_text("not a result")
    (tmp_path / "empty.nc").touch()
    np.save(tmp_path / "array.npy", np.array([{}], dtype=object), allow_pickle=True)
    xr.Dataset({"a": ("x", [1, 2])}).to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(InvalidInputError, match="format: is not"):
        load(tmp_path / "other.nc")
    for name in ("text.nc", "empty.nc", "array.npy"):
        with pytest.raises(InvalidInputError, match=name):
            load(tmp_path / name)


def test_files_that_reach_outside_are_refused(written: Path, tmp_path: Path):
    (tmp_path / "secret").write_bytes(bytes(1000))

    def attempt(name: str, add: object, message: str) -> None:
        path = tmp_path / name
        path.write_bytes(written.read_bytes())
        with h5py.File(path, "a") as opened:
            add(opened)
        with pytest.raises(InvalidInputError, match=message):
            load(path)

    layout = h5py.VirtualLayout(shape=(4,), dtype="f8")
    layout[:] = h5py.VirtualSource(str(tmp_path / "secret"), "data", shape=(4,))
    attempt("a.nc", lambda f: f.create_dataset("x", (10,), "u1", external=str(tmp_path / "secret")), "another file")
    attempt("b.nc", lambda f: f.create_virtual_dataset("x", layout), "another file")
    attempt("c.nc", lambda f: f.__setitem__("x", h5py.ExternalLink(str(tmp_path / "o.h5"), "/x")), "is a link")
    attempt("d.nc", lambda f: f.__setitem__("x", h5py.SoftLink("/votes")), "is a link")
    attempt("e.nc", lambda f: f.create_group("x"), "not an array")
    attempt("f.nc", lambda f: f.create_dataset("x", (10,), "f8", compression="lzf", chunks=(5,)), "filters")
    attempt("g.nc", lambda f: f.create_dataset("x", (10,), [("a", "f8"), ("b", "i4")]), "type")
    attempt("h.nc", lambda f: f.create_dataset("x", (2**40,), "f8", compression="gzip", chunks=(1000,)), "unpacks")


def test_size_is_bounded(written: Path):
    with pytest.raises(InvalidInputError, match="unpacks to more than"):
        load(written, max_bytes=10_000)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255), cut=st.booleans())
def test_damaged_files_are_refused_or_unharmed(
    dataset: xr.Dataset, written: Path, tmp_path: Path, position: float, flip: int, cut: bool
):
    content = bytearray(written.read_bytes())
    place = int(position * len(content))
    content[place] ^= flip
    path = tmp_path / "damaged.nc"
    path.write_bytes(content[:place] if cut else content)
    try:
        loaded = load(path)
    except InvalidInputError:
        pass
    else:
        assert not cut
        xr.testing.assert_equal(loaded, dataset)
        assert read_run(loaded) == read_run(dataset)
