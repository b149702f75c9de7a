import base64
import io
import re

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from localsmooth.certificates import ABSTAIN
from localsmooth.metrics import average_certifiable_radius
from localsmooth.report.charts import HEIGHT, LEFT, TOP, WIDTH, charts
from localsmooth.report.palette import HATCH, class_colors, radius_colors, rgb
from localsmooth.report.pictures import class_picture, input_picture, png, radius_picture
from localsmooth.report.plane import Plane, choose_plane
from localsmooth.report.promise import assumptions, foundations, tiles
from localsmooth.report.regions import ABSTAINS, IGNORED, WRONG, fall_codes, group_rectangles
from localsmooth.report.summary import acr_text, headline_budget, headline_rule, value_at
from localsmooth.report.tables import percent

from ..results.synthetic import run_info


@given(arrays(np.int64, st.tuples(st.integers(1, 9), st.integers(1, 9)), elements=st.integers(0, 3)))
def test_rectangles_cover_the_label_map_exactly(groups: np.ndarray):
    painted = np.full(groups.shape, -1)
    for group, top, left, height, width in group_rectangles(groups):
        assert (painted[top : top + height, left : left + width] == -1).all()
        painted[top : top + height, left : left + width] = group
    np.testing.assert_array_equal(painted, groups)


def test_a_grid_needs_one_rectangle_per_cell():
    groups = np.add.outer(4 * (np.arange(48) // 16), np.arange(64) // 16)
    assert len(group_rectangles(groups)) == 12


@given(
    arrays(np.float64, (4, 5), elements=st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.7, 1.0, 9.0, np.inf])),
    st.integers(0, 2**32 - 1),
)
def test_codes_say_which_outputs_stand_at_each_budget(radius: np.ndarray, seed: int):
    rng = np.random.default_rng(seed)
    budgets = np.array([0.0, 0.25, 0.5, 1.0])
    ignored, wrong = rng.random((2, 4, 5)) < 0.2
    abstains = radius == 0
    packed = fall_codes(radius, abstains, ignored, wrong, budgets)
    codes = np.frombuffer(base64.b64decode(packed["codes"]), "<u2").reshape(packed["rows"], packed["columns"])
    np.testing.assert_array_equal(codes == IGNORED, ignored)
    np.testing.assert_array_equal(codes == ABSTAINS, abstains & ~ignored)
    shown = ~ignored & ~abstains
    np.testing.assert_array_equal((codes & WRONG > 0)[shown], wrong[shown])
    for place, budget in enumerate(budgets):
        np.testing.assert_array_equal((codes & ~np.uint16(WRONG) > place)[shown], (radius > budget)[shown])


def decoded(address: str) -> np.ndarray:
    head, content = address.split(",")
    assert head == "data:image/png;base64"
    return np.array(Image.open(io.BytesIO(base64.b64decode(content))).convert("RGB"))


@pytest.mark.parametrize("side", [8, 200])
def test_png_keeps_every_colour_of_a_label_map(side: int):
    classes = np.random.default_rng(0).integers(0, 20, (side, side))
    picture = class_picture(classes, np.zeros((side, side), bool), Plane(2, (1, 1), (1, 1)), 20)
    np.testing.assert_array_equal(decoded(png(picture)), picture)
    np.testing.assert_array_equal(picture[3, 4], rgb(class_colors(20)[classes[3, 4]]))


def test_png_keeps_photographs():
    picture = np.random.default_rng(0).integers(0, 256, (70, 80, 3), dtype=np.uint8)
    np.testing.assert_array_equal(decoded(png(picture)), picture)


def test_abstentions_are_hatched_in_no_class_colour():
    plane = Plane(2, (1, 1), (6, 6))
    classes = np.array([[0, ABSTAIN], [1, 0]])
    hidden = np.array([[False, False], [False, True]])
    picture = class_picture(classes, hidden, plane, 2)
    colors = [{tuple(pixel) for pixel in picture[y : y + 6, x : x + 6].reshape(-1, 3).tolist()} for y, x in
              ((0, 0), (0, 6), (6, 0), (6, 6))]  # fmt: skip
    assert colors == [{rgb(class_colors(2)[0])}, {rgb(c) for c in HATCH}, {rgb(class_colors(2)[1])}, {(255, 255, 255)}]
    for count in (2, 8, 20):
        assert not set(class_colors(count)) & set(HATCH)


def test_radius_colours_grow_with_the_radius():
    plane = Plane(2, (1, 1), (1, 1))
    nowhere = np.zeros((1, 4), bool)
    picture = radius_picture(np.array([[0.0, 0.5, 1.0, np.inf]]), nowhere, nowhere, plane, 1.0)
    np.testing.assert_array_equal(picture[0], radius_colors()[[0, 128, 255, 255]])
    assert (radius_picture(np.zeros((1, 4)), nowhere, nowhere, plane, 0.0) == radius_colors()[0]).all()


def test_inputs_are_shown_within_their_bounds():
    plane = Plane(2, (1, 1), (1, 1))
    image = np.array([[[-1.0, 1.0, 3.0]]])
    np.testing.assert_array_equal(input_picture(image, plane, (-1.0, 1.0))[0, :, 0], [0, 255, 255])
    np.testing.assert_array_equal(input_picture(image, plane, None)[0, :, 0], [0, 128, 255])
    colors = np.array([0.0, 0.5, 1.0]).reshape(3, 1, 1)
    np.testing.assert_array_equal(input_picture(colors, plane, (0.0, 1.0))[0, 0], [0, 128, 255])


