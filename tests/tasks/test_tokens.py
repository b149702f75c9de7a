"""Embedded sequences: features last outside, channels first inside, classes never taken from a wrong axis."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn

from localsmooth.errors import InvalidInputError
from localsmooth.execution import NoProgress
from localsmooth.layout import LayoutRecipe
from localsmooth.models import OutputKind, TorchModel, check_model
from localsmooth.pipeline import Run, certify, recertify, settings_of
from localsmooth.report import render_report
from localsmooth.results import attach_names, item_view, load, run_info, save
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.tasks import Smoothing
from localsmooth.tasks.arrays import ArrayTask, PerPosition, Settings
from localsmooth.tasks.tokens import EmbeddedTagger, TokenTask, WindowLayout, features_last
from tests.seeding import seeded

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "token_tagger.py"
LENGTHS = (6, 2, 9)
PLAN = SamplingPlan(20, 200, seed=1, chunk_size=100)
SETTINGS = Settings(0.05, [0.0, 0.1, 0.3])
RUN: dict[str, Any] = {"progress": NoProgress(), "options": SamplingOptions(batch_size=50)}


class Linear(nn.Module):
    """Scores of each token from its own embedding."""

    def __init__(self, features: int = 3, classes: int = 2) -> None:
        super().__init__()
        with seeded(0):
            self.layer = nn.Linear(features, classes)

    def forward(self, inputs: torch.Tensor) -> Any:
        return self.layer(inputs)


class HuggingFace(Linear):
    config = SimpleNamespace(num_labels=2)

    def forward(self, input_ids: Any = None, inputs_embeds: Any = None) -> Any:
        assert input_ids is None
        return SimpleNamespace(logits=self.layer(inputs_embeds))


class ClassesFirst(Linear):
    def forward(self, inputs: torch.Tensor) -> Any:
        return self.layer(inputs).transpose(1, 2)


def sequences(features: int = 3) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.standard_normal((length, features)).astype(np.float32) for length in LENGTHS]


def words() -> list[list[str]]:
    return [[f"<b>wörd {place}" for place in range(length)] for length in LENGTHS]


def tagger(module: nn.Module | None = None, **arguments: Any) -> EmbeddedTagger:
    return EmbeddedTagger((Linear() if module is None else module).eval(), **({"classes": 2} | arguments))


def certified(task: TokenTask, settings: Settings = SETTINGS, **run: Any) -> xr.Dataset:
    return certify(task, Smoothing(WindowLayout(3, 0.2, 0.6), PLAN), settings, run=Run(**RUN, **run))


def test_it_is_the_array_task_on_transposed_sequences() -> None:
    labels = [np.zeros(length, np.int64) for length in LENGTHS]
    made = certified(TokenTask(tagger(), sequences(), labels, class_names=["a", "b"]))
    turned = [sequence.T for sequence in sequences()]
    task = ArrayTask(tagger(), turned, labels, class_names=["a", "b"], units="embedding units")
    other = certify(task, Smoothing(WindowLayout(3, 0.2, 0.6), PLAN), SETTINGS, run=Run(**RUN))
    xr.testing.assert_identical(made.drop_attrs(), other.drop_attrs())
    assert (run_info(made).task, run_info(other).task) == ("tokens", "arrays")
    for place, sequence in enumerate(sequences()):
        scores = tagger().module.module(torch.from_numpy(sequence))
        assert (item_view(made, place).candidate == scores.argmax(1).numpy()).mean() > 0.7


def test_words_stay_with_the_run_and_its_results(tmp_path: Path) -> None:
    made = certified(TokenTask(tagger(), sequences(), words=words()), out=tmp_path)
    again = recertify(tmp_path, Settings(0.1, [0.2], threat=PerPosition(2)))
    for result in (made, again, load(tmp_path / "result.nc")):
        for place, line in enumerate(words()):
            named = item_view(result, place).names
            assert named is not None
            assert named.tolist() == line
    assert settings_of(tmp_path).budgets == SETTINGS.budgets
    page = render_report(made)
    assert "&lt;b&gt;wörd 8" in page
    assert "<b>wörd" not in page
    assert 'data-words="m0i0"' in page
    assert "6 tokens" in page


def test_without_words_there_is_a_strip(tmp_path: Path) -> None:
    made = certified(TokenTask(tagger(), sequences()))
    assert "output_name" not in made
    page = render_report(made)
    assert "data-outputs" in page
    assert "data-words=" not in page
    save(attach_names(made, words()), tmp_path / "named.nc")
    assert load(tmp_path / "named.nc")["output_name"].dtype.kind == "U"
    with pytest.raises(InvalidInputError, match="names"):
        attach_names(made, words()[::-1])


def test_labels_and_abstentions_of_words_are_shown() -> None:
    labels = [np.where(np.arange(length) == 1, 255, 1) for length in LENGTHS]
    task = TokenTask(tagger(), sequences(), labels, words(), class_names=["noun", "verb"], ignore_label=255)
    page = render_report(certified(task))
    assert 'title="ignored"' in page
    assert 'title="verb"' in page
    assert 'title="radius ' in page


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"sequences": [np.zeros((1, 4, 3), np.float32)]}, "sequences"),
        ({"sequences": [np.zeros(4, np.float32)]}, "sequences"),
        ({"words": [["a"] * length for length in (6, 2, 8)]}, "words"),
        ({"words": [["a"] * 6]}, "words"),
        ({"words": ["aaaaaa", "aa", "aaaaaaaaa"]}, "words"),
        ({"labels": [np.zeros(3, int)]}, "labels"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, Any], field: str) -> None:
    arguments: dict[str, Any] = {"model": tagger(), "sequences": sequences()} | change
    with pytest.raises(InvalidInputError, match=field):
        TokenTask(**arguments)


def test_a_model_must_predict_every_token() -> None:
    class Pooled(nn.Module):
        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            return torch.stack([batch.mean(1), -batch.mean(1)], 1)[..., ::2]

    task = TokenTask(TorchModel(Pooled().eval(), bounds=None, classes=2), [np.zeros((6, 3), np.float32)])
    with pytest.raises(InvalidInputError, match=r"predictions of shape.*EmbeddedTagger"):
        certified(task)


def test_hugging_face_modules_are_taken_as_they_are() -> None:
    model = EmbeddedTagger(HuggingFace().eval())
    assert model.classes == 2
    batch = torch.from_numpy(np.stack([sequences()[0].T] * 2))
    assert torch.equal(model(batch), tagger()(batch))
    check_model(model, batch[0])
    assert model.fingerprint() != tagger().fingerprint()


@pytest.mark.parametrize("tokens", [1, 2, 3, 5])
@pytest.mark.parametrize("classes", [2, 3])
def test_classes_on_another_axis_are_refused_at_every_length(tokens: int, classes: int) -> None:
    batch = torch.zeros(4, 3, tokens)
    assert features_last(Linear(3, classes), classes=classes)(batch).shape == (4, classes, tokens)
    with pytest.raises(InvalidInputError, match="module"):
        features_last(ClassesFirst(3, classes), classes=classes)(batch)
    with pytest.raises(InvalidInputError, match="module"):
        features_last(Linear(3, classes + 1), classes=classes)(batch)


def test_a_module_of_one_length_is_refused_where_nothing_tells_the_axes_apart() -> None:
    class Fixed(Linear):
        def forward(self, inputs: torch.Tensor) -> Any:
            return super().forward(inputs.reshape(len(inputs), 2, 3))

    with pytest.raises(InvalidInputError, match="which axis"):
        features_last(Fixed(), classes=2)(torch.zeros(4, 3, 2))


def test_labels_and_keywords() -> None:
    class Labels(Linear):
        def forward(self, inputs: torch.Tensor, *, embeddings: Any = None) -> Any:
            return super().forward(inputs if embeddings is None else embeddings).argmax(2)

    batch = torch.from_numpy(np.stack([sequences()[0].T] * 2))
    model = tagger(Labels(), output=OutputKind.LABELS)
    assert torch.equal(model(batch), tagger()(batch).argmax(1))
    with pytest.raises(InvalidInputError, match="keyword"):
        features_last(Linear(), classes=2, keyword="embeds")
    with pytest.raises(InvalidInputError, match="classes"):
        EmbeddedTagger(Linear().eval())
    with pytest.raises(InvalidInputError, match=r"sequences.*kind ="):
        features_last(Linear(), classes=2)(torch.zeros(4, 3))


def test_parts_in_training_mode_are_still_found() -> None:
    module = nn.Sequential(Linear(), nn.Dropout(0.5)).eval()
    module[1].train()
    with pytest.raises(InvalidInputError, match=r"module\.1 \(Dropout\) is in training mode"):
        EmbeddedTagger(module, classes=2)


def test_windows_of_consecutive_tokens() -> None:
    layout = WindowLayout(4, 0.2, 0.8).layout((1, 10), (10,))
    assert layout.outputs.labels.tolist() == layout.inputs.labels.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]
    np.testing.assert_allclose(layout.levels[0], [0.2, 0.4, 0.6, 0.8])
    np.testing.assert_array_equal(layout.levels, layout.levels.T)
    recipe = WindowLayout(4, 0.2, 0.8)
    assert isinstance(recipe, LayoutRecipe)
    assert recipe.layout((3, 10), (10,)).digest() == layout.digest()
    assert recipe.layout((3, 2), (2,)).outputs.count == 2
    assert WindowLayout(1, 0.2, 0.2).layout((3, 5), (5,)).levels.tolist() == [[0.2]]
    hidden = WindowLayout(4, 0.2, 0.8, mask_beyond=1).layout((3, 12), (12,))
    assert np.isinf(hidden.level_map(0)).tolist() == [False] * 4 + [True] * 8
    for bad in (lambda: WindowLayout(4, 0.2, 0.8).layout((1, 0), (0,)), lambda: WindowLayout(0, 0.2, 0.8)):
        with pytest.raises(InvalidInputError):
            bad()


def test_the_example_runs_and_prints_both_methods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["--out", str(tmp_path), "--samples", "800", "--steps", "40", "--sentences", "2"]
    monkeypatch.setattr("sys.argv", [str(EXAMPLE), *small])
    run_path(str(EXAMPLE), run_name="__main__")
    said = capsys.readouterr().out
    assert "localized: correct tags" in said
    assert "isotropic: correct tags" in said
    page = (tmp_path / "report.html").read_text("utf-8")
    assert 'title="determiner"' in page
    for name in ("localized", "isotropic"):
        result = load(tmp_path / name / "result.nc")
        assert run_info(result).task == "tokens"
        assert result["certified"].sel(target="accuracy", budget=0.1).values.max() > 0
