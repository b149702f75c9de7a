"""Segmenters from folders as transformers writes them: tiny ones with random weights."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests import flat
from tests.seeding import seeded

import localsmooth as ls
from localsmooth.config import ConfigurationError, parse_configuration
from localsmooth.models import check_model
from localsmooth.models.huggingface import _resizing

tf = pytest.importorskip("transformers")

SIZE = (32, 48)
NAMES = {0: "sky", 1: "road", 2: "tree", 3: "road"}
IMAGES = np.random.default_rng(0).random((2, 3, *SIZE), dtype=np.float32)
SWIN = {"image_size": 32, "embed_dim": 8, "depths": [1] * 4, "num_heads": [1] * 4, "window_size": 2, "patch_size": 4}
QUERIES = {"num_queries": 5, "id2label": NAMES}


def swin() -> Any:
    return tf.SwinConfig(**SWIN, out_features=["stage1", "stage2", "stage3", "stage4"])


def segformer(**more: Any) -> Any:
    small = {"num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [2, 1], "hidden_sizes": [8, 8]}
    heads = {"num_attention_heads": [1, 1], "patch_sizes": [3, 3], "strides": [4, 2], "mlp_ratios": [1, 1]}
    return tf.SegformerConfig(**small, **heads, decoder_hidden_size=8, **({"id2label": NAMES} | more))


def mask2former() -> Any:
    widths = {"feature_size": 32, "mask_feature_size": 32, "hidden_dim": 32, "encoder_feedforward_dim": 16}
    depths = {"dim_feedforward": 16, "encoder_layers": 1, "decoder_layers": 2, "num_attention_heads": 2}
    made = tf.Mask2FormerConfig(backbone_config=swin(), **widths, **depths, **QUERIES)
    return tf.Mask2FormerForUniversalSegmentation(made)


def maskformer() -> Any:
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "num_queries": 5}
    widths = {"d_model": 16, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "encoder_layers": 1, "decoder_layers": 1}
    made = tf.MaskFormerConfig(
        backbone_config=swin(),
        fpn_feature_size=32,
        mask_feature_size=32,
        decoder_config=tf.DetrConfig(**widths, **heads),
        id2label=NAMES,
    )
    return tf.MaskFormerForInstanceSegmentation(made)


def eomt() -> Any:
    depths = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_blocks": 1, "num_upscale_blocks": 1}
    sizes = {"hidden_size": 16, "image_size": 32, "patch_size": 8, "mlp_ratio": 1}
    return tf.EomtForUniversalSegmentation(tf.EomtConfig(**depths, **sizes, **QUERIES))


def oneformer() -> Any:
    widths = {"conv_dim": 32, "mask_dim": 32, "hidden_dim": 32, "encoder_feedforward_dim": 16, "dim_feedforward": 16}
    depths = {"encoder_layers": 1, "decoder_layers": 2, "num_attention_heads": 2, "query_dec_layers": 1}
    text = {"text_encoder_width": 16, "text_encoder_context_length": 8, "text_encoder_num_layers": 1}
    more = {"text_encoder_vocab_size": 64, "text_encoder_n_ctx": 2, "task_seq_len": 8, "max_seq_len": 8}
    made = tf.OneFormerConfig(backbone_config=swin(), **widths, **depths, **text, **more, **QUERIES, is_training=False)
    return tf.OneFormerForUniversalSegmentation(made)


def saved(folder: Path, network: Any, processor: Any = None) -> Path:
    network.eval().save_pretrained(folder)
    if processor is not None:
        processor.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with seeded(0):
        network = tf.SegformerForSemanticSegmentation(segformer())
        torch.nn.init.normal_(network.decode_head.classifier.weight)  # so that classes differ from place to place
    return saved(tmp_path_factory.mktemp("plain"), network, tf.SegformerImageProcessorPil(do_resize=False))


def from_file(folder: Path, **model: Any) -> Any:
    """A model as a file of configuration beside `folder` names it."""
    values = {
        "model": {"kind": "huggingface", "path": folder.name, **model},
        "data": {"kind": "digit-scenes"},
        "layout": {"cells": [2, 2]},
        "noise": {"distribution": "gaussian", "sigma_min": 0.1, "sigma_max": 0.3},
        "sampling": {"n_candidate": 4, "n_bound": 8},
        "certificate": {"alpha": 0.5, "budgets": [0.0]},
    }
    made = parse_configuration(values, folder.parent)
    return made.model.build(made.sampling)


def test_a_folder_is_the_whole_model(plain: Path) -> None:
    """What comes out is what the processor and the network make of the same picture of 8 bits."""
    pictures = np.random.default_rng(1).integers(0, 256, (2, *SIZE, 3), dtype=np.uint8)
    processor = tf.AutoImageProcessor.from_pretrained(plain)
    network = tf.AutoModelForSemanticSegmentation.from_pretrained(plain)
    with torch.inference_mode():
        returned = network(**processor(list(pictures), return_tensors="pt"))
    expected = processor.post_process_semantic_segmentation(returned, target_sizes=[SIZE] * 2)
    given = torch.from_numpy(pictures.astype(np.float32).transpose(0, 3, 1, 2))
    for made, batch in ((ls.HuggingFaceModel(plain), given / 255), (from_file(plain, bounds=[0, 255]), given)):
        scores = made(batch)
        assert scores.shape == (2, 4, *SIZE)
        for one, other in zip(scores.argmax(dim=1), expected, strict=True):
            assert len(other.unique()) > 1
            assert (one == other).float().mean() > 0.999  # rounding at ties
    assert made.class_names == ("sky", "road (1)", "tree", "road (3)")


def collecting(into: list[torch.Tensor]) -> Callable[..., None]:
    return lambda _, __, given: into.append(given["pixel_values"])


@pytest.mark.parametrize(
    ("change", "of_white"),
    [({}, 1 / 0.5), ({"do_rescale": False}, 255 / 0.5), ({"rescale_factor": 1 / 127.5}, 2 / 0.5)],
)
def test_units_of_the_processor_are_heeded(
    plain: Path, tmp_path: Path, change: dict[str, Any], of_white: float
) -> None:
    """The network sees (factor · v − mean) / std of the pixel value v from 0 to 255."""
    folder = shutil.copytree(plain, tmp_path / "folder")
    tf.SegformerImageProcessorPil(image_mean=[0.0] * 3, image_std=[0.5] * 3, do_resize=False, **change).save_pretrained(
        folder
    )
    for bounds in ((0, 1), (-1, 3), (0, 255)):
        model = ls.HuggingFaceModel(folder, bounds=bounds)
        seen: list[torch.Tensor] = []
        model.module.network.register_forward_pre_hook(collecting(seen), with_kwargs=True)
        model(torch.full((1, 3, *SIZE), float(bounds[0])))
        model(torch.full((1, 3, *SIZE), float(bounds[1])))
        assert seen[0].abs().max() < 1e-4
        assert seen[1].numpy() == pytest.approx(of_white, rel=1e-5)


def test_channels_in_reverse_order_are_turned(plain: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(plain, tmp_path / "folder")
    kept = json.loads((folder / "preprocessor_config.json").read_text())
    kept |= {"do_flip_channel_order": True, "image_processor_type": "MobileViTImageProcessor"}
    kept |= {"do_normalize": False, "do_center_crop": False}
    (folder / "preprocessor_config.json").write_text(json.dumps(kept))
    model, batch = ls.HuggingFaceModel(folder), torch.from_numpy(IMAGES)
    own = ls.HuggingFaceModel(plain, preprocessing=ls.Preprocessing())
    assert torch.equal(model(batch), own(batch.flip(1)))
    assert not torch.equal(model(batch), own(batch))


@pytest.mark.parametrize(
    ("make", "processor"),
    [
        (maskformer, "MaskFormerImageProcessorPil"),
        (mask2former, "Mask2FormerImageProcessorPil"),
        (eomt, "EomtImageProcessorPil"),
        (oneformer, "OneFormerImageProcessorPil"),
    ],
)
def test_masks_with_classes_become_the_scores_of_the_processor(
    tmp_path: Path, make: Callable[[], Any], processor: str
) -> None:
    size = (32, 32) if make is eomt else SIZE
    options = {"size": {"shortest_edge": 32, "longest_edge": 32}} if make is eomt else {}
    own = getattr(tf, processor)(**options)
    with seeded(0):
        folder = saved(tmp_path / "folder", make(), own)
    told = {}
    if make is oneformer:
        words = ["<|startoftext|>", "<|endoftext|>", "the</w>", "task</w>", "is</w>", "semantic</w>"]
        (folder / "vocab.json").write_text(json.dumps({word: number for number, word in enumerate(words)}))
        (folder / "merges.txt").write_text("#version: 0.2\n")
        tokenizer = tf.CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
        tokenizer.save_pretrained(folder)
        tokens = tf.OneFormerProcessor(own, tokenizer, task_seq_length=8)._preprocess_text(["the task is semantic"], 8)
        told = {"task_inputs": tokens.repeat(2, 1)}
    model = ls.HuggingFaceModel(folder, resize=False)
    batch = torch.from_numpy(IMAGES[..., : size[1]])
    with torch.inference_mode():
        mean, deviation = (torch.tensor(values).reshape(3, 1, 1) for values in (own.image_mean, own.image_std))
        network = tf.AutoModelForUniversalSegmentation.from_pretrained(folder)
        returned = network((batch - mean) / deviation, **told)
    expected = own.post_process_semantic_segmentation(
        returned, target_sizes=[size] * 2, return_segmentation_scores=True
    )
    for made, other in zip(model(batch), expected, strict=True):
        torch.testing.assert_close(made, other.segmentation_scores, rtol=1e-5, atol=1e-6)
    before = ls.HuggingFaceModel(folder, resize=False)
    assert before.fingerprint() == model.fingerprint()  # of which one has been called
    assert before.concurrent
    assert model.concurrent
    assert check_model(model, batch[0]).output_shape == size


def test_a_run_has_the_names_and_goes_on_from_a_copy(plain: Path, tmp_path: Path) -> None:
    arguments = {
        "layout": ls.GridLayout((1, 2), minimum=0.1, maximum=0.3),
        "plan": ls.SamplingPlan(4, 16),
        "alpha": 0.5,
        "budgets": [0.0],
        "executor": ls.SerialExecutor(),
    }
    first = flat.certify(ls.HuggingFaceModel(plain), IMAGES[:1], out=tmp_path / "run", **arguments)
    assert "road (1)" in json.dumps(first.attrs)
    copy = shutil.copytree(plain, tmp_path / "copy")
    again = flat.certify(from_file(copy), IMAGES[:1], out=tmp_path / "run", **arguments)
    np.testing.assert_array_equal(first["votes"], again["votes"])


def test_other_options_are_another_model(plain: Path) -> None:
    made = [
        ls.HuggingFaceModel(plain),
        ls.HuggingFaceModel(plain, bounds=(0, 255)),
        ls.HuggingFaceModel(plain, pad_multiple=64),
        ls.HuggingFaceModel(plain, upsample=False),
        ls.HuggingFaceModel(plain, resize=(64, 64)),
        ls.HuggingFaceModel(plain, resize=(64, 80)),
        ls.HuggingFaceModel(plain, preprocessing=ls.Preprocessing(0.5, 0.5)),
    ]
    assert len({model.fingerprint() for model in made}) == len(made)
    assert made[2](torch.from_numpy(IMAGES)).shape == made[0](torch.from_numpy(IMAGES)).shape
    assert made[3](torch.from_numpy(IMAGES)).shape == (2, 4, 8, 12)
    assert made[0].concurrent


def test_pickled_weights_are_taken_only_if_one_says_so(plain: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(plain, tmp_path / "folder")
    (folder / "model.safetensors").unlink()
    network = tf.AutoModelForSemanticSegmentation.from_pretrained(plain)
    torch.save(network.state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(ls.InvalidInputError, match=r"source: .*pytorch_model\.bin.*pickled=True"):
        ls.HuggingFaceModel(folder)
    batch = torch.from_numpy(IMAGES)
    assert torch.equal(ls.HuggingFaceModel(folder, pickled=True)(batch), ls.HuggingFaceModel(plain)(batch))


def test_what_cannot_be_used_says_what_to_do(plain: Path, tmp_path: Path) -> None:
    with pytest.raises(ls.InvalidInputError, match="source: there is no folder"):
        ls.HuggingFaceModel(tmp_path / "nothing")
    with pytest.raises(ConfigurationError, match=r"model\.path: .*no such folder"):
        from_file(plain, path="./nothing")
    with pytest.raises(ls.InvalidInputError, match="source: transformers cannot load its configuration"):
        ls.HuggingFaceModel(tmp_path)
    with seeded(0):
        classifier = saved(tmp_path / "classifier", tf.SegformerForImageClassification(segformer()))
        other = saved(
            tmp_path / "other",
            tf.ViTForImageClassification(
                tf.ViTConfig(
                    hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, image_size=32
                )
            ),
        )
    with pytest.raises(ls.InvalidInputError, match=r"without the weights of .*: decode_head.* more"):
        ls.HuggingFaceModel(classifier, preprocessing=ls.Preprocessing())
    with pytest.raises(ls.InvalidInputError, match="kind vit, which has no head"):
        ls.HuggingFaceModel(other)
    with pytest.raises(ls.InvalidInputError, match=r"preprocessing: .*image processor"):
        ls.HuggingFaceModel(classifier)
    with pytest.raises(ls.InvalidInputError, match="pad_multiple"):
        ls.HuggingFaceModel(plain, preprocessing=ls.Preprocessing(), pad_multiple=4)


def test_code_that_comes_with_a_model_is_not_run(plain: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(plain, tmp_path / "folder")
    kept = json.loads((folder / "config.json").read_text())
    kept |= {"model_type": "mine", "auto_map": {"AutoConfig": "mine.Mine"}}
    (folder / "config.json").write_text(json.dumps(kept))
    (folder / "mine.py").write_text("raise SystemExit('it was run')\n")
    with pytest.raises(ls.InvalidInputError, match="whose code comes with transformers"):
        ls.HuggingFaceModel(folder)


def test_one_channel_and_a_threshold(tmp_path: Path) -> None:
    with seeded(0):
        network = tf.SegformerForSemanticSegmentation(segformer(id2label={0: "text"}))
    folder = saved(tmp_path / "folder", network, tf.SegformerImageProcessorPil(do_resize=False))
    scores = ls.HuggingFaceModel(folder, threshold=-1e9)(torch.from_numpy(IMAGES))
    assert scores.shape == (2, *SIZE)
    assert scores.min() == 1
    middle = from_file(folder, threshold=0.0)
    assert middle.classes == 2
    assert middle.class_names is None


@pytest.mark.parametrize(
    ("processor", "options", "made"),
    [
        ("SegformerImageProcessorPil", {"size": {"height": 24, "width": 40}}, (24, 40)),
        ("SegformerImageProcessorPil", {"size": {"height": 48, "width": 48}, "resample": 3}, (48, 48)),
        ("MaskFormerImageProcessorPil", {"size": {"shortest_edge": 40, "longest_edge": 50}}, (64, 64)),
        ("EomtImageProcessorPil", {"size": {"shortest_edge": 20, "longest_edge": 300}}, (20, 30)),
    ],
)
def test_pictures_get_the_size_that_the_processor_makes(
    processor: str, options: dict[str, Any], made: tuple[int, int]
) -> None:
    """Up to one grey level: processors round to whole ones after each axis, and shrink with the same antialiasing."""
    own = getattr(tf, processor)(**options)
    picture = np.random.default_rng(2).integers(96, 160, (*SIZE, 3), dtype=np.uint8)  # cubic overshoots stay in range
    expected = own(images=[picture], return_tensors="pt")["pixel_values"]
    resizing = _resizing(True, own)
    assert resizing is not None
    found = resizing(torch.from_numpy(picture.transpose(2, 0, 1).astype(np.float32))[None])
    assert found.shape == expected.shape
    assert tuple(found.shape[2:]) == made
    mean, deviation = (torch.tensor(values).reshape(3, 1, 1) for values in (own.image_mean, own.image_std))
    assert (found - (expected * deviation + mean) * 255).abs().max() <= 1.01


def test_resizing_is_inside_and_scores_have_the_size_of_the_input(plain: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(plain, tmp_path / "folder")
    tf.SegformerImageProcessorPil(size={"height": 64, "width": 64}).save_pretrained(folder)
    pictures = np.random.default_rng(1).integers(0, 256, (2, *SIZE, 3), dtype=np.uint8)
    processor = tf.AutoImageProcessor.from_pretrained(folder)
    with torch.inference_mode():
        returned = tf.AutoModelForSemanticSegmentation.from_pretrained(plain)(
            **processor(list(pictures), return_tensors="pt")
        )
    expected = processor.post_process_semantic_segmentation(returned, target_sizes=[SIZE] * 2)
    batch = torch.from_numpy(pictures.astype(np.float32).transpose(0, 3, 1, 2)) / 255
    for model in (ls.HuggingFaceModel(folder), from_file(folder), from_file(plain, resize=[64, 64])):
        scores = model(batch)
        assert scores.shape == (2, 4, *SIZE)
        for one, other in zip(scores.argmax(dim=1), expected, strict=True):
            assert (one == other).float().mean() > 0.98  # grey levels are not rounded before the network
    unresized = from_file(folder, resize=False)(batch).argmax(dim=1)
    assert (unresized == torch.stack(expected)).float().mean() < 0.98


def test_what_processors_do_beside_resizing_is_refused(plain: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(plain, tmp_path / "folder")
    for own in (
        tf.MobileViTImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}),
        tf.DPTImageProcessorPil(size={"height": 32, "width": 32}, keep_aspect_ratio=True),
        tf.EomtImageProcessorPil(size={"shortest_edge": 32}, do_split_image=True),
        tf.SegformerImageProcessorPil(size={"height": 32, "width": 32}, resample=0),
    ):
        own.save_pretrained(folder)
        with pytest.raises(ls.InvalidInputError, match=r"resize: .*resize=\(height, width\).*resize=False"):
            ls.HuggingFaceModel(folder)
        assert ls.HuggingFaceModel(folder, resize=False)(torch.from_numpy(IMAGES)).shape == (2, 4, *SIZE)
    unsaid = tf.SegformerImageProcessorPil(size={"height": 32, "width": 32}, resample=2).to_dict() | {"resample": None}
    (folder / "preprocessor_config.json").write_text(json.dumps(unsaid))
    with pytest.raises(ls.InvalidInputError, match=r"resize: .*resize=\(height, width\).*resize=False"):
        ls.HuggingFaceModel(folder)
    assert ls.HuggingFaceModel(folder, resize=(32, 32))(torch.from_numpy(IMAGES)).shape == (2, 4, *SIZE)
    with pytest.raises(ls.InvalidInputError, match="pad_multiple: pictures are resized"):
        ls.HuggingFaceModel(plain, resize=(64, 64), pad_multiple=32)
    for size in ((64, 0), (True, True)):
        with pytest.raises(ls.InvalidInputError, match="resize: got"):
            ls.HuggingFaceModel(plain, resize=size)
