"""What changes a model's fingerprint, beside the weights and the options that the adapters' own tests change."""

from __future__ import annotations

import functools
import io
import subprocess
import sys
import types
import warnings
import zipfile

import numpy as np
import onnx
import pytest
import torch
from compiled_networks import ByClass, ByFunction, ByObject, Scale
from networks import pointwise, pointwise_onnx
from tests.seeding import seeded
from torch import nn

from localsmooth.models import CallableModel, OnnxModel, TorchModel, check_model
from localsmooth.models.fingerprint import describe

CUT = 0.5


class Cut(nn.Module):
    """Has numbers and text that are no buffers."""

    def __init__(self, threshold=0.5, ends=(0.0, 1.0), mode="above", tensor=0.0):
        super().__init__()
        self.inner = pointwise()
        self.threshold = threshold
        self.ends = ends
        self.mode = mode
        self.settings = types.SimpleNamespace(threshold=threshold)
        self.hidden = torch.tensor(tensor)

    def forward(self, x):
        return self.inner(x) * (x[:, :1] > self.threshold)


def of(module, **arguments):
    return TorchModel(module.eval(), bounds=(0, 1), classes=3, **arguments).fingerprint()


def of_function(function):
    return CallableModel(function, name="same", bounds=(0, 1), classes=3).fingerprint()


class Selecting:
    def __init__(self, key):
        self.key = key

    def __call__(self, outputs):
        return outputs[self.key]


def selecting(key):
    return lambda outputs: outputs[key]


def with_default(key):
    def select(outputs, key=key):
        return outputs[key]

    return select


def by_keyword(key):
    def select(outputs, *, key=key):
        return outputs[key]

    return select


def partially(key):
    return functools.partial(lambda key, outputs: outputs[key], key)


def method(key):
    return Selecting(key).__call__


WAYS = [selecting, with_default, by_keyword, partially, Selecting, method]


class TestModules:
    def test_equal_modules(self):
        assert of(Cut()) == of(Cut())

    @pytest.mark.parametrize(
        "change", [{"threshold": 0.6}, {"ends": (0.0, 2.0)}, {"mode": "below"}, {"tensor": 1.0}, {"ends": [0.0, 1.0]}]
    )
    def test_attributes(self, change):
        assert of(Cut()) != of(Cut(**change))

    def test_attributes_of_parts(self):
        assert of(nn.Sequential(Cut())) != of(nn.Sequential(Cut(threshold=0.6)))

    def test_hooks(self):
        plain, doubled, tripled, before = (Cut() for _ in range(4))
        doubled.inner.register_forward_hook(lambda *a: 2 * a[-1])
        tripled.inner.register_forward_hook(lambda *a: 3 * a[-1])
        before.inner.register_forward_pre_hook(lambda *a: a[-1])
        assert len({of(m) for m in (plain, doubled, tripled, before)}) == 4

    def test_code_of_a_class(self, tmp_path, monkeypatch):
        monkeypatch.syspath_prepend(tmp_path)
        made = []
        for number, helper in enumerate(("2 * x", "3 * x")):
            folder = tmp_path / str(number)
            folder.mkdir()
            (folder / "network.py").write_text(
                "from torch import nn\n\n\nclass Network(nn.Module):\n    def forward(self, x):\n"
                f"        return self.helper(x)\n\n    def helper(self, x):\n        return {helper}\n"
            )
            monkeypatch.syspath_prepend(folder)
            sys.modules.pop("network", None)
            import network

            made.append(of(network.Network()))
        sys.modules.pop("network", None)
        assert made[0] != made[1]

    def test_a_forward_put_on_the_module_or_its_class(self, monkeypatch):
        plain = of(Cut())
        changed = Cut()
        changed.forward = lambda x: changed.inner(x)
        assert of(changed) != plain
        monkeypatch.setattr(Cut, "forward", lambda self, x: self.inner(x))
        assert of(Cut()) != plain

    @pytest.mark.parametrize("way", WAYS)
    def test_select(self, way):
        assert of(Cut(), select=way("a")) == of(Cut(), select=way("a"))
        assert of(Cut(), select=way("a")) != of(Cut(), select=way("b"))


