from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from networks import local, pointwise
from tests.seeding import seeded
from torch import nn
from torch.nn import functional

from localsmooth.errors import InvalidInputError
from localsmooth.models import OutputKind, Preprocessing, TorchModel
from localsmooth.noise import Gaussian, Randomness


class Wrapped(nn.Module):
    """Returns what `form` makes of the inner module's output."""

    def __init__(self, inner, form):
        super().__init__()
        self.inner = inner
        self.form = form

    def forward(self, x):
        return self.form(self.inner(x))


@dataclass
class HuggingFaceOutput:
    logits: torch.Tensor
    loss: None = None


class MappingOutput(OrderedDict):
    """Like the output objects of Hugging Face: a mapping whose entries are attributes too."""

    @property
    def logits(self):
        return self["logits"]


def batch(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


class TestOutputs:
    def test_tensor(self):
        module, x = local(), batch(4, 2, 6, 7)
        made = TorchModel(module, bounds=(0, 1), classes=3)(x)
        torch.testing.assert_close(made, module(x))
        assert not made.requires_grad

    def test_torchvision_mapping(self):
        module, x = local(), batch(2, 2, 6, 7)
        wrapped = Wrapped(module, lambda s: OrderedDict(aux=s * 0, out=s)).eval()
        made = TorchModel(wrapped, bounds=(0, 1), classes=3)(x)
        torch.testing.assert_close(made, module(x))

    @pytest.mark.parametrize(
        "form", [HuggingFaceOutput, lambda s: MappingOutput(logits=s), lambda s: {"loss": None, "logits": s}]
    )
    def test_low_resolution_logits_are_upsampled_to_the_input(self, form):
        coarse = nn.Sequential(nn.AvgPool2d(4), pointwise())
        x = batch(2, 2, 16, 24)
        made = TorchModel(Wrapped(coarse, form).eval(), bounds=(0, 1), classes=3)(x)
        expected = functional.interpolate(coarse(x), size=(16, 24), mode="bilinear", align_corners=False)
        torch.testing.assert_close(made, expected)

    def test_logits_without_spatial_axes_stay(self):
        with seeded(0):
            head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 5))
        made = TorchModel(Wrapped(head, HuggingFaceOutput).eval(), bounds=(0, 1), classes=5)(batch(3, 2, 8, 8))
        assert made.shape == (3, 5)

    def test_upsampling_can_be_asked_for_and_refused(self):
        coarse = nn.Sequential(nn.AvgPool2d(4), pointwise()).eval()
        x = batch(2, 2, 16, 24)
        assert TorchModel(coarse, bounds=(0, 1), classes=3)(x).shape == (2, 3, 4, 6)
        assert TorchModel(coarse, bounds=(0, 1), classes=3, upsample=True)(x).shape == (2, 3, 16, 24)
        assert TorchModel(coarse, bounds=(0, 1), classes=3, upsample=(8, 9))(x).shape == (2, 3, 8, 9)
        wrapped = Wrapped(coarse, HuggingFaceOutput).eval()
        assert TorchModel(wrapped, bounds=(0, 1), classes=3, upsample=False)(x).shape == (2, 3, 4, 6)

    @pytest.mark.parametrize(("axes", "mode"), [(1, "linear"), (3, "trilinear")])
    def test_upsampling_of_signals_and_volumes(self, axes, mode):
        pool = {1: nn.AvgPool1d(2), 3: nn.AvgPool3d(2)}[axes]
        x = batch(2, 2, *[6] * axes)
        made = TorchModel(pool.eval(), bounds=(0, 1), classes=2, upsample=True)(x)
        torch.testing.assert_close(made, functional.interpolate(pool(x), size=(6,) * axes, mode=mode))

    def test_upsampling_precedes_the_threshold(self):
        coarse = nn.Sequential(nn.AvgPool2d(4), pointwise(classes=1)).eval()
        x = batch(2, 2, 16, 24)
        middle = coarse(x).median().item()
        made = TorchModel(coarse, bounds=(0, 1), threshold=middle, upsample=True)(x)
        expected = functional.interpolate(coarse(x), size=(16, 24), mode="bilinear") > middle
        assert torch.equal(made.bool(), expected[:, 0])
        assert 0.1 < made.float().mean() < 0.9

    def test_select(self):
        module, x = pointwise(), batch(2, 2, 4, 4)
        wrapped = Wrapped(module, lambda s: {"heads": [s * 0, s]}).eval()
        made = TorchModel(wrapped, bounds=(0, 1), classes=3, select=lambda o: o["heads"][1])(x)
        torch.testing.assert_close(made, module(x))

    def test_unknown_output_names_the_remedy(self):
        wrapped = Wrapped(pointwise(), lambda s: {"prediction": s}).eval()
        with pytest.raises(InvalidInputError, match=r"prediction.*select"):
            TorchModel(wrapped, bounds=(0, 1), classes=3)(batch(1, 2, 4, 4))

    def test_classes_from_the_configuration(self):
        module = pointwise()
        module.config = type("Configuration", (), {"num_labels": 3})()
        assert TorchModel(module, bounds=(0, 1)).classes == 3

    def test_labels(self):
        module = Wrapped(pointwise(), lambda s: s.argmax(1)).eval()
        x = batch(2, 2, 4, 5)
        made = TorchModel(module, bounds=(0, 1), classes=3, output=OutputKind.LABELS)(x)
        assert torch.equal(made, module(x))


