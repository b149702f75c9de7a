"""Models, files and calls as people have them: used, or refused with something that can be done."""

from __future__ import annotations

import argparse
import io
import json
import os
import pickle
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from tests import flat
from tests.seeding import seeded
from torch import nn

import localsmooth as ls
from localsmooth.config import parse_configuration
from localsmooth.config.checkpoint import load_weights
from localsmooth.config.faults import ConfigurationError
from localsmooth.config.programs import load_program
from localsmooth.models import check_model, evaluated
from localsmooth.models.comparison import compare
from localsmooth.tasks.arrays.inputs import require_model

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

IMAGE = np.random.default_rng(0).random((1, 3, 16, 16), dtype=np.float32)
FLOAT = onnx.TensorProto.FLOAT


def network(classes: int = 4) -> nn.Module:
    with seeded(0):
        return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, classes, 1)).eval()


def certify(model: object, images: object = IMAGE, labels: object = None, **more: object):
    arguments = {
        "layout": ls.GridLayout((2, 2), minimum=0.1, maximum=0.3),
        "plan": ls.SamplingPlan(16, 128),
        "alpha": 0.5,
        "budgets": [0.0, 0.1],
        "executor": ls.SerialExecutor(),
    } | more
    return flat.certify(model, images, labels, **arguments)


def onnx_file(
    path: Path, steps: list[tuple[str, list[str], list[str], dict]], outputs: dict[str, tuple], shape: tuple = (16, 16)
) -> Path:
    rng = np.random.default_rng(1)
    constants = {
        "w": rng.normal(size=(4, 3, 1, 1)).astype(np.float32),
        "v": rng.normal(size=(4, 4, 2, 2)).astype(np.float32),
        "one": np.array([1, 4, 16, 16]),
    }
    used = {name for _, inputs, _, _ in steps for name in inputs}
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(kind, inputs, made, **options) for kind, inputs, made, options in steps],
        "graph",
        [onnx.helper.make_tensor_value_info("x", FLOAT, ["N", 3, *shape])],
        [onnx.helper.make_tensor_value_info(name, FLOAT, ["N", *size]) for name, size in outputs.items()],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items() if name in used],
    )
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9), path)
    return path


PLAIN = [("Conv", ["x", "w"], ["y"], {})]


def test_a_file_with_one_sample_baked_in_gets_one_at_a_time(tmp_path):
    steps = [("Conv", ["x", "w"], ["a"], {}), ("Reshape", ["a", "one"], ["y"], {})]
    single = ls.OnnxModel(onnx_file(tmp_path / "one.onnx", steps, {"y": (4, 16, 16)}), bounds=(0, 1))
    plain = ls.OnnxModel(onnx_file(tmp_path / "plain.onnx", PLAIN, {"y": (4, 16, 16)}), bounds=(0, 1))
    found, expected = certify(single), certify(plain)
    np.testing.assert_array_equal(found["votes"], expected["votes"])


