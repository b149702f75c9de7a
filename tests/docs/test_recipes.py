"""The recipes: each runs, on small pictures, and does what its heading says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.docs.pages import blocks, page, run, sections
from tests.seeding import seeded

SECTIONS = sections(page("docs/recipes.md"))
START = "A start"
SIZE = (8, 12)


class Bright(nn.Module):
    """Scores of dark and bright, from the mean of the channels around each pixel."""

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        mean = nn.functional.avg_pool2d(batch.mean(dim=1, keepdim=True), 3, 1, 1, count_include_pad=False)
        return torch.cat([0.5 - mean, mean - 0.5], dim=1)


class Remembering(Bright):
    """Two outputs, which depend on what was asked before."""

    def __init__(self) -> None:
        super().__init__()
        self.before = torch.zeros(())

    def forget(self) -> None:
        self.before = torch.zeros(())

    def forward(self, batch: torch.Tensor) -> Any:
        self.before = super().forward(batch) + self.before.mean()
        return {"edges": -self.before, "segmentation": self.before}


class Blur(nn.AvgPool2d):
    """A mean of neighbours, that counts its calls."""

    calls = 0

    def __init__(self) -> None:
        super().__init__(3, 1, 1, count_include_pad=False)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        type(self).calls += 1
        return super().forward(input)


def inputs() -> dict[str, Any]:
    """What readers have of their own."""
    stripe = np.abs(np.arange(SIZE[1]) - 5.5) < 3
    image = (np.where(stripe, 0.9, 0.1) * np.ones((3, SIZE[0], 1))).astype(np.float32)
    label = stripe * np.ones((SIZE[0], 1), np.int64)
    return {"network": Bright(), "images": [image, 1 - image], "labels": [label, 1 - label]}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder with the run of the first recipe, and its names."""
    folder = tmp_path_factory.mktemp("recipes")
    names = inputs()
    with pytest.MonkeyPatch.context() as patch, seeded(0):
        patch.chdir(folder)
        for code in blocks(SECTIONS[START], "python"):
            run(code, f"docs/recipes.md, {START}", names)
    return folder, names


def certified_at_zero(names: dict[str, Any]) -> None:
    assert (names["result"]["certified"].sel(budget=0) > 0).all()


def certified_with_less(names: dict[str, Any]) -> None:
    again, exact = names["again"], names["exact"]
    assert again.attrs["alpha"] == 0.001
    assert again["budget"].values.tolist() == [0, 0.1, 0.2, 0.3]
    assert exact["bound"].values.tolist() == ["envelope", "exact"]


def another_version_is_certified(names: dict[str, Any]) -> None:
    result = names["result"]
    assert result.attrs["precision"] == "bfloat16"
    assert "of this model alone" in result.attrs["assumptions"]
    assert json.loads(result.attrs["replay"])["samples"] == 8
    assert (result["certified"].sel(budget=0) > 0).all()


def baselines_differ(names: dict[str, Any]) -> None:
    cohen, segcertify = names["cohen"], names["segcertify"]
    assert (cohen.attrs["method"], segcertify.attrs["method"]) == ("Cohen", "SegCertify")
    assert (cohen["certified"].sel(target="accuracy", budget=0) > 0).all()
    assert not cohen["certified"].equals(segcertify["certified"])


def both_reported(names: dict[str, Any]) -> None:
    text = Path("report.html").read_text(encoding="utf-8")
    assert "Localized and isotropic noise" in text
    assert "Cohen" in text


def all_is_drawn(names: dict[str, Any]) -> None:
    assert len(names["left"].get_lines()) > 0
    assert len(names["right"].get_images()) == 1
    assert "α = " in names["table"]
    assert Path("appendix.pdf").read_bytes().startswith(b"%PDF-")


def overlaps_are_certified(names: dict[str, Any]) -> None:
    assert (names["overlaps"]["iou"].isel(budget=0) > 0).all()
    assert "How much of the IoU is certified" in Path("iou.html").read_text(encoding="utf-8")


def one_left_out(names: dict[str, Any]) -> None:
    assert (names["result"]["total"].sel(target="accuracy") == SIZE[0] * SIZE[1] - 1).all()