class TestThreshold:
    def test_probability_map(self):
        module = nn.Sequential(pointwise(classes=1), nn.Sigmoid()).eval()
        x = batch(4, 2, 8, 8)
        limit = module(x).median().item()
        model = TorchModel(module, bounds=(0, 1), threshold=limit)
        assert (model.output, model.classes) == (OutputKind.LABELS, 2)
        made = model(x)
        assert made.shape == (4, 8, 8)
        assert torch.equal(made.bool(), module(x)[:, 0] > limit)
        assert 0.4 < made.float().mean() < 0.6

    def test_nan_is_not_background(self):
        module = Wrapped(pointwise(classes=1), lambda s: torch.where(s > s.median(), torch.nan, s)).eval()
        with pytest.raises(InvalidInputError, match="NaN"):
            TorchModel(module, bounds=(0, 1), threshold=0.5)(batch(1, 2, 4, 4))

    def test_several_channels_are_refused(self):
        with pytest.raises(InvalidInputError, match="threshold"):
            TorchModel(pointwise(), bounds=(0, 1), threshold=0.5)(batch(1, 2, 4, 4))


class TestPreprocessing:
    def test_normalisation_is_inside(self):
        module, x = local(), batch(3, 2, 6, 7)
        mean, deviation = (0.4, 0.5), (0.2, 0.3)
        made = TorchModel(module, bounds=(0, 1), classes=3, preprocessing=Preprocessing(mean, deviation))(x)
        by_hand = torch.stack([(x[:, c] - mean[c]) / deviation[c] for c in range(2)], dim=1)
        torch.testing.assert_close(made, module(by_hand))

    def test_noise_is_added_before_normalisation(self):
        # σ in the declared units reaches the network as σ / deviation.
        seen = []
        module = Wrapped(nn.Identity(), lambda s: seen.append(s) or s).eval()
        model = TorchModel(module, bounds=(0, 255), classes=2, preprocessing=Preprocessing(127.5, 63.75))
        item = torch.full((2, 40, 40), 127.5)
        noisy = torch.empty(8, *item.shape)
        prepared = Gaussian().prepare(item, np.full((40, 40), 51.0), model.bounds, model.hidden_value)
        prepared.draw(noisy, Randomness(0, (0,)))
        model(noisy)
        assert seen[0].std().item() == pytest.approx(51.0 / 63.75, rel=0.02)

    @pytest.mark.parametrize("normalise", [None, (0.5, 0.25)])
    def test_a_clamped_model_never_sees_values_outside_its_bounds(self, normalise):
        seen = []
        module = Wrapped(nn.Identity(), lambda s: seen.append(s) or s).eval()
        model = TorchModel(
            module, bounds=(0, 1), classes=2, preprocessing=Preprocessing(*(normalise or ()), pad_multiple=8)
        )
        item = batch(2, 10, 10)
        noisy = torch.empty(8, *item.shape)
        prepared = Gaussian(clamp=True).prepare(item, np.full((10, 10), 2.0), model.bounds, model.hidden_value)
        prepared.draw(noisy, Randomness(0, (0,)))
        model(noisy)
        low, high = (0.0, 1.0) if normalise is None else (-2.0, 2.0)
        assert seen[0].min().item() == low
        assert seen[0].max().item() == high

    def test_the_batch_is_not_modified(self):
        x = batch(2, 2, 5, 6)
        before = x.clone()
        TorchModel(local(), bounds=(0, 1), classes=3, preprocessing=Preprocessing(0.5, 0.5, pad_multiple=4))(x)
        assert torch.equal(x, before)

    @pytest.mark.parametrize("value", [None, 0.3])
    def test_padding_is_cropped_off(self, value):
        seen = []
        module = Wrapped(pointwise(), lambda s: seen.append(s.shape) or s).eval()
        x = batch(2, 2, 13, 21)
        made = TorchModel(
            module, bounds=(0, 1), classes=3, preprocessing=Preprocessing(pad_multiple=8, pad_value=value)
        )(x)
        assert seen == [(2, 3, 16, 24)]
        torch.testing.assert_close(made, pointwise()(x))

    def test_padding_by_reflection_equals_torch(self):
        module, x = local(), batch(2, 2, 13, 21)
        made = TorchModel(module, bounds=(0, 1), classes=3, preprocessing=Preprocessing(pad_multiple=8))(x)
        padded = functional.pad(x, (0, 3, 0, 3), mode="reflect")
        torch.testing.assert_close(made, module(padded)[..., :13, :21])

    def test_padding_by_a_constant_in_declared_units(self):
        module, x = local(), batch(2, 2, 13, 21)
        model = TorchModel(
            module, bounds=(0, 1), classes=3, preprocessing=Preprocessing(0.25, 0.5, pad_multiple=8, pad_value=0.5)
        )
        padded = functional.pad(x, (0, 3, 0, 3), value=0.5)
        torch.testing.assert_close(model(x), module((padded - 0.25) / 0.5)[..., :13, :21])

    def test_outputs_far_from_the_padding_do_not_depend_on_it(self):
        module, x = local(), batch(2, 2, 13, 21)
        made = TorchModel(module, bounds=(0, 1), classes=3, preprocessing=Preprocessing(pad_multiple=8))(x)
        torch.testing.assert_close(made[..., :11, :19], module(x)[..., :11, :19])

    def test_padding_wider_than_the_crop(self):
        made = TorchModel(pointwise(), bounds=(0, 1), classes=3, preprocessing=Preprocessing(pad_multiple=32))(
            batch(1, 2, 3, 1)
        )
        torch.testing.assert_close(made, pointwise()(batch(1, 2, 3, 1)))

    def test_padding_with_an_output_stride(self):
        coarse = nn.Sequential(nn.AvgPool2d(4), pointwise()).eval()
        x = batch(2, 2, 20, 24)
        model = TorchModel(coarse, bounds=(0, 1), classes=3, preprocessing=Preprocessing(pad_multiple=16))
        torch.testing.assert_close(model(x), coarse(x))
        with pytest.raises(InvalidInputError, match="cropped back"):
            model(batch(2, 2, 18, 24))

    def test_padding_of_labels(self):
        module = Wrapped(pointwise(), lambda s: s.argmax(1)).eval()
        x = batch(2, 2, 5, 7)
        made = TorchModel(
            module, bounds=(0, 1), classes=3, output=OutputKind.LABELS, preprocessing=Preprocessing(pad_multiple=4)
        )(x)
        assert torch.equal(made, module(x))

    def test_padding_with_upsampling(self):
        coarse = nn.Sequential(nn.AvgPool2d(4), pointwise()).eval()
        x = batch(2, 2, 13, 21)
        made = TorchModel(coarse, bounds=(0, 1), classes=3, preprocessing=Preprocessing(pad_multiple=8), upsample=True)(
            x
        )
        padded = functional.pad(x, (0, 3, 0, 3), mode="reflect")
        expected = functional.interpolate(coarse(padded), size=(16, 24), mode="bilinear")[..., :13, :21]
        torch.testing.assert_close(made, expected)

    def test_crops_of_other_sizes(self):
        model = TorchModel(pointwise(), bounds=(0, 1), classes=3, preprocessing=Preprocessing(0.5, 0.5, pad_multiple=4))
        x = batch(2, 2, 16, 16)
        torch.testing.assert_close(model(x)[..., 4:11, 2:9], model(x[..., 4:11, 2:9]))

    def test_double_precision_batches_reach_a_single_precision_module(self):
        x = batch(2, 2, 4, 4)
        model = TorchModel(local(), bounds=(0, 1), classes=3)
        torch.testing.assert_close(model(x.double()), model(x))

    @pytest.mark.parametrize(
        ("field", "arguments"),
        [
            ("bounds", {"bounds": (1, 0)}),
            ("bounds", {"bounds": (0, float("nan"))}),
            ("classes", {"classes": None}),
            ("classes", {"classes": 1}),
            ("classes", {"threshold": 0.5}),
            ("threshold", {"threshold": float("nan"), "classes": 2}),
            ("upsample", {"upsample": True, "output": OutputKind.LABELS}),
            ("upsample", {"upsample": (4, 4), "preprocessing": Preprocessing(pad_multiple=2)}),
            ("precision", {"precision": torch.float64}),
        ],
    )
    def test_bad_arguments_name_themselves(self, field, arguments):
        with pytest.raises(InvalidInputError) as caught:
            TorchModel(pointwise(), **{"bounds": (0, 1), "classes": 3, **arguments})
        assert caught.value.field == field

    def test_a_wrong_number_of_channels_names_the_normalisation(self):
        model = TorchModel(pointwise(), bounds=(0, 1), classes=3, preprocessing=Preprocessing((0.5,) * 3, (0.5,) * 3))
        with pytest.raises(InvalidInputError, match="3 numbers"):
            model(batch(1, 2, 4, 4))


