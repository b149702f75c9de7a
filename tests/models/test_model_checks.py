from __future__ import annotations

import threading
import warnings
from typing import ClassVar

import numpy as np
import pytest
import torch
from networks import local, pointwise, save
from onnx import TensorProto, helper, numpy_helper
from tests.seeding import seeded
from torch import nn
from torch.nn import functional

import localsmooth as ls
from localsmooth.errors import InvalidInputError
from localsmooth.models import CallableModel, Denoiser, OnnxModel, OutputKind, TorchModel, check_item, check_model
from localsmooth.models.checks import check_form

ITEM = torch.rand((2, 8, 9), generator=torch.Generator().manual_seed(1))


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def model(function, classes=3, output=OutputKind.LOGITS, bounds=(0, 1), **arguments):
    return TorchModel(Function(function).eval(), bounds=bounds, classes=classes, output=output, **arguments)


class TestGoodModels:
    def test_segmenter(self):
        made = check_model(TorchModel(local(), bounds=(0, 1), classes=3), ITEM)
        assert (made.classes, made.output_shape, made.output) == (3, (8, 9), OutputKind.LOGITS)

    def test_numpy_item_and_integers(self):
        model = TorchModel(local(), bounds=(0, 255), classes=3)
        assert check_model(model, (ITEM * 255).to(torch.uint8).numpy()).output_shape == (8, 9)

    def test_classifier_of_whole_items(self):
        with seeded(0):
            head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 5)).eval()
        assert check_model(TorchModel(head, bounds=(0, 1), classes=5), ITEM).output_shape == ()

    def test_probabilities_and_labels(self):
        inner = local()
        check_model(model(lambda x: inner(x).softmax(1), output=OutputKind.PROBABILITIES), ITEM)
        check_model(model(lambda x: inner(x).argmax(1), output=OutputKind.LABELS), ITEM)
        check_model(model(lambda x: inner(x)[:, :1], classes=None, threshold=0.0), ITEM)

    def test_half_precision(self):
        check_model(TorchModel(local(), bounds=(0, 1), classes=3, precision=torch.bfloat16), ITEM)

    def test_unbounded_inputs(self):
        check_model(TorchModel(local(), bounds=None, classes=3), 100 * ITEM)

    def test_normalisation_within_a_sample_is_no_mixing(self):
        norms = [nn.InstanceNorm2d(2), nn.GroupNorm(1, 2), nn.LayerNorm((2, 8, 9))]
        for norm in norms:
            check_model(TorchModel(nn.Sequential(norm, pointwise()).eval(), bounds=(0, 1), classes=3), ITEM)

    def test_a_class_that_is_ruled_out(self):
        inner = local()
        ruled = torch.tensor([0.0, -torch.inf, 0.0]).reshape(3, 1, 1)
        check_model(model(lambda x: inner(x) + ruled), ITEM)


class KeepsItsFirstInput(nn.Module):
    """Embeds once, and adds that to whatever it predicts later."""

    def __init__(self, share: float = 1.0, lock: object = None) -> None:
        super().__init__()
        self.share, self.lock, self.kept, self.inner = share, lock, None, local()

    def forget(self) -> None:
        self.kept = None

    def forward(self, x):
        if self.kept is None:
            self.kept = self.inner(x[:1])
        return self.inner(x) + self.share * self.kept