def test_a_runtime_that_fails_names_the_images_and_the_file(tmp_path):
    steps = [
        ("Conv", ["x", "w"], ["a"], {}),
        ("MaxPool", ["a"], ["p"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("ConvTranspose", ["p", "v"], ["u"], {"strides": [2, 2]}),
        ("Add", ["a", "u"], ["y"], {}),
    ]
    model = ls.OnnxModel(onnx_file(tmp_path / "even.onnx", steps, {"y": (4, "H", "W")}, ("H", "W")), bounds=(0, 1))
    certify(model)
    with pytest.raises(ls.InvalidInputError, match=r"(?s)images: .*even\.onnx.*pad_multiple"):
        certify(model, IMAGE[..., :15, :13])
    padded = ls.OnnxModel(tmp_path / "even.onnx", bounds=(0, 1), preprocessing=ls.Preprocessing(pad_multiple=2))
    assert certify(padded, IMAGE[..., :15, :13])["total"].sel(target="ratio").item() == 15 * 13


@pytest.mark.parametrize("classes", [None, 4])
def test_classes_that_lie_last_are_refused(tmp_path, classes):
    steps = [("Conv", ["x", "w"], ["a"], {}), ("Transpose", ["a"], ["y"], {"perm": [0, 2, 3, 1]})]
    model = ls.OnnxModel(onnx_file(tmp_path / "last.onnx", steps, {"y": (16, 16, 4)}), bounds=(0, 1), classes=classes)
    with pytest.raises(ls.InvalidInputError, match="classes seem to lie last"):
        certify(model)


def test_as_many_inputs_as_classes_are_no_reason_to_refuse():
    """Two inputs, two classes, one output: what is declared decides."""

    def scores(batch: np.ndarray) -> np.ndarray:
        return np.stack([batch[:, 0, :1], -batch[:, 0, :1]], axis=1)

    model = ls.CallableModel(scores, name="one", bounds=None, classes=2)
    assert check_model(model, torch.ones(1, 2)).output_shape == (1,)


def test_paths_of_files_stand_wherever_the_program_goes(tmp_path, monkeypatch):
    onnx_file(tmp_path / "model.onnx", PLAIN, {"y": (4, 16, 16)})
    monkeypatch.chdir(tmp_path)
    model = ls.OnnxModel("model.onnx", bounds=(0, 1))
    monkeypatch.chdir(os.path.sep)
    certify(model, out=tmp_path / "run")


class Tagger(nn.Module):
    def __init__(self, labels: int) -> None:
        super().__init__()
        with seeded(0):
            self.head = nn.Linear(16, labels)
        self.config = SimpleNamespace(num_labels=labels)

    def forward(self, batch: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=self.head(batch.transpose(1, 2)))


@pytest.mark.parametrize(("labels", "named"), [(9, r"\(3, 12, 9\)"), (12, r"\(3, 12, 12\)")])
def test_logits_of_token_classifiers_are_not_resized(labels, named):
    tokens = np.random.default_rng(0).normal(size=(1, 16, 12)).astype(np.float32)
    layout = ls.GridLayout((3,), minimum=0.1, maximum=0.3)
    model = Tagger(labels).eval()
    with pytest.raises(ls.InvalidInputError, match=named):
        certify(ls.TorchModel(model, bounds=None), tokens, layout=layout)
    turned = ls.TorchModel(model, bounds=None, class_axis=2)
    assert certify(turned, tokens, layout=layout)["total"].sel(target="ratio").item() == 12


def test_the_check_of_a_model_needs_little_more_than_its_passes():
    """In a process of its own: the peak of memory is the whole process's."""
    program = """
import resource, torch
import localsmooth as ls
from localsmooth.models import check_model, evaluated
torch.set_num_threads(1)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model = ls.TorchModel(torch.nn.Conv2d(3, 150, 1).eval(), bounds=(0, 1), classes=150)
image = torch.rand(3, 160, 160)
start = peak()
model(image[None].repeat(3, 1, 1, 1))
passes = peak() - start
check_model(model, image)
print(passes, peak() - start)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    passes, check = map(int, done.stdout.split())
    assert check < 4 * passes + 60_000  # kibibytes, some of which are for code that is loaded meanwhile


def test_differences_are_the_same_in_pieces_as_in_one(monkeypatch):
    model = ls.TorchModel(network(), bounds=(0, 1), classes=4)
    generator = torch.Generator().manual_seed(0)
    left = torch.randn(3, 4, 7, 5, generator=generator)
    right = left + 0.1 * torch.randn(left.shape, generator=generator)
    whole = compare(model, left, right, strictly=True)
    monkeypatch.setattr("localsmooth.models.comparison._LARGEST_PIECE", 12)
    pieces = compare(model, left, right, strictly=True)
    assert (whole.labels, whole.predictions) == (pieces.labels, pieces.predictions) == (whole.labels, 105)
    assert whole.labels > 0
    assert pieces.change == pytest.approx(whole.change, rel=1e-12)


@pytest.mark.parametrize("device", ["gpu", "mps", "cuda:77"])
def test_devices_that_there_are_not_are_named(device):
    with pytest.raises(ls.InvalidInputError, match="device"):
        ls.TorchModel(network(), bounds=(0, 1), classes=4, device=device)


def test_exported_programs_are_used_as_they_are():
    batch = torch.export.Dim("batch")
    program = torch.export.export(network(), (torch.zeros(2, 3, 16, 16),), dynamic_shapes=({0: batch},)).module()
    found = certify(ls.TorchModel(program, bounds=(0, 1), classes=4))
    expected = certify(ls.TorchModel(network(), bounds=(0, 1), classes=4))
    np.testing.assert_array_equal(found["votes"], expected["votes"])


def test_exported_programs_that_are_random_are_refused():
    with seeded(0):
        module = nn.Sequential(nn.Conv2d(3, 4, 1), nn.Dropout(0.5)).train()
    shapes = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(module, (torch.zeros(2, 3, 16, 16),), dynamic_shapes=shapes).module()
    with pytest.raises(ls.InvalidInputError, match=r"module: its operation dropout is in training mode.*before torch"):
        ls.TorchModel(program, bounds=(0, 1), classes=4)


class Mixing(nn.Module):
    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return batch + batch.mean(0)


def exported(module: nn.Module) -> torch.export.ExportedProgram:
    return torch.export.export(module, (torch.zeros(2, 3, 16, 16),), dynamic_shapes=({0: torch.export.Dim("batch")},))


def test_what_no_operation_says_is_seen_by_trial() -> None:
    with pytest.raises(ls.InvalidInputError, match="differ"), seeded(0):
        check_model(ls.TorchModel(exported(Mixing().eval()), bounds=(0, 1), classes=3), torch.from_numpy(IMAGE[0]))


class Rarely(nn.Module):
    """Random so seldom that no trial call shows it."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        if self.how == "block":  # a graph within the graph
            with torch.no_grad():
                return nn.functional.dropout(batch, 1e-9, training=True)
        if self.how == "feature":
            return nn.functional.feature_alpha_dropout(batch, 1e-9, training=True)
        if self.how == "attention":
            flat = batch.flatten(2)
            return nn.functional.scaled_dot_product_attention(flat, flat, flat, dropout_p=1e-9).reshape(batch.shape)
        return batch * (torch.rand_like(batch) > 1e-9)


@pytest.mark.parametrize("within", [False, True], ids=["itself", "a part"])
@pytest.mark.parametrize("how", ["block", "feature", "attention", "drawn"])
def test_programs_that_are_seldom_random_are_refused(how: str, within: bool) -> None:
    program = exported(Rarely(how).eval()).module()
    module = evaluated(nn.Sequential(program, nn.ReLU())) if within else program
    with pytest.raises(ls.InvalidInputError, match=r"module: its operation .*(training mode|draws at random)"):
        ls.TorchModel(module, bounds=(0, 1), classes=3)
    with pytest.raises(ls.InvalidInputError, match="denoiser: its operation"):
        ls.Denoiser(program)


class Quiet(nn.Module):
    """Operations that could be random, and are not."""

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        flat = nn.functional.dropout(batch.flatten(2), 0.5, training=False)
        return nn.functional.scaled_dot_product_attention(flat, flat, flat, dropout_p=0.0).reshape(batch.shape)


def test_programs_may_be_parts_of_a_module_or_denoise() -> None:
    program = exported(Quiet().eval())
    quiet, batch = program.module(), torch.from_numpy(IMAGE)
    alone = ls.TorchModel(program, bounds=(0, 1), classes=3)
    within = ls.TorchModel(evaluated(nn.Sequential(quiet)), bounds=(0, 1), classes=3)
    before = ls.TorchModel(nn.Identity().eval(), bounds=(0, 1), classes=3, denoiser=ls.Denoiser(program))
    for model in (within, within.replica(), before, before.replica()):
        torch.testing.assert_close(model(batch), alone(batch))
        assert not model.concurrent  # what it would share is not known


def section(**model: object) -> ls.Model:
    """A model as a file of configuration makes it."""
    values = {
        "model": {"bounds": [0.0, 1.0], "classes": 4, **model},
        "data": {"kind": "digit-scenes"},
        "layout": {"cells": [2, 2]},
        "noise": {"distribution": "gaussian", "sigma_min": 0.1, "sigma_max": 0.3},
        "sampling": {"n_candidate": 4, "n_bound": 8},
        "certificate": {"alpha": 0.5, "budgets": [0.0]},
    }
    made = parse_configuration(values)
    return made.model.build(made.sampling)


@pytest.mark.parametrize("fixed", [None, 1, 4])
def test_programs_of_any_batch_are_read_from_files(tmp_path: Path, fixed: int | None) -> None:
    shapes = None if fixed else ({0: torch.export.Dim("batch")},)
    program = torch.export.export(network(), (torch.zeros(fixed or 2, 3, 16, 16),), dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "model.pt2")
    model = section(kind="torch-export", path=str(tmp_path / "model.pt2"))
    batch = torch.rand((6, 3, 16, 16), generator=torch.Generator().manual_seed(0))
    expected = ls.TorchModel(network(), bounds=(0, 1), classes=4)(batch)
    for made in (model, model.replica(), ls.TorchModel(program, bounds=(0, 1), classes=4)):
        torch.testing.assert_close(made(batch), expected)
        torch.testing.assert_close(made(batch[:1]), expected[:1])
    with pytest.raises(ls.InvalidInputError, match=r"batch: .*\(3, 15, 16\).*exported for \(3, 16, 16\)"):
        model(batch[:, :, 1:])
    assert check_model(model, IMAGE[0]).output_shape == (16, 16)


def test_programs_that_may_run_code_are_refused(tmp_path: Path) -> None:
    program = torch.export.export(network(), (torch.zeros(2, 3, 16, 16),))
    torch.export.save(program, tmp_path / "model.pt2")

    def changed(name: str, content: bytes | None = None, **replaced: str) -> Path:
        with zipfile.ZipFile(tmp_path / "model.pt2") as old, zipfile.ZipFile(tmp_path / "other.pt2", "w") as new:
            held = {each: old.read(each) for each in old.namelist()}
            if content is not None:
                held[f"model/{name}"] = content
            for one, other in replaced.items():
                assert one.encode() in held[f"model/{name}"]
                held[f"model/{name}"] = held[f"model/{name}"].replace(one.encode(), other.encode())
            for each, value in held.items():
                new.writestr(each, value)
        return tmp_path / "other.pt2"

    pickled = io.BytesIO()
    torch.save((SimpleNamespace(),), pickled)
    expression = json.dumps({"as_expr": {"expr_str": "Symbol(open('x'))"}}).encode()
    for name, content in (("data/constants/opaque_obj_0", pickle.dumps(3)), ("data/aotinductor/model/a.so", b"")):
        with pytest.raises(ConfigurationError, match=f"a file model/{name}"):
            load_program(changed(name, content))
    with pytest.raises(ConfigurationError, match="pickled inputs"):
        load_program(changed("data/sample_inputs/model.pt", pickled.getvalue()))
    with pytest.raises(ConfigurationError, match="an expression"):
        load_program(changed("models/model.json", expression))
    config = "data/weights/model_weights_config.json"
    with pytest.raises(ConfigurationError, match="pickled tensors"):
        load_program(changed(config, **{'"use_pickle": false': '"use_pickle": true'}))
    torch.save({"a": 1}, tmp_path / "other.pt2")
    with pytest.raises(ConfigurationError, match=r"model\.path"):
        load_program(tmp_path / "other.pt2")
    load_program(tmp_path / "model.pt2")


class Heads(nn.Module):
    """Two predictions, in one of several forms."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.inner, self.form = network(), form

    def forward(self, batch: torch.Tensor) -> object:
        scores = self.inner(batch)
        named = {"edges": -scores, "seg": scores}
        return {
            "dict": named,
            "tuple": tuple(named.values()),
            "object": SimpleNamespace(**named),
            "named tuple": Pair(**named),
            "tensor": scores,
        }[self.form]


class Pair(NamedTuple):
    edges: torch.Tensor
    seg: torch.Tensor


def heads() -> nn.Module:
    return Heads("dict")


@pytest.mark.parametrize(
    ("form", "select", "known"),
    [
        ("dict", "seg", r"\['edges', 'seg'\]"),
        ("dict", 1, r"\['edges', 'seg'\]"),
        ("tuple", 1, r"\[0, 1\]"),
        ("tuple", -1, r"\[0, 1\]"),
        ("object", "seg", r"\['edges', 'seg'\]"),
        ("named tuple", "seg", r"\['edges', 'seg'\]"),
        ("named tuple", 1, r"\['edges', 'seg'\]"),
        ("tensor", None, "leave select out"),
    ],
)
def test_one_of_several_outputs_is_chosen_by_its_name(form: str, select: str | int | None, known: str) -> None:
    batch = torch.from_numpy(IMAGE)
    options = {"bounds": (0, 1), "classes": 4}
    made = ls.TorchModel(Heads(form).eval(), select=select, **options)
    assert torch.equal(made(batch), ls.TorchModel(network(), **options)(batch))
    assert made.concurrent
    with pytest.raises(ls.InvalidInputError, match=f"select: there is no tensor 'out' in the .*{known}"):
        ls.TorchModel(Heads(form).eval(), select="out", **options)(batch)


def test_files_choose_one_of_several_outputs() -> None:
    factory = f"{__name__}:heads"
    batch = torch.from_numpy(IMAGE)
    one, other = (section(kind="torch", factory=factory, select=name) for name in ("seg", "edges"))
    assert torch.equal(one(batch), -other(batch))
    assert one.fingerprint() != other.fingerprint()


class Recurrent(nn.Module):
    """What it says depends on what it was asked before, until it forgets."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.state = network(), None

    def forget(self) -> None:
        self.state = None

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        scores = self.inner(batch)
        self.state = scores if self.state is None else scores - self.state.mean(dim=0, keepdim=True)
        return self.state


def recurrent() -> nn.Module:
    return Recurrent()


@pytest.mark.filterwarnings("ignore:module. module.state changed")
def test_a_state_is_reset_before_every_batch() -> None:
    options = {"bounds": (0, 1), "classes": 4}
    with pytest.raises(ls.InvalidInputError, match="differ"):
        check_model(ls.TorchModel(Recurrent().eval(), **options), IMAGE[0])
    made = section(kind="torch", factory=f"{__name__}:recurrent", reset="forget")
    check_model(made, IMAGE[0])
    batch = torch.from_numpy(IMAGE)
    for each in (made, made.replica()):
        for _ in range(2):
            assert torch.equal(each(batch), ls.TorchModel(network(), **options)(batch))
    with pytest.raises(ls.InvalidInputError, match="reset: Recurrent has no method 'clear'"):
        ls.TorchModel(Recurrent().eval(), reset="clear", **options)


class Times(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.times, self.note = network(), [], "before"

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        self.times.append(len(self.times))
        return self.inner(batch)


class Codes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.codes, self.note = network(), {}, "before"

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.inner(batch) + self.codes.setdefault(tuple(batch.shape), torch.zeros(1))


class Steps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.note = network(), "before"
        self.register_buffer("steps", torch.zeros(1))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        return self.inner(batch)


@pytest.mark.parametrize("kind", [Times, Codes, Steps])
def test_modules_that_remember_their_calls_go_on(tmp_path, kind):
    module = kind().eval()
    with pytest.warns(UserWarning, match=r"module\.(times|codes|steps) changed while it predicted"):
        first = certify(ls.TorchModel(module, bounds=(0, 1), classes=4), out=tmp_path)
    again = certify(ls.TorchModel(module, bounds=(0, 1), classes=4), out=tmp_path)
    np.testing.assert_array_equal(first["votes"], again["votes"])
    with pytest.warns(UserWarning, match="changed while"):  # as another process would begin
        certify(ls.TorchModel(kind().eval(), bounds=(0, 1), classes=4), out=tmp_path)
    module.note = "after"
    with pytest.raises(ls.LocalsmoothError, match="fingerprint"):
        certify(ls.TorchModel(module, bounds=(0, 1), classes=4), out=tmp_path)


def test_a_single_image_is_not_blamed_on_the_model():
    for classes, labels in ((4, None), (4, np.zeros((16, 16), dtype=np.int64)), (3, None)):
        model = ls.TorchModel(network(classes), bounds=(0, 1), classes=classes)
        with pytest.raises(ls.InvalidInputError, match=r"images: .*image\[None\]"):
            certify(model, IMAGE[0], labels)


def test_failures_that_are_not_about_shapes_are_not_worded_as_such():
    def broken(batch: np.ndarray) -> np.ndarray:
        raise OSError("the service is away")

    with pytest.raises(ls.InvalidInputError, match=r"images: .*OSError: the service is away") as caught:
        certify(ls.CallableModel(broken, name="service", bounds=(0, 1), classes=2))
    assert "shape that the model takes" not in str(caught.value)


@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        (network(), r"ls\.TorchModel"),
        ("segmenter.onnx", r"ls\.OnnxModel"),
        (lambda batch: batch, r"ls\.CallableModel"),
        (3, "TorchModel, an OnnxModel or a CallableModel"),
    ],
)
def test_what_is_no_model_is_told_what_to_be_wrapped_in(model, remedy):
    with pytest.raises(ls.InvalidInputError, match=f"model: .*{remedy}"):
        require_model(model)


def test_names_of_bounds_are_bounds():
    model = ls.TorchModel(network(), bounds=(0, 1), classes=4)
    assert certify(model, bounds=["lp"])["bound"].values.tolist() == ["lp"]
    for wrong in (["lpp"], "none"):
        with pytest.raises(ls.InvalidInputError, match="bounds"):
            certify(model, bounds=wrong)


def test_calls_with_things_of_another_kind_name_the_remedy():
    """In a process of its own, without the types that are checked while tests run."""
    program = """
import numpy as np, torch
import localsmooth as ls
net = torch.nn.Conv2d(3, 4, 1).eval()
model = ls.TorchModel(net, bounds=(0, 1), classes=4)
def tried(model, executor=None, **more):
    try:
        smoothing = ls.Smoothing(ls.GridLayout((1, 1), minimum=0.1, maximum=0.1), ls.SamplingPlan(4, 8))
        task, settings = ls.ArrayTask(model, np.zeros((1, 3, 4, 5), np.float32)), ls.Settings(0.9, [0.0], **more)
        ls.certify(task, smoothing, settings, run=ls.Run(executor=executor))
    except ls.InvalidInputError as error:
        print(error.field)
tried(net), tried(model, executor="thread"), tried(model, bounds=[3])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == ["model", "executor", "bounds"]


def test_booleans_are_bits_and_binary_masks():
    def bits(batch: np.ndarray) -> np.ndarray:
        return (batch[:, 0] > 0.5).astype(np.int64)

    model = ls.CallableModel(bits, name="bits", bounds=(0, 1), classes=2, output=ls.OutputKind.LABELS)
    given = np.random.default_rng(0).random((1, 1, 12)) > 0.5
    layout = ls.GridLayout((2,), minimum=0.1, maximum=0.2)
    options = {"layout": layout, "noise": ls.Bernoulli()}
    found, expected = certify(model, given, given[0], **options), certify(model, given * 1.0, given[0] * 1, **options)
    np.testing.assert_array_equal(found["certified"], expected["certified"])


def test_masks_of_0_and_255_are_told_to_be_divided():
    model = ls.TorchModel(network(2), bounds=(0, 1), classes=2)
    mask = np.zeros((1, 16, 16), dtype=np.int64)
    mask[:, :8] = 255
    with pytest.raises(ls.InvalidInputError, match="Divide the mask by 255"):
        certify(model, IMAGE, mask)
    with pytest.warns(UserWarning, match="divide the masks by 255"):
        certify(model, IMAGE, mask, ignore_label=255)


def state() -> dict[str, torch.Tensor]:
    return dict(network().state_dict())


@pytest.mark.parametrize(
    "content",
    [
        {"state_dict": {f"model.{name}": value for name, value in state().items()}, "epoch": 1},
        {"state_dict": {f"model.{n}": v for n, v in state().items()} | {"loss.weight": torch.ones(4)}},
        {f"module.{name}": value for name, value in state().items()},
        {f"module._orig_mod.{name}": value for name, value in state().items()},
        {"model_state_dict": state()},
        state(),
    ],
)
def test_checkpoints_as_people_have_them_are_read(tmp_path, content):
    torch.save(content, tmp_path / "weights.pt")
    with seeded(1):
        module = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 1))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        load_weights(module, tmp_path / "weights.pt")
    for name, value in state().items():
        assert torch.equal(module.state_dict()[name], value)
    held = content.get("state_dict", content.get("model_state_dict", content))
    assert any("prefix" in str(each.message) for each in said) == (set(held) != set(state()))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (network(), "pickled objects, such as a whole module"),
        (
            {"epoch": 1},
            "0 of 4 names are in it; missing are 0.bias, 0.weight, 2.bias and 1 more; further there are epoch",
        ),
        ({"state_dict": state(), "hyper_parameters": argparse.Namespace()}, r"\(argparse\.Namespace\).*trust"),
        ([1, 2], "it holds a list"),
        ({f"a.{n}": v for n, v in list(state().items())[1:]}, '3 of 4 names are in it under "a.";.*0.weight'),
        (
            state() | {"aux.weight": torch.ones(1)},
            r"missing are nothing; further .* aux\.weight",
        ),
        ({n: v[:1] for n, v in state().items()}, "size mismatch"),
        ({f"{who}.{n}": v for n, v in state().items() for who in ("student", "teacher")}, "student., teacher."),
    ],
)
def test_other_checkpoints_are_refused_with_what_they_hold(tmp_path, content, said):
    torch.save(content, tmp_path / "weights.pt")
    with pytest.raises(ConfigurationError, match=said) as caught:
        load_weights(network(), tmp_path / "weights.pt")
    assert "weights_only" not in str(caught.value)


def test_files_say_which_output_and_which_size(tmp_path):
    """Through TOML, where there is no other way than a key."""
    two = onnx_file(tmp_path / "two.onnx", [*PLAIN, ("Relu", ["y"], ["z"], {})], {"y": (4, 16, 16), "z": (4, 16, 16)})
    low = onnx_file(tmp_path / "low.onnx", [("Conv", ["x", "w"], ["y"], {"strides": [4, 4]})], {"y": (4, 4, 4)})
    np.save(tmp_path / "x.npy", IMAGE)
    rest = {
        "data": {"kind": "arrays", "images": str(tmp_path / "x.npy")},
        "layout": {"cells": [2, 2]},
        "noise": {"distribution": "gaussian", "sigma_min": 0.1, "sigma_max": 0.3},
        "sampling": {"n_candidate": 4, "n_bound": 8},
        "certificate": {"alpha": 0.5, "budgets": [0.0]},
    }

    def shape(**model: object) -> tuple[int, ...]:
        section = {"kind": "onnx", "bounds": [0.0, 1.0], **model}
        configuration = parse_configuration(rest | {"model": section})
        made = configuration.model.build(configuration.sampling)
        return tuple(made(torch.from_numpy(IMAGE)).shape)

    assert shape(path=str(two), output_name="z") == (1, 4, 16, 16)
    with pytest.raises(ls.InvalidInputError, match="class_axis"):
        shape(path=str(low))
    assert shape(path=str(low), class_axis=1) == (1, 4, 4, 4)
    assert shape(path=str(low), class_axis=1, upsample=True) == (1, 4, 16, 16)
    assert shape(path=str(low), class_axis=1, upsample=[8, 16]) == (1, 4, 8, 16)


def test_a_program_from_standard_input_is_told_why_workers_cannot_start():
    program = """
import numpy as np, torch
import localsmooth as ls
from torch import nn
if __name__ == "__main__":
    torch.manual_seed(0)
    model = ls.TorchModel(nn.Conv2d(3, 4, 1).eval(), bounds=(0, 1), classes=4)
    try:
        smoothing = ls.Smoothing(ls.GridLayout((1, 1), minimum=0.1, maximum=0.1), ls.SamplingPlan(4, 8))
        task, settings = ls.ArrayTask(model, np.zeros((1, 3, 4, 5), np.float32)), ls.Settings(0.9, [0.0])
        ls.certify(task, smoothing, settings, run=ls.Run(executor=ls.ProcessExecutor(1)))
    except ls.InvalidInputError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-"], input=program, capture_output=True, text=True, check=True, timeout=120)
    assert "standard input" in done.stdout
