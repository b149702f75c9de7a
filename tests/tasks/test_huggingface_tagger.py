"""Classifiers of tokens from folders as transformers writes them: a tiny one with random weights."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import localsmooth as ls
from localsmooth.cli.app import app
from localsmooth.config import Configuration, ConfigurationError, load_configuration, parse_configuration, to_toml
from localsmooth.models import check_model
from localsmooth.results import load_result, run_info
from localsmooth.tasks.tokens import HuggingFaceTagger, TokenTask, WindowLayout
from localsmooth.tuning import file_candidates
from tests.seeding import seeded

tf = pytest.importorskip("transformers")

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "anna", "lives", "in", "berlin", "play", "##ing", "bob"]
NAMES = {0: "O", 1: "PER", 2: "LOC"}
TEXT = "Anna playing in Berlin"
TOKENS = ("Anna", "play", "ing", "in", "Berlin")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("here") / "tagger"
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    made = tf.BertConfig(vocab_size=len(VOCABULARY), **sizes, max_position_embeddings=12, id2label=NAMES)
    with seeded(0):
        network = tf.BertForTokenClassification(made)
        torch.nn.init.normal_(network.bert.embeddings.word_embeddings.weight)
        torch.nn.init.normal_(network.classifier.weight)
    network.save_pretrained(path)
    tf.BertTokenizer(vocab={word: number for number, word in enumerate(VOCABULARY)}).save_pretrained(path)
    return path


def test_scores_are_those_of_the_sentence_as_text(folder: Path) -> None:
    tokenizer = tf.AutoTokenizer.from_pretrained(folder)
    network = tf.AutoModelForTokenClassification.from_pretrained(folder).eval()
    tagger = HuggingFaceTagger(folder)
    (sentence,) = tagger.embed([TEXT])
    with torch.inference_mode():
        expected = network(**tokenizer(TEXT, return_tensors="pt")).logits[0, 1:-1].T  # without [CLS] and [SEP]
    assert sentence.tokens == TOKENS
    assert tagger(torch.from_numpy(sentence.embeddings.T[None]))[0].numpy() == pytest.approx(expected.numpy(), abs=1e-5)
    assert tagger.class_names == ("O", "PER", "LOC")
    check_model(tagger, torch.from_numpy(sentence.embeddings.T))
    # As many tokens as classes, where the shape alone would not tell which axis is which.
    (three,) = tagger.embed(["bob lives in"])
    assert tagger(torch.from_numpy(three.embeddings.T[None])).shape == (1, 3, 3)


def test_loading_a_folder_draws_no_bars_and_leaves_those_of_the_user(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    HuggingFaceTagger(folder)
    assert capfd.readouterr().err == ""
    tf.AutoModelForTokenClassification.from_pretrained(folder)
    assert "Loading weights" in capfd.readouterr().err


def test_a_word_has_the_label_of_its_first_token(folder: Path) -> None:
    task = HuggingFaceTagger(folder).task([["Anna", "playing", "in", "Berlin"]], [["PER", 0, "O", "LOC"]])
    (item,) = task.items
    assert item.label is not None
    assert item.label.tolist() == [1, 0, -100, 0, 2]
    assert task.words == [list(TOKENS)]


@pytest.mark.parametrize(
    ("label", "number"), [(1, 1), ("1", 0), ("3", 2), ("0", 0), (3, None), (-1, None), (True, None)]
)
def test_numbers_are_those_of_classes_and_texts_are_names_first(folder: Path, label: Any, number: int | None) -> None:
    tagger = HuggingFaceTagger(folder)
    tagger.class_names = ("1", "2", "3")
    if number is None:
        with pytest.raises(ls.InvalidInputError, match=f"labels: '{label}' in sentence 0 is no class"):
            tagger.task(["bob"], [[label]])
        return
    (item,) = tagger.task(["bob"], [[label]]).items
    assert item.label is not None
    assert item.label.tolist() == [number]


def test_other_tokens_around_a_sentence_are_not_kept_silent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tagger = HuggingFaceTagger(folder)
    monkeypatch.setattr(tagger, "_around", ([2], [3, 3]))
    with pytest.raises(ls.InvalidInputError, match="other tokens around number 0"):
        tagger.embed(["bob"])


def values(path: str, **data: Any) -> dict[str, Any]:
    return {
        "model": {"kind": "huggingface", "path": path},
        "data": {"kind": "sentences", "sentences": "sentences.txt", **data},
        "layout": {"windows": 2},
        "noise": {"distribution": "gaussian", "sigma_min": 0.02, "sigma_max": 0.05},
        "sampling": {"n_candidate": 8, "n_bound": 64},
        "certificate": {"alpha": 0.1, "budgets": [0.0, 0.01], "targets": ["ratio", "accuracy"]},
    }


def test_a_file_certifies_sentences(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "tagger")
    (tmp_path / "sentences.txt").write_text("bob\nAnna playing in Berlin\nbob lives in berlin\n")
    (tmp_path / "labels.txt").write_text("PER\nPER O O LOC\nPER O O 2\n")
    made = parse_configuration(values("tagger", labels="labels.txt", items=[1, 2]), tmp_path)
    task, smoothing, settings = made.prepare(tmp_path, print)
    ls.certify(task, smoothing, settings, run=ls.Run(tmp_path / "run"))
    # What a run keeps of its file has every key, with the values of those that nobody wrote.
    parse_configuration(made.model_dump(mode="json"), tmp_path).prepare(tmp_path, print)
    result = load_result(tmp_path / "run" / "result.nc")
    assert result["output_name"].values[0].tolist() == list(TOKENS)
    assert run_info(result).class_names == ("O", "PER", "LOC")
    assert result["total"].sel(target="ratio").values.tolist() == [4, 4]  # "ing" does not count
    assert result["certified"].sel(target="ratio", bound="envelope", budget=0.0).values.sum() > 0


def test_only_newlines_end_sentences_and_only_blanks_words(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "tagger")
    text = "bob\u2028 lives\tin\r\nanna\u00a0bob  in\u0085\x0b berlin\n"
    (tmp_path / "sentences.txt").write_bytes(text.encode())
    (tmp_path / "labels.txt").write_text("PER O O\nPER O LOC\n")
    made = parse_configuration(values("tagger", labels="labels.txt"), tmp_path)
    assert isinstance(made, Configuration)
    task = made.task()
    assert isinstance(task, TokenTask)
    assert task.words == [["bob", "lives", "in"], ["anna", "bob", "in", "berlin"]]
    assert [item.label.tolist() for item in task.items if item.label is not None] == [[1, 0, 0], [1, -100, 0, 2]]


def test_sentences_that_are_not_certified_choose_the_noise(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "tagger")
    (tmp_path / "sentences.txt").write_text("Anna playing in Berlin\nbob lives in berlin\n")
    (tmp_path / "others.txt").write_text("bob playing in berlin anna\n")
    whole = values("tagger") | {"calibration": {"kind": "sentences", "sentences": "others.txt"}}
    whole["certificate"] |= {"targets": ["ratio"], "budgets": "auto"}
    whole["tune"] = {"count": 2, "ratios": [4.0], "cells": [[2]]}
    file = tmp_path / "run.toml"
    file.write_text(to_toml(whole))
    shown = CliRunner().invoke(app, ["plan", str(file), "--json", "--seconds", "0.1"])
    assert shown.exit_code == 0, shown.output
    assert [sight["level"] for sight in json.loads(shown.stdout)["sights"]] == [[0.02], [0.05]]
    made = CliRunner().invoke(app, ["tune", str(file), "--json"])
    assert made.exit_code == 0, made.output
    found = json.loads(made.stdout)
    names = {one["candidate"] for one in found["tried"]}
    assert names == {
        "isotropic 0.02",
        "isotropic 0.05",
        "as in the file",
        "2 windows 0.02 … 0.08",
        "2 windows 0.05 … 0.2",
    }
    tuned = load_configuration(tmp_path / "run-tuned.toml")
    assert isinstance(tuned, Configuration)
    assert tuned.groups == found["best"]["groups"]
    assert next(iter(tuned.task().items)).image.shape == (8, 5)
    # Whoever certifies what was looked at is refused, whatever the command.
    whole["calibration"] = dict(whole["data"], items=[1])
    leak = parse_configuration(whole, tmp_path)
    with pytest.raises(ls.InvalidInputError, match=r'calibration: .*"item 1" is among its items.* is to be certified'):
        leak.prepare(tmp_path, print)
    for tune, what in (
        ({"cells": [[2, 2]]}, r"tune\.cells: tokens have one axis"),
        ({"window_margins": [1]}, "margins"),
    ):
        with pytest.raises(ConfigurationError, match=what):
            file_candidates(cast(Configuration, parse_configuration(whole | {"tune": tune}, tmp_path)))
    pictures = {"kind": "digit-scenes"}
    with pytest.raises(ConfigurationError, match=r'calibration\.kind: "digit-scenes" beside data of kind "sentences"'):
        parse_configuration(whole | {"calibration": pictures}, tmp_path)


def test_what_cannot_be_used_says_what_to_do(folder: Path, tmp_path: Path) -> None:
    tagger = HuggingFaceTagger(folder)
    for sentences, labels, what in (
        ([""], None, "number 0 has no token"),
        (["bob"] * 2, [["O"]], "1 lists for 2 sentences"),
        (["bob in"], [["O"]], "1 for the 2 words"),
        (["bob"], [["ORG"]], "one of O, PER, LOC, or a number from 0 to 2"),
        (["bob " * 11], None, "11 tokens, and the network takes 10"),
        ("bob", None, "sentences"),
    ):
        with pytest.raises(ls.InvalidInputError, match=what):
            tagger.task(sentences, labels)
    with pytest.raises(ls.InvalidInputError, match=r"Pass it to .*HuggingFaceTagger"):
        ls.HuggingFaceModel(folder)
    shutil.copytree(folder, tmp_path / "tagger")
    (tmp_path / "sentences.txt").write_text("bob\n")
    pictured = values("tagger")
    pictured["model"]["mean"] = [0.5]
    with pytest.raises(ConfigurationError, match=r"model\.mean: a classifier of tokens has none"):
        parse_configuration(pictured, tmp_path).prepare(tmp_path, print)
    with pytest.raises(ls.InvalidInputError, match="none of the number 4"):
        parse_configuration(values("tagger", items=[4]), tmp_path).prepare(tmp_path, print)


def test_networks_that_embeddings_do_not_get_into_as_tokens_do_are_refused(folder: Path) -> None:
    from localsmooth.tasks.tokens.huggingface import _require_same

    network = tf.AutoModelForTokenClassification.from_pretrained(folder).eval()
    hook = network.get_input_embeddings().register_forward_hook(lambda _, __, made: made + 1)
    _require_same(network, torch.tensor([2, 5, 3]))
    hook.remove()
    plain = network.bert.forward

    def turned(input_ids: Any = None, inputs_embeds: Any = None, **more: Any) -> Any:
        return plain(input_ids, inputs_embeds=None if inputs_embeds is None else inputs_embeds.flip(1), **more)

    network.bert.forward = turned
    with pytest.raises(ls.InvalidInputError, match="other scores"):
        _require_same(network, torch.tensor([2, 5, 3]))


def test_window_layouts_of_sentences(folder: Path) -> None:
    task = HuggingFaceTagger(folder).task([TEXT, "bob lives in berlin"])
    plan = ls.SamplingPlan(8, 32)
    made = ls.certify(task, ls.Smoothing(WindowLayout(2, 0.02, 0.05), plan), ls.Settings(0.1, [0.0]))
    assert np.asarray(made["total"].sel(target="ratio")).tolist() == [5, 4]