@pytest.mark.filterwarnings("ignore:module. module.kept changed")
class TestMemory:
    @pytest.mark.parametrize("share", [1.0, 0.01])
    @pytest.mark.parametrize("check", [check_model, check_form])
    def test_of_the_first_input_is_refused(self, check, share):
        keeps = TorchModel(KeepsItsFirstInput(share).eval(), bounds=(0, 1), classes=3)
        with pytest.raises(InvalidInputError, match="once it was shown another one before"):
            check(keeps, ITEM)

    def test_in_a_denoiser(self):
        module = KeepsItsFirstInput()
        module.inner = nn.Identity()
        keeps = TorchModel(pointwise(), bounds=(0, 1), classes=3, denoiser=Denoiser(module.eval()))
        with pytest.raises(InvalidInputError, match="once it was shown another one before"):
            check_model(keeps, ITEM)

    def test_that_is_reset_is_none(self):
        # Within a batch it still is: each sample is told apart by being alone.
        check_form(TorchModel(KeepsItsFirstInput().eval(), bounds=(0, 1), classes=3, reset="forget"), ITEM)

    def test_of_sizes_alone_is_none(self):
        class Positions(nn.Module):
            """Makes a table when it first sees a size, as position encodings do."""

            table = None

            def forward(self, x):
                if self.table is None:
                    self.table = torch.linspace(0, 1, x.shape[-1])
                return pointwise()(x) + self.table

        with pytest.warns(UserWarning, match=r"module\.table changed"):
            check_model(TorchModel(Positions().eval(), bounds=(0, 1), classes=3), ITEM)

    def test_cannot_be_seen_in_what_cannot_be_copied(self):
        keeps = TorchModel(KeepsItsFirstInput(lock=threading.Lock()).eval(), bounds=(0, 1), classes=3)
        with pytest.warns(UserWarning, match="cannot be copied .* would go unnoticed"):
            check_form(keeps, ITEM)

    def test_in_weights_is_refused(self):
        class Normalises(nn.Module):
            """Takes the mean of its first batch for good, as activation normalisation does."""

            def __init__(self):
                super().__init__()
                self.inner, self.mean = local(), nn.Parameter(torch.full((), torch.nan))

            def forward(self, x):
                if self.mean.isnan():
                    self.mean.data.copy_(x.mean())
                return self.inner(x - self.mean)

        with pytest.raises(InvalidInputError, match=r"its weight mean changes while it predicts"):
            check_model(TorchModel(Normalises().eval(), bounds=(0, 1), classes=3), ITEM)

    @pytest.mark.parametrize("check", [check_model, check_form])
    def test_hooks_that_collect_features_are_fine_and_named(self, check):
        class Skips(nn.Module):
            def __init__(self):
                super().__init__()
                self.features, self.first, self.last = {}, nn.Conv2d(2, 2, 1), pointwise()
                self.first.register_forward_hook(lambda part, given, made: self.features.__setitem__("skip", made))

            def forward(self, x):
                self.first(x)
                return self.last(self.features["skip"])

        with seeded(0), pytest.warns(UserWarning, match="its copies would share hooks, so that what it keeps"):
            check(TorchModel(Skips().eval(), bounds=(0, 1), classes=3), ITEM)

    def test_copies_that_fail_are_no_reason_to_refuse(self):
        class Registered(nn.Module):
            known: ClassVar = {}

            def __init__(self):
                super().__init__()
                self.inner, self.known[id(self)] = local(), True

            def forward(self, x):
                return self.inner(x) * self.known[id(self)]

        with pytest.warns(UserWarning, match=r"a copy of it fails \(KeyError"):
            check_form(TorchModel(Registered().eval(), bounds=(0, 1), classes=3), ITEM)

    def test_chance_is_called_chance(self):
        with seeded(0), pytest.raises(InvalidInputError, match="two calls on the same batch"):
            check_form(model(lambda x: functional.dropout(local()(x), 0.5, training=True)), ITEM)

    def test_of_the_output_is_none(self):
        """A function that writes every prediction into the same array."""
        inner, made = local(), np.empty((5, 3, 8, 9), np.float32)

        def reuses(batch):
            made[: len(batch)] = inner(torch.from_numpy(batch.copy())).detach().numpy()
            return made[: len(batch)]

        check_model(CallableModel(reuses, name="reuses", bounds=(0, 1), classes=3), ITEM)