class TestTrainingMode:
    def test_refused(self):
        with pytest.raises(InvalidInputError, match=r"module: .*training mode.*module\.eval\(\)"):
            TorchModel(local().train(), bounds=(0, 1), classes=3)

    @pytest.mark.parametrize("part", [nn.BatchNorm2d(2), nn.Dropout(0.1), nn.InstanceNorm2d(2)])
    def test_a_part_in_training_mode_is_refused_by_name(self, part):
        module = nn.Sequential(part, pointwise()).eval()
        part.train()
        with pytest.raises(InvalidInputError, match=f"part 0 .{type(part).__name__}."):
            TorchModel(module, bounds=(0, 1), classes=3)

    def test_switching_back_to_training_later_is_noticed(self):
        module = local()
        model = TorchModel(module, bounds=(0, 1), classes=3)
        module.train()
        with pytest.raises(InvalidInputError, match="training mode"):
            model(batch(2, 2, 4, 4))

    def test_a_part_that_is_replaced_later_is_noticed(self):
        module = nn.Sequential(nn.Dropout(0.5), pointwise()).eval()
        model = TorchModel(module, bounds=(0, 1), classes=3)
        module[0] = nn.Dropout(0.5)
        with pytest.raises(InvalidInputError, match=r"part 0 .Dropout."):
            model(batch(2, 2, 4, 4))


