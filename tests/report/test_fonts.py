"""Letters that the usual font lacks."""

import warnings
from pathlib import Path

import matplotlib
import pypdf
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager

from localsmooth.report import lettered, write_pdf

RARE = "\u1d81"  # a letter of the STIX fonts, which come with matplotlib, and not of the usual one


@pytest.fixture
def few_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fonts that come with matplotlib, whatever is installed."""
    own = [font for font in fontManager.ttflist if Path(font.fname).is_relative_to(matplotlib.get_data_path())]
    monkeypatch.setattr(fontManager, "ttflist", own)


def ink(text: str) -> bytes:
    figure = Figure(figsize=(1, 0.5))
    figure.text(0.4, 0.4, text)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas.buffer_rgba().tobytes()


def test_letters_come_from_another_font_and_settings_come_back(few_fonts: None) -> None:
    before = dict(matplotlib.rcParams)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with lettered(f"a {RARE}\n"):
            assert any("STIX" in family for family in matplotlib.rcParams["font.family"])
            found = ink(RARE)
    assert dict(matplotlib.rcParams) == before
    with pytest.warns(UserWarning, match="missing from font"):
        box = ink(RARE)
    assert found != box


def test_what_no_font_has_is_said_once_and_drawn_as_a_box(
    few_fonts: None, localized: xr.Dataset, tmp_path: Path
) -> None:
    named = localized.assign_attrs(class_names=localized.attrs["class_names"].replace("disc", "猫狗"))
    with pytest.warns(UserWarning, match="letter") as told:
        write_pdf(named, tmp_path / "out.pdf", title=f"An appendix {RARE}", max_items=1)
    (one,) = told
    assert "No installed font has the letters 狗猫:" in str(one.message)
    assert "Noto Sans CJK" in str(one.message)
    text = " ".join(page.extract_text() for page in pypdf.PdfReader(tmp_path / "out.pdf").pages)
    assert RARE in text