class TestDependenceOnTheBatch:
    @pytest.mark.parametrize("strength", [1.0, 0.01])
    @pytest.mark.parametrize(
        "mix",
        [
            lambda s: s - s.mean(0, keepdim=True),
            lambda s: s / s.abs().amax(),
            lambda s: s.flip(0),
            lambda s: s.roll(1, 0),
            lambda s: functional.batch_norm(s, None, None, training=True),
            lambda s: torch.softmax(s, 0),
        ],
    )
    def test_refused(self, mix, strength):
        inner = local()
        with pytest.raises(InvalidInputError, match=r"other samples in its batch change.*batch norm"):
            check_model(model(lambda x: (1 - strength) * inner(x) + strength * mix(inner(x))), ITEM)

    def test_batch_norm_without_running_statistics(self):
        # In evaluation mode it uses the statistics of the batch all the same.
        module = nn.Sequential(nn.BatchNorm2d(2, track_running_stats=False), pointwise()).eval()
        with pytest.raises(InvalidInputError, match="batch"):
            check_model(TorchModel(module, bounds=(0, 1), classes=3), ITEM)

    def test_of_labels(self):
        inner = pointwise()
        labels = lambda x: functional.batch_norm(inner(x), None, None, training=True).argmax(1)  # noqa: E731
        with pytest.raises(InvalidInputError, match="% of the labels"):
            check_model(model(labels, output=OutputKind.LABELS), ITEM)

    def test_of_a_thresholded_map(self):
        inner = pointwise(classes=1)
        with pytest.raises(InvalidInputError, match="% of the labels"):
            check_model(model(lambda x: inner(x) - inner(x).mean(), classes=None, threshold=0.0), ITEM)

    def test_on_the_batch_size(self):
        inner = local()
        with pytest.raises(InvalidInputError, match="when it is alone"):
            check_model(model(lambda x: inner(x) / len(x)), ITEM)

    def test_on_the_place(self):
        inner = local()
        rank = lambda x: 1 + torch.arange(len(x)).reshape(-1, 1, 1, 1)  # noqa: E731
        with pytest.raises(InvalidInputError, match="another place"):
            check_model(model(lambda x: inner(x) * rank(x)), ITEM)

    def test_quantisation_scale_computed_from_the_batch(self, tmp_path):
        weight = np.random.default_rng(0).integers(-100, 100, (2, 3)).astype(np.int8)
        graph = helper.make_graph(
            [
                helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]),
                helper.make_node("MatMulInteger", ["q", "w", "zero"], ["product"]),
                helper.make_node("Cast", ["product"], ["float"], to=TensorProto.FLOAT),
                helper.make_node("Mul", ["float", "scale"], ["y"]),
            ],
            "dynamic",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, (None, 2))],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, (None, 3))],
            [numpy_helper.from_array(weight, "w")],
        )
        dynamic = OnnxModel(save(graph, tmp_path / "m.onnx"), bounds=None)
        with pytest.raises(InvalidInputError, match="quantisation"):
            check_model(dynamic, torch.tensor([0.3, -0.7]))


class TestChance:
    @seeded(0)
    def test_functional_dropout(self):
        inner = local()
        with pytest.raises(InvalidInputError, match="two calls on the same batch differ"):
            check_model(model(lambda x: functional.dropout(inner(x), 0.1, training=True)), ITEM)

    @seeded(0)
    def test_of_labels(self):
        inner = local()
        noisy = lambda x: (inner(x) + torch.randn(len(x), 3, 8, 9)).argmax(1)  # noqa: E731
        with pytest.raises(InvalidInputError, match="two calls on the same batch differ"):
            check_model(model(noisy, output=OutputKind.LABELS), ITEM)