def parts_make_the_whole(names: dict[str, Any]) -> None:
    whole = names["ls"].load_result("runs/localized/result.nc")
    assert (names["result"]["votes"] == whole["votes"]).all()


def ended_in_time(names: dict[str, Any]) -> None:
    samples_are_saved(names)
    assert "ended before its plan" in names["result"].attrs["assumptions"]
    assert "joint_count holds" in names["result"].attrs["assumptions"]


def nothing_is_assumed(names: dict[str, Any]) -> None:
    certified_at_zero(names)
    assert 0 < json.loads(names["result"].attrs["drawing_charge"]) < 1e-9


def scores_are_relied_on(names: dict[str, Any]) -> None:
    assert "gaussian-scores" in names["result"].attrs["assumptions"]
    assert 1 in names["result"]["relies_on"]


def samples_are_saved(names: dict[str, Any]) -> None:
    saving = json.loads(names["result"].attrs["saving"])
    assert sum(saving["counted"]) < sum(saving["planned"])


def pairs_are_certified(names: dict[str, Any]) -> None:
    assert (names["result"]["certified"].sel(additions=0, deletions=0) > 0).all()


def evidence_is_complete(names: dict[str, Any]) -> None:
    assert names["found"].complete
    assert json.loads(Path("certificate.json").read_text(encoding="utf-8"))["promise"]["alpha"] == 0.01


def only_deletions(names: dict[str, Any]) -> None:
    assert "no additions" in names["result"].attrs["threat"]
    certified_at_zero(names)


def named_and_certified_at_zero(names: dict[str, Any]) -> None:
    assert names["model"].class_names == ("dark", "bright")
    certified_at_zero(names)


def certified_through_a_denoiser(names: dict[str, Any]) -> None:
    assert names["denoiser"].calls > 0
    certified_at_zero(names)


def tokens_are_named(names: dict[str, Any]) -> None:
    assert names["result"]["output_name"].values[0].tolist() == ["Anna", "lives", "in", "Berlin"]
    assert names["result"]["candidate"].shape == (1, 4)


def each_time_step_is_certified(names: dict[str, Any]) -> None:
    assert names["result"]["prediction"].shape == (2, 40)
    certified_at_zero(names)


def a_module_is_trained_and_certified(names: dict[str, Any]) -> None:
    pairs_are_certified(names)
    accuracy = names["result"]["certified"].sel(target="accuracy", bound="envelope", additions=0, deletions=0)
    assert accuracy.item() > 0.5 * len(names["split"].test)
    seen = []

    class Seeing(type(names["module"])):
        def forward(self, attributes: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
            seen.append((self.training, torch.is_grad_enabled(), attributes, edge_index))
            return super().forward(attributes, edge_index)

    graph, graphs = names["graph"], names["graphs"]
    with seeded(0):
        looking = Seeing(graph.width, graph.classes).eval()
    task = graphs.GraphTask(graphs.EdgeIndexClassifier(looking, graph.classes), graph, names["split"].test)
    names["ls"].certify(task, names["ls"].Smoothing(names["layout"], names["ls"].SamplingPlan(4, 8)), names["pairs"])
    for training, gradients, attributes, edges in seen:
        copies = len(attributes) // graph.nodes
        assert not training
        assert not gradients
        assert (attributes.dtype, edges.dtype) == (torch.float32, torch.int64)
        assert attributes.shape == (copies * graph.nodes, graph.width)
        assert set(attributes.unique().tolist()) <= {0.0, 1.0}
        assert attributes.device.type == edges.device.type == "cpu"
        assert (edges[0] != edges[1]).all()
        one = torch.from_numpy(graph.edge_index)
        assert set(map(tuple, one.T.tolist())) == set(map(tuple, one.flip(0).T.tolist()))
        assert torch.equal(edges, torch.cat([one + copy * graph.nodes for copy in range(copies)], dim=1))
    assert max(len(attributes) for _, _, attributes, _ in seen) > graph.nodes


CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {
    "A Hugging Face segmenter": named_and_certified_at_zero,
    "A Hugging Face tagger": tokens_are_named,
    "A checkpoint, or an exported program": certified_at_zero,
    "A module with several outputs, or with a state": certified_at_zero,
    "A denoiser in front": certified_through_a_denoiser,
    "An ONNX file": certified_at_zero,
    "Another α, other budgets, another bound": certified_with_less,
    "Another version of the model": another_version_is_certified,
    "Beside the baselines": baselines_differ,
    "One report of several methods": both_reported,
    "In a notebook, a paper and an appendix": all_is_drawn,
    "Certified IoU and Dice": overlaps_are_certified,
    "Labels to ignore": one_left_out,
    "A run that survives a crash": certified_at_zero,
    "Pictures of 8 bits, and no assumption about floating point": nothing_is_assumed,
    "As long as there is time": ended_in_time,
    "Several machines": parts_make_the_whole,
    "Evidence for a reviewer": evidence_is_complete,
    "Scores in place of votes": scores_are_relied_on,
    "Early stopping": samples_are_saved,
    "A signal": each_time_step_is_certified,
    "The nodes of a graph": pairs_are_certified,
    "A message-passing module of your own": a_module_is_trained_and_certified,
    "An adversary of whole bits": only_deletions,
    "Reading a result": certified_at_zero,
}


def test_every_recipe_is_tried() -> None:
    assert [START, *CHECKS] == list(SECTIONS)


def onnx_file(folder: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    if not (folder / "segmenter.onnx").exists():
        torch.onnx.export(
            Bright().eval(),
            (torch.rand(1, 3, *SIZE),),
            str(folder / "segmenter.onnx"),
            input_names=["x"],
            output_names=["y"],
            dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}},
            dynamo=False,
        )


