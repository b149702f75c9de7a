"""The report on paper."""

from pathlib import Path

import matplotlib
import numpy as np
import pypdf
import pytest
import xarray as xr

from localsmooth.errors import InvalidInputError
from localsmooth.report import write_pdf
from localsmooth.report.paper import A4, Paper, wrapped
from localsmooth.report.pdf import sheets
from localsmooth.report.promise import tiles
from localsmooth.report.tables import Table


def written(path: Path) -> str:
    """Text that can be searched for and copied from a file."""
    return " ".join(" ".join(page.extract_text().split()) for page in pypdf.PdfReader(path).pages)


def test_the_file_holds_the_count_that_is_promised(localized: xr.Dataset, tmp_path: Path):
    settings = dict(matplotlib.rcParams)
    write_pdf(localized, tmp_path / "out.pdf", title="An appendix", max_items=1)
    assert dict(matplotlib.rcParams) == settings
    content = (tmp_path / "out.pdf").read_bytes()
    assert content.startswith(b"%PDF-")
    assert b"CreationDate" not in content
    text = written(tmp_path / "out.pdf").replace("\xa0", " ")
    number = tiles({"localized": localized})[0].number
    assert f"At least {number} of the outputs keep their correct prediction" in text
    for words in (
        "An appendix",
        "The promise",
        "At least 99 % for each input",
        "What it rests on",
        "Certified accuracy",
    ):
        assert words in text, words


def texts(figure) -> str:
    return " ".join(text.get_text() for part in [figure, *figure.subfigs] for text in part.texts)


def test_sheets_show_what_the_page_does(results: dict[str, xr.Dataset]):
    made = sheets(results, "Two methods", 2)
    assert all(tuple(figure.get_size_inches()) == A4 for figure in made)
    whole = " ".join(texts(figure) for figure in made)
    for words in ("localized: At least", "isotropic: At least", "Weakest place", "ACR", "Configuration"):
        assert (words in whole) == (words != "Configuration"), words
    curves = [axes for figure in made for axes in figure.axes if axes.get_ylabel().startswith("certified ")]
    assert [axes.get_ylabel() for axes in curves] == ["certified ratio", "certified accuracy"]
    plans = [axes for figure in made for part in figure.subfigs for axes in part.axes if "plan" in axes.get_title()]
    assert len(plans) == 3  # two items of one method, one of the other


def test_nothing_leaves_the_sheet(results: dict[str, xr.Dataset]):
    for figure in sheets(results, "Long " * 40, 0):
        width, height = figure.bbox.width, figure.bbox.height
        for text in figure.texts:
            box = text.get_window_extent()
            assert 0 <= box.x0 <= box.x1 <= width
            assert 0 <= box.y0 <= box.y1 <= height


def test_results_that_cannot_be_compared_are_refused(localized: xr.Dataset, isotropic: xr.Dataset, tmp_path: Path):
    with pytest.raises(InvalidInputError, match="units"):
        write_pdf({"a": localized, "b": isotropic.assign_attrs(units="bits")}, tmp_path / "out.pdf")
    with pytest.raises(InvalidInputError, match="max_items"):
        write_pdf(localized, tmp_path / "out.pdf", max_items=-1)
    assert not list(tmp_path.iterdir())


def test_lines_are_broken_between_words_where_that_is_possible():
    words = "a few words and onewordthatislongerthanthewholelineisandthatmustbebroken then"
    lines = wrapped(words, 100.0, 9.0)
    assert "".join(lines).replace(" ", "") == words.replace(" ", "")
    assert len(lines) > 3
    assert lines[0].split() == words.split()[: len(lines[0].split())]
    assert wrapped("", 100.0, 9.0) == [""]
    assert wrapped("lone \ud800", 100.0, 9.0) == ["lone ?"]


def test_long_tables_go_on_on_another_sheet():
    paper = Paper()
    rows = [[f"name{place}", "$x^2$ and many more words " * 6, f"{place}"] for place in range(60)]
    paper.table(Table(["Name", "Words", "Number"], rows, text_columns=2, note="A note."))
    assert len(paper.sheets) > 1
    shown = [text.get_text() for figure in paper.sheets for text in figure.texts]
    assert {f"name{place}" for place in range(60)} <= set(shown)
    assert shown[-1] == "A note."
    last = [text.get_position()[1] for text in paper.sheets[0].texts]
    assert np.min(last) > 0