class TestOutputs:
    @pytest.mark.parametrize("bad", [torch.nan, torch.inf])
    def test_not_a_number(self, bad):
        def function(x):
            made = torch.zeros(len(x), 3, 8, 9)
            made[-1, 1, 2, 3] = bad
            return made

        with pytest.raises(InvalidInputError, match="NaN or infinity"):
            check_model(model(function), ITEM)

    def test_not_a_number_for_noisy_inputs_only(self):
        inner = local()
        samples = ITEM + 0.5 * torch.randn(5, *ITEM.shape, generator=torch.Generator().manual_seed(0))
        rooted = model(lambda x: inner(x.sqrt()))
        check_model(rooted, ITEM)
        with pytest.raises(InvalidInputError, match="NaN"):
            check_model(rooted, ITEM, samples=samples)

    def test_number_of_classes(self):
        with pytest.raises(InvalidInputError, match=r"classes: 4 declared, output of shape \(3, 3, 8, 9\)"):
            check_model(TorchModel(local(), bounds=(0, 1), classes=4), ITEM)

    def test_one_channel_names_the_threshold(self):
        with pytest.raises(InvalidInputError, match="threshold"):
            check_model(TorchModel(local(classes=1), bounds=(0, 1), classes=2), ITEM)

    def test_labels_out_of_range(self):
        for shift in (-1, 1):
            labels = lambda x, shift=shift: x.argmax(1) + shift  # noqa: E731
            with pytest.raises(InvalidInputError, match="labels from"):
                check_model(model(labels, classes=2, output=OutputKind.LABELS), ITEM)

    def test_kinds_are_not_confused(self):
        inner = local()
        with pytest.raises(InvalidInputError, match="declared labels"):
            check_model(model(inner, output=OutputKind.LABELS), ITEM)
        with pytest.raises(InvalidInputError, match="declared scores"):
            check_model(model(lambda x: inner(x).argmax(1)), ITEM)
        with pytest.raises(InvalidInputError, match="declared probabilities"):
            check_model(model(inner, output=OutputKind.PROBABILITIES), ITEM)

    def test_probabilities_over_the_wrong_axis(self):
        inner = local()
        with pytest.raises(InvalidInputError, match="sum to"):
            check_model(model(lambda x: inner(x).softmax(2), output=OutputKind.PROBABILITIES), ITEM)

    def test_a_changed_batch(self):
        inner = local()
        with pytest.raises(InvalidInputError, match="changes the batch"):
            check_model(model(lambda x: inner(x.mul_(2))), ITEM)


class TestItems:
    @pytest.mark.parametrize("bounds", [(0, 1), (-1, 1)])
    def test_bytes_for_a_unit_model(self, bounds):
        with pytest.raises(InvalidInputError, match=r"0\.\.255 image for a .* model"):
            check_model(TorchModel(local(), bounds=bounds, classes=3), 255 * ITEM)

    def test_normalised_image(self):
        with pytest.raises(InvalidInputError, match="already normalised"):
            check_model(TorchModel(local(), bounds=(0, 1), classes=3), (ITEM - 0.5) / 0.2)

    def test_unit_images_for_a_byte_model_warn_once(self):
        network = TorchModel(local(), bounds=(0, 255), classes=3)
        images = [ITEM.numpy() * share for share in (0.5, 0.9, 200.0)]
        smoothing = ls.Smoothing(ls.GridLayout((2, 2), 0.25, 0.5), ls.SamplingPlan(8, 64))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            ls.certify(ls.ArrayTask(network, images), smoothing, ls.Settings(0.1, [0.0]))
            ls.certify(ls.ArrayTask(network, images[2:]), smoothing, ls.Settings(0.1, [0.0]))
            ls.certify(ls.ArrayTask(network, images[1:]), smoothing, ls.Settings(0.1, [0.0]))
        text, one = [str(one.message) for one in told if "[0,255]" in str(one.message)]
        assert text.startswith(f"items: no value of 2 of the 3 is above {float(images[1].max()):g} where")
        assert one == (
            f'item "item 0": no value is above {float(images[1].max()):g} where the model declares bounds [0, 255]; '
            "if it is a [0,1] image for a [0,255] model, scale it"
        )

    def test_rounding_is_forgiven_and_more_is_not(self):
        made = CallableModel(lambda x: x, name="identity", bounds=(0, 1), classes=2)
        check_item(made, torch.tensor([0.0, 1.0000001]))
        with pytest.raises(InvalidInputError, match="outside"):
            check_item(made, torch.tensor([0.0, 1.001]))

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_not_finite(self, bad):
        made = CallableModel(lambda x: x, name="identity", bounds=None, classes=2)
        with pytest.raises(InvalidInputError, match="item: it contains NaN"):
            check_item(made, np.array([0.0, bad]))

    def test_empty(self):
        made = CallableModel(lambda x: x, name="identity", bounds=None, classes=2)
        with pytest.raises(InvalidInputError, match="no element"):
            check_item(made, np.zeros((2, 0)))

    def test_samples_of_another_shape(self):
        with pytest.raises(InvalidInputError, match="samples"):
            check_model(TorchModel(local(), bounds=(0, 1), classes=3), ITEM, samples=torch.zeros(5, 2, 8, 8))