def huggingface_folder(folder: Path) -> None:
    """A tiny network that sees the second class everywhere."""
    transformers = pytest.importorskip("transformers")
    stages = {"num_encoder_blocks": 1, "depths": [1], "sr_ratios": [1], "hidden_sizes": [8], "num_attention_heads": [1]}
    patches = {"patch_sizes": [3], "strides": [4], "mlp_ratios": [1], "decoder_hidden_size": 8}
    configuration = transformers.SegformerConfig(**stages, **patches, id2label={0: "dark", 1: "bright"})
    network = transformers.SegformerForSemanticSegmentation(configuration).eval()
    network.decode_head.classifier.bias.data[1] = 9.0
    network.save_pretrained(folder / "segformer")
    transformers.SegformerImageProcessorPil(size={"height": 16, "width": 16}).save_pretrained(folder / "segformer")


def tagger_folder(folder: Path) -> None:
    """A tiny network of three classes and four words."""
    transformers = pytest.importorskip("transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "anna", "lives", "in", "berlin"]
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    labels = {0: "O", 1: "PER", 2: "LOC"}
    configuration = transformers.BertConfig(vocab_size=len(words), **sizes, id2label=labels)
    transformers.BertForTokenClassification(configuration).save_pretrained(folder / "tagger")
    transformers.BertTokenizer(vocab={word: n for n, word in enumerate(words)}).save_pretrained(folder / "tagger")


@pytest.mark.parametrize("title", CHECKS)
def test_recipe(title: str, started: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, names = started
    monkeypatch.chdir(folder)
    names = dict(names, denoiser=Blur())
    if "with a state" in title:
        names["network"] = Remembering()
    with seeded(0):
        if title == "A Hugging Face segmenter":
            huggingface_folder(folder)
        if title == "A Hugging Face tagger":
            tagger_folder(folder)
        if title == "A checkpoint, or an exported program":
            free = ({0: torch.export.Dim("batch"), 2: torch.export.Dim("y"), 3: torch.export.Dim("x")},)
            program = torch.export.export(Bright().eval(), (torch.rand(2, 3, *SIZE),), dynamic_shapes=free)
            torch.export.save(program, folder / "segmenter.pt2")
        if title == "An ONNX file":
            onnx_file(folder)
        for code in blocks(SECTIONS[title], "python"):
            run(code, f"docs/recipes.md, {title}", names)
    CHECKS[title](names)