class TestWorkingPrecision:
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.float32])
    def test_of_the_module(self, dtype):
        model = TorchModel(pointwise().to(dtype), bounds=(0, 1), classes=3)
        assert f"torch.{model.evaluated_in}" == str(dtype)

    def test_the_coarsest_part_counts(self):
        with seeded(0):
            module = nn.Sequential(nn.Conv2d(2, 2, 1), pointwise().bfloat16(), nn.Conv2d(3, 3, 1)).eval()
        assert TorchModel(module, bounds=(0, 1), classes=3).evaluated_in == "bfloat16"

    def test_of_autocast(self):
        model = TorchModel(pointwise(), bounds=(0, 1), classes=3, precision=torch.bfloat16)
        assert model.evaluated_in == "bfloat16"

    def test_without_weights(self):
        assert TorchModel(nn.Identity().eval(), bounds=(0, 1), classes=2).evaluated_in == "float32"


class TestOptions:
    def test_channels_last_reaches_the_module_and_changes_rounding_only(self):
        seen = []
        inner = local()
        module = Wrapped(
            nn.Identity(), lambda s: seen.append(s.is_contiguous(memory_format=torch.channels_last)) or inner(s)
        )
        model = TorchModel(module.eval(), bounds=(0, 1), classes=3)
        x = batch(2, 2, 6, 7)
        torch.testing.assert_close(model(x), model.with_options(channels_last=True)(x))
        assert seen == [False, True]

    def test_channels_last_leaves_signals_alone(self):
        with seeded(0):
            model = TorchModel(nn.Conv1d(2, 3, 1).eval(), bounds=(0, 1), classes=3, channels_last=True)
        assert model(batch(2, 2, 9)).shape == (2, 3, 9)

    def test_autocast(self):
        model = TorchModel(local(), bounds=(0, 1), classes=3)
        half = model.with_options(precision=torch.bfloat16)
        x = batch(2, 2, 6, 7)
        assert half(x).dtype == torch.bfloat16
        torch.testing.assert_close(half(x).float(), model(x), atol=0.05, rtol=0.05)
        assert half.with_options(precision=None)(x).dtype == torch.float32
        assert half.with_options(channels_last=True).precision == torch.bfloat16

    def test_compile_is_used_once_for_all_batches(self, monkeypatch):
        calls = []
        monkeypatch.setattr(torch, "compile", lambda module: calls.append(module) or module)
        model = TorchModel(local(), bounds=(0, 1), classes=3)
        compiled = model.with_options(compile=True)
        x = batch(2, 2, 6, 7)
        for _ in range(2):
            torch.testing.assert_close(compiled(x), model(x))
        assert calls == [model.module]

    @pytest.mark.long
    def test_compiled_predictions(self):
        model = TorchModel(local(), bounds=(0, 1), classes=3)
        x = batch(2, 2, 6, 7)
        torch.testing.assert_close(model.with_options(compile=True)(x), model(x), atol=1e-5, rtol=1e-4)

    def test_travels_to_another_process(self):
        model = TorchModel(local(), bounds=(0, 1), classes=3, preprocessing=Preprocessing(0.5, 0.5))
        x = batch(2, 2, 6, 7)
        moved = pickle.loads(pickle.dumps(model))  # noqa: S301 (our own bytes)
        assert torch.equal(moved(x), model(x))
        assert moved.fingerprint() == model.fingerprint()