class TestFunctions:
    @pytest.mark.parametrize("way", WAYS)
    def test_what_they_hold(self, way):
        assert of_function(way("a")) == of_function(way("a"))
        assert of_function(way("a")) != of_function(way("b"))

    @pytest.mark.parametrize("values", [(np.zeros(3), np.ones(3)), (torch.zeros(3), torch.ones(3)), ([1], [2])])
    def test_enclosed_arrays(self, values):
        assert of_function(selecting(values[0])) != of_function(selecting(values[1]))

    def test_enclosed_networks(self):
        made = [of_function(selecting(pointwise(seed=seed))) for seed in (0, 0, 1)]
        assert made[0] == made[1] != made[2]

    def test_global_variables_and_functions(self, monkeypatch):
        def helper(x):
            return x > CUT

        def changed(x):
            return x >= CUT

        plain = of_function(helper)
        monkeypatch.setattr(sys.modules[__name__], "CUT", 0.6)
        assert of_function(helper) != plain
        monkeypatch.setitem(globals(), "called", helper)
        function = lambda x: called(x)  # noqa: E731
        through = of_function(function)
        monkeypatch.setitem(globals(), "called", changed)
        assert of_function(function) != through

    def test_recursion_and_cycles(self):
        def recursive(x):
            return recursive(x)

        ring = []
        ring.append(ring)
        assert describe(recursive) == describe(recursive)
        assert describe(ring) == describe(ring)

    def test_shared_and_equal_objects_are_described_alike(self):
        shared = (1, 2)
        assert describe([shared, shared]) == describe([(1, 2), tuple(range(1, 3))])

    def test_decorated_functions(self):
        assert describe(functools.lru_cache(selecting("a"))) != describe(functools.lru_cache(selecting("b")))

    def test_the_same_in_every_process(self):
        code = (
            "import sys; sys.path.insert(0, sys.argv[1])\n"
            "from test_fingerprint import Cut, of, of_function, selecting\n"
            "print(of(Cut()), of_function(selecting({'b', 'a', 'c', 'd'})), "
            "of_function(lambda x: x in {'p', 'q', 'r', 's'}))"
        )
        folder = str(__import__("pathlib").Path(__file__).parent)
        runs = [subprocess.run([sys.executable, "-c", code, folder], capture_output=True, check=True) for _ in range(2)]
        assert runs[0].stdout == runs[1].stdout
        assert len(runs[0].stdout.split()) == 3


def test_weights_in_folders_below_an_onnx_file(tmp_path):
    weight, bias = np.zeros((3, 2, 1, 1), np.float32), np.arange(3, dtype=np.float32)
    path = pointwise_onnx(tmp_path / "m.onnx", weight, bias, shape=(None, 2, None, None))
    network = onnx.load(path)
    folder = tmp_path / ("deep" * 40) / "weights"
    folder.mkdir(parents=True)
    location = f"{'deep' * 40}/weights/m.data"  # longer than 127 bytes: the length takes two bytes
    onnx.save(network, path, save_as_external_data=True, location=location, size_threshold=0)
    before = OnnxModel(path, bounds=(0, 1))
    x = torch.ones(1, 2, 3, 4)
    prediction, fingerprint = before(x), before.fingerprint()
    (np.fromfile(folder / "m.data", np.float32) + 1).tofile(folder / "m.data")
    after = OnnxModel(path, bounds=(0, 1))
    assert not torch.equal(after(x), prediction)
    assert after.fingerprint() != fingerprint


class Scripted(nn.Module):
    """Compiles to the same structure, whatever it multiplies by."""

    def __init__(self, factor: float, shift: float) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, 2, 1)
        self.factor = factor
        self.plain = torch.tensor(shift)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.convolution(batch) * self.factor + self.plain


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("traced", [False, True])
def test_compiled_modules_are_known_by_their_code_before_and_after_the_first_call(traced: bool, frozen: bool) -> None:
    def model(factor: float, shift: float) -> TorchModel:
        with seeded(0), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch advises against it
            module = Scripted(factor, shift).eval()
            made = torch.jit.trace(module, torch.zeros(1, 1, 4, 4)) if traced else torch.jit.script(module)
            made = torch.jit.freeze(made) if frozen else made
            kept = io.BytesIO()
            torch.jit.save(made, kept)
            kept.seek(0)
            return TorchModel(torch.jit.load(kept), bounds=(0, 1), classes=2)

    one = model(2.0, 1.0)
    before = one.fingerprint()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_model(one, torch.full((1, 4, 4), 0.5))
    again, other, shifted = model(2.0, 1.0), model(3.0, 1.0), model(2.0, 5.0)
    assert one.fingerprint() == before == again.fingerprint()
    assert len({before, other.fingerprint(), shifted.fingerprint()}) == 3


@pytest.mark.parametrize("kind", [ByClass, ByFunction, ByObject])
def test_compiled_modules_are_known_by_the_code_of_the_functions_and_classes_they_use(kind: type[nn.Module]) -> None:
    kept = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch advises against it
        torch.jit.script(Scale)
        torch.jit.save(torch.jit.script(kind().eval()), kept)

    def model(base: str) -> TorchModel:
        """The same file, with another number in the code of the class."""
        made = io.BytesIO()
        with zipfile.ZipFile(kept) as old, zipfile.ZipFile(made, "w") as new:
            for name in old.namelist():
                new.writestr(name, old.read(name).replace(b"2.,", base.encode()))
        made.seek(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return TorchModel(torch.jit.load(made), bounds=(0, 1), classes=2)

    one, again, other = model("2.,"), model("2.,"), model("3.,")
    batch = torch.ones(1, 2, 3, 3)
    before = one.fingerprint()
    assert not torch.equal(one.module(batch), other.module(batch))
    assert one.fingerprint() == before == again.fingerprint()
    assert other.fingerprint() != before