class TestLargeBatches:
    """Models that behave in small batches and not in the ones that are used."""

    @pytest.mark.parametrize("output", [OutputKind.LOGITS, OutputKind.LABELS])
    def test_mixing_in_large_batches_only(self, output):
        inner = local()

        def mixing(x):
            made = inner(x)
            made = made.mean(0, keepdim=True).expand_as(made) if len(x) > 8 else made
            return made.argmax(1) if output is OutputKind.LABELS else made

        check_model(model(mixing, output=output), ITEM)
        check_model(model(mixing, output=output), ITEM, batch_size=8)
        with pytest.raises(InvalidInputError, match="other samples in its batch of 9 change"):
            check_model(model(mixing, output=output), ITEM, batch_size=9)

    def test_faint_mixing_of_neighbours(self):
        inner = local()
        faint = lambda x: inner(x) + 1e-3 * inner(x).roll(1, 0) if len(x) > 8 else inner(x)  # noqa: E731
        with pytest.raises(InvalidInputError, match="other samples in its batch of 16 change"):
            check_model(model(faint), ITEM, batch_size=16)

    def test_another_prediction_in_large_batches(self):
        inner = local()
        with pytest.raises(InvalidInputError, match="when it is in a batch of 12 instead of 3"):
            check_model(model(lambda x: inner(x) if len(x) < 9 else -inner(x)), ITEM, batch_size=12)

    def test_another_prediction_at_the_end_of_large_batches(self):
        inner = local()

        def rotated(x):
            made = inner(x)
            return torch.cat([made[:8], made[8:].flip(1)])

        with pytest.raises(InvalidInputError, match="batch of 9 instead of 3"):
            check_model(model(rotated), ITEM, batch_size=9)

    @pytest.mark.parametrize("batch_size", [1, 2, 3, 4, 9, 64])
    @pytest.mark.parametrize("precision", [None, torch.bfloat16])
    def test_good_models_pass(self, batch_size, precision):
        check_model(TorchModel(local(), bounds=(0, 1), classes=3, precision=precision), ITEM, batch_size=batch_size)

    def test_no_batch(self):
        with pytest.raises(InvalidInputError, match="batch_size: got 0"):
            check_model(TorchModel(local(), bounds=(0, 1), classes=3), ITEM, batch_size=0)