class TestFingerprint:
    def test_the_same_for_equal_models(self):
        models = [TorchModel(local(), bounds=(0, 1), classes=3) for _ in range(2)]
        assert models[0].fingerprint() == models[1].fingerprint()

    def test_speed_does_not_count(self):
        model = TorchModel(local(), bounds=(0, 1), classes=3)
        assert model.fingerprint() == model.with_options(channels_last=True, compile=True).fingerprint()

    @pytest.mark.parametrize(
        "arguments",
        [
            {"bounds": (0, 2)},
            {"classes": 4},
            {"output": OutputKind.PROBABILITIES},
            {"preprocessing": Preprocessing(0.5, 0.5)},
            {"preprocessing": Preprocessing(pad_multiple=4)},
            {"preprocessing": Preprocessing(pad_multiple=4, pad_value=0.0)},
            {"threshold": 0.5, "classes": 2},
            {"upsample": True},
            {"precision": torch.bfloat16},
            {"select": lambda o: o["a"]},
            {"select": lambda o: o["b"]},
        ],
    )
    def test_every_option_counts(self, arguments):
        plain = {"bounds": (0, 1), "classes": 3}
        others = [plain, {**plain, "select": lambda o: o["c"]}]
        made = TorchModel(local(), **{**plain, **arguments}).fingerprint()
        assert made not in [TorchModel(local(), **other).fingerprint() for other in others]

    def test_every_weight_and_buffer_counts(self):
        module = local()
        module.register_buffer("hidden", torch.zeros(2), persistent=False)
        before = TorchModel(copy.deepcopy(module), bounds=(0, 1), classes=3).fingerprint()
        values = [*module.parameters(), *module.buffers()]
        seen = {before}
        for value in values:
            with torch.no_grad():
                value.view(-1)[-1] += 1
            seen.add(TorchModel(copy.deepcopy(module), bounds=(0, 1), classes=3).fingerprint())
        assert len(seen) == len(values) + 1

    def test_structure_counts(self):
        with seeded(0):
            modules = [nn.Conv2d(2, 3, 3, padding=p).eval() for p in (1, 2)]
        modules[1].load_state_dict(modules[0].state_dict())
        made = [TorchModel(m, bounds=(0, 1), classes=3).fingerprint() for m in modules]
        assert made[0] != made[1]

    def test_precisions_that_numpy_does_not_know(self):
        assert TorchModel(local().bfloat16(), bounds=(0, 1), classes=3).fingerprint()