@pytest.mark.parametrize(
    ("shape", "shown"),
    [((7,), (1, 7)), ((48, 64), (48, 64)), ((3, 4, 5), (4, 5)), ((900, 1500), (225, 375)), ((5000,), (1, 715))],
)
def test_planes(shape: tuple[int, ...], shown: tuple[int, int]):
    plane = choose_plane(shape)
    assert plane is not None
    assert plane(np.zeros(shape)).shape == shown
    assert plane(np.zeros((3, *shape))).shape == (3, *shown)
    assert plane.magnify(np.zeros(shown)).shape == (shown[0] * plane.scale[0], shown[1] * plane.scale[1])
    assert bool(plane.note) == (len(shape) == 3 or max(shape) > 800)


def test_no_plane_for_other_ranks():
    assert choose_plane(()) is None
    assert choose_plane((2, 2, 2, 2)) is None


@pytest.mark.parametrize(
    ("share", "text"), [(None, "–"), (0.0, "0.0 %"), (1.0, "100.0 %"), (0.9999, "99.9 %"), (0.29, "29.0 %")]
)
def test_percentages_are_never_rounded_up(share: float | None, text: str):
    assert percent(share) == text


def test_between_budgets_only_the_larger_one_is_proven():
    budgets, values = np.array([0.0, 0.5, 1.0]), np.array([0.9, 0.6, 0.1])
    assert [value_at(budgets, values, at) for at in (0.0, 0.2, 0.5, 0.51, 1.0)] == [0.9, 0.6, 0.6, 0.1, 0.1]
    assert value_at(budgets, values, 1.01) is None


def test_curves_never_run_above_what_is_proven(localized: xr.Dataset):
    chart = charts({"localized": localized})[0]
    for series in chart.series:
        x = y = None
        for command, numbers in re.findall(r"([MVH])([\d. ]+)", series.path):
            if command == "M":
                x, y = map(float, numbers.split())
            elif command == "V":
                y = float(numbers)
            else:
                end = float(numbers)
                for at in (x + 1e-6, (x + end) / 2, end):
                    budget = (at - LEFT) / WIDTH * chart.x_max
                    proven = value_at(np.array(series.budgets), np.array(series.values), budget - 1e-4)
                    assert 1 - (y - TOP) / HEIGHT <= proven + 1e-4
                x = end


def test_headline_is_the_last_budget_that_keeps_half(localized: xr.Dataset):
    budget = headline_budget(localized)
    best = localized["certified"].sel(target="accuracy").max("bound") / localized["total"].sel(target="accuracy")
    curve = best.mean("item").values
    budgets = localized["budget"].values
    assert curve[budgets == budget] >= 0.5
    assert (curve[budgets > budget] < 0.5).all()
    nothing = localized.assign(certified=localized["certified"] * 0)
    assert headline_budget(nothing) == budgets[1]


def test_the_headline_does_not_depend_on_the_order(localized: xr.Dataset, isotropic: xr.Dataset):
    both = {"localized": localized, "isotropic": isotropic}
    turned = dict(reversed(both.items()))
    assert headline_budget(*both.values()) == headline_budget(*turned.values())
    assert headline_budget(*both.values()) == max(headline_budget(localized), headline_budget(isotropic))
    assert sorted(tile.number for tile in tiles(both)) == sorted(tile.number for tile in tiles(turned))
    rule = headline_rule(*both.values())
    assert f"ε = {headline_budget(*both.values()):.4g} is the largest computed budget" in rule
    nothing = localized.assign(certified=localized["certified"] * 0)
    assert headline_rule(nothing).startswith("At no positive budget")


def test_a_stronger_bound_never_looks_weaker():
    """A curve above another has the larger ACR as it is printed, whatever is left at the largest budget."""
    generator = np.random.default_rng(0)
    budgets = np.linspace(0, 2, 9)
    for _ in range(200):
        weaker, stronger = np.sort(generator.random((2, 9)), axis=0)
        weaker, stronger = (np.maximum.accumulate(curve[::-1])[::-1] for curve in (weaker, stronger))
        shown = [acr_text(average_certifiable_radius(budgets, curve), 4) for curve in (weaker, stronger)]
        assert all(text.startswith("≥ ") for text in shown)
        assert float(shown[0][2:]) <= float(shown[1][2:])
    ended = average_certifiable_radius(budgets, np.where(budgets < 1, 0.5, 0.0))
    assert acr_text(ended, 3) == "0.375"


def test_what_all_methods_rest_on_is_said_once() -> None:
    shared, own = "Bounds joined by bonferroni.", "Groups stopped early."
    runs = {
        "first": run_info(assumptions=(shared,)),
        "second": run_info(assumptions=(shared, own)),
        "third": run_info(assumptions=(shared,)),
    }
    made = foundations(runs)
    assert list(made) == [("first", "second", "third"), ("second",)]
    assert made["first", "second", "third"] == assumptions(runs["first"])
    assert made["second",] == [own]
    assert foundations({"only": runs["second"]}) == {("only",): assumptions(runs["second"])}