class TestScales:
    """Neither a masked class nor the scale of the scores hides a dependence."""

    MASKS = (-1e9, torch.finfo(torch.float32).min, -torch.inf)

    @pytest.mark.parametrize("mask", MASKS)
    def test_a_masked_class_does_not_hide_mixing(self, mask):
        inner = local()

        def masked(x):
            made = inner(x) - inner(x).mean(0, keepdim=True)
            return torch.cat([made, torch.full_like(made[:, :1], mask)], dim=1)

        with pytest.raises(InvalidInputError, match="other samples"):
            check_model(model(masked, classes=4), ITEM)

    @pytest.mark.parametrize("mask", MASKS)
    def test_a_masked_class_does_not_hide_the_place(self, mask):
        inner = local()

        def masked(x):
            made = inner(x) * torch.where(torch.arange(len(x)) == 2, -1, 1).reshape(-1, 1, 1, 1)
            return torch.cat([made, torch.full_like(made[:, :1], mask)], dim=1)

        with pytest.raises(InvalidInputError, match="another place"):
            check_model(model(masked, classes=4), ITEM)

    @pytest.mark.parametrize("mask", MASKS)
    def test_a_masked_class_is_no_fault(self, mask):
        inner = local()
        masked = lambda x: torch.cat([inner(x), torch.full_like(inner(x)[:, :1], mask)], dim=1)  # noqa: E731
        check_model(model(masked, classes=4), ITEM, batch_size=9)

    @pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
    def test_of_the_scores(self, scale):
        inner = local()
        check_model(model(lambda x: scale * inner(x)), ITEM, batch_size=9)
        with pytest.raises(InvalidInputError, match="other samples"):
            check_model(model(lambda x: scale * (inner(x) + 0.01 * inner(x).mean(0, keepdim=True))), ITEM)
        with pytest.raises(InvalidInputError, match="alone"):
            check_model(model(lambda x: scale * (inner(x) + (len(x) - 1) * inner(x).flip(1))), ITEM)

    @pytest.mark.parametrize("amplitude", [0.4, 1e-3])
    def test_a_coin_beside_large_scores(self, amplitude):
        coins = iter(torch.tensor([1.0, -1.0]).repeat(50))

        def tossing(x):
            made = torch.full((len(x), 3, 8, 9), 100.0)
            made[:, 0] += amplitude * next(coins)
            made[:, 2] = 0.0
            return made

        with pytest.raises(InvalidInputError, match="two calls on the same batch differ in 100 % of the labels"):
            check_model(model(tossing), ITEM)

    def test_a_coin_among_all_but_ties(self):
        coins = iter(torch.tensor([1.0, -1.0]).repeat(50))

        def tossing(x):
            made = torch.zeros(len(x), 3, 8, 9)
            made[:, 2] = -1e-3 * x[:, 0]
            made[:, 0] = 1e-9 * next(coins)
            return made

        with pytest.raises(InvalidInputError, match="two calls on the same batch differ"):
            check_model(model(tossing), ITEM)

    def test_a_label_that_is_tossed(self):
        labels = lambda x: torch.zeros(len(x), 8, 9).long()  # noqa: E731
        coins = iter(range(50))

        def tossing(x):
            made = labels(x)
            made[0, 0, 0] = next(coins) % 2
            return made

        with pytest.raises(InvalidInputError, match="two calls on the same batch differ"):
            check_model(model(tossing, output=OutputKind.LABELS), ITEM)

    def test_no_class_is_possible(self):
        with pytest.raises(InvalidInputError, match="all its scores are -infinity"):
            check_model(model(lambda x: torch.full((len(x), 3, 8, 9), -torch.inf)), ITEM)


def test_small_flips_of_labels_between_batch_sizes_are_rounding_and_more_are_not():
    item = torch.rand((2, 40, 50), generator=torch.Generator().manual_seed(2))

    def flipping(flips):
        def labels(x):
            made = (x[:, 0] > 0.5).long().reshape(len(x), -1)
            if len(x) == 9:
                made[:, :flips] = 1 - made[:, :flips]
            return made.reshape(len(x), 40, 50)

        return model(labels, classes=2, output=OutputKind.LABELS)

    check_model(flipping(4), item, batch_size=9)
    with pytest.raises(InvalidInputError, match="batch of 9 instead of 3"):
        check_model(flipping(5), item, batch_size=9)
