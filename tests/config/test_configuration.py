"""A configuration is refused before anything runs, and the message names the key and the nearest valid one."""

import copy

import pytest

from localsmooth.certificates import ExactVotes, RenyiVotes
from localsmooth.config import ConfigurationError, load_configuration, parse_configuration
from localsmooth.noise import SparseFlips

VALID = {
    "model": {"kind": "digit-scenes"},
    "data": {"kind": "digit-scenes"},
    "layout": {"cells": [3, 4]},
    "noise": {"distribution": "gaussian", "sigma_min": 0.2, "sigma_max": 1.0},
    "sampling": {"n_candidate": 10, "n_bound": 100},
    "certificate": {"alpha": 0.01, "budgets": {"stop": 2.0, "count": 5}},
}


def changed(path: str, value: object) -> dict[str, object]:
    values = copy.deepcopy(VALID)
    *sections, key = path.split(".")
    target: dict[str, object] = values
    for section in sections:
        target = target[section]  # type: ignore[assignment]
    if value is None:
        del target[key]
    else:
        target[key] = value
    return values


def test_valid_configuration_gives_its_budgets() -> None:
    assert parse_configuration(VALID).certificate.budget_values() == [0.0, 0.5, 1.0, 1.5, 2.0]
    listed = parse_configuration(changed("certificate.budgets", [1.0, 0.5]))
    assert listed.certificate.budget_values() == [0.5, 1.0]


@pytest.mark.parametrize(
    ("path", "value", "messages"),
    [
        ("sampling.n_bond", 5, ['sampling.n_bond: unknown key. Did you mean "n_bound"?']),
        ("smapling", {}, ['smapling: unknown key. Did you mean "sampling"?']),
        ("sampling.n_bound", 0, ["sampling.n_bound", "greater than or equal to 1"]),
        ("certificate.alpha", 1.0, ["certificate.alpha", "less than 1"]),
        ("certificate.alpha", 0.0, ["certificate.alpha", "greater than 0"]),
        ("certificate.alpha", float("nan"), ["certificate.alpha"]),
        ("certificate.alpha", True, ["certificate", "alpha: true and false are no numbers"]),
        ("sampling.n_bound", True, ["sampling", "n_bound: true and false are no numbers"]),
        ("noise.sigma_min", True, ["noise", "sigma_min: true and false are no numbers"]),
        ("layout.cells", [3, True], ["layout", "cells: true and false are no numbers"]),
        ("data.items", [True], ["data", "items: true and false are no numbers"]),
        (
            "certificate.bounds",
            ["envelop"],
            ['certificate.bounds[0]: "envelop" is not valid. Did you mean "envelope"?'],
        ),
        ("certificate.bounds", [], ["certificate.bounds"]),
        ("certificate.budgets", [], ["certificate.budgets", "at least 1 item"]),
        ("certificate.budgets", [1.0, -1.0], ["certificate.budgets[1]", "greater than or equal to 0"]),
        ("certificate.budgets", {"stop": 2.0, "count": 100_001}, ["budgets.count", "less than or equal to 100000"]),
        ("certificate.budgets", {"stop": 2.0, "cuont": 5}, ['budgets.cuont: unknown key. Did you mean "count"?']),
        (
            "certificate.budgets",
            {"start": 2.0, "stop": 1.0, "count": 5},
            ["certificate.budgets", "start must be below stop"],
        ),
        ("model.kind", "torh", ['model.kind: "torh" is not valid. Did you mean "torch"?']),
        ("model.kind", None, ["model.kind: this key is missing"]),
        ("model", {"kind": "torch"}, ["model.factory: this key is missing"]),
        (
            "model",
            {"kind": "onnx", "path": "absent.onnx", "thresold": 0.3},
            ["model.path: no such file", '"threshold"'],
        ),
        ("layout", None, ["layout: this key is missing"]),
        ("layout.metric", "euclid", ['Did you mean "euclidean"?']),
        ("layout.cells", [0], ["layout.cells[0]"]),
        ("noise.sigma_min", -1.0, ["noise.sigma_min", "greater than 0"]),
        ("noise.sigma_min", 5.0, ["noise", "sigma_max must not be below sigma_min"]),
        ("noise.sigma_max", float("inf"), ["noise.sigma_max"]),
        ("sampling.stop_for", "largest-budget", ["sampling: stop_for has no effect without stop_early"]),
        ("sampling.score_grid", 100, ["sampling: score_grid has no effect without scores"]),
        (
            "certificate",
            {"alpha": 0.1, "budgets": [1.0], "base": ["exact-votes"], "renyi_orders": [2.0]},
            ['certificate: renyi_orders has no effect unless "renyi-votes" is in base'],
        ),
    ],
)
def test_fault_names_itself(path: str, value: object, messages: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_configuration(changed(path, value))
    for message in messages:
        assert message in str(caught.value)


def test_orders_need_the_certificate_that_has_them() -> None:
    orders = changed("certificate.renyi_orders", [2.0, 3.0])
    configuration = parse_configuration(orders)
    with pytest.raises(ConfigurationError, match=r"certificate\.renyi_orders: .*gaussian-votes go with this noise"):
        configuration.certificate.build(configuration.noise.build())
    bits = {"distribution": "bernoulli", "theta_min": 0.1, "theta_max": 0.2}
    flips = parse_configuration({**orders, "noise": bits})
    assert flips.certificate.build(flips.noise.build()).certificates == (RenyiVotes((2.0, 3.0)),)
    with pytest.raises(ConfigurationError, match="renyi_orders has no effect"):
        parse_configuration({"graph": {}, "certificate": {"base": ["exact-votes"], "renyi_orders": [2.0]}})


def test_graphs_take_the_settings_of_exact_votes() -> None:
    section = {"base": ["exact-votes"], "exact_votes": {"vectors": 10_000}}
    configuration = parse_configuration({"graph": {}, "certificate": section})
    assert configuration.certificate.build(SparseFlips()).certificates == (ExactVotes(vectors=10_000),)
    with pytest.raises(ConfigurationError, match="exact_votes has no effect"):
        parse_configuration({"graph": {}, "certificate": {"exact_votes": {"vectors": 10_000}}})


def test_every_fault_is_listed_at_once() -> None:
    values = changed("sampling.n_bond", 5)
    values["layout"] = {"cells": [3], "metrc": "chebyshev"}
    with pytest.raises(ConfigurationError, match=r"(?s)metrc.*n_bond"):
        parse_configuration(values)


def test_files_that_are_no_configuration_are_refused(tmp_path) -> None:
    with pytest.raises(ConfigurationError, match="no such file"):
        load_configuration(tmp_path / "absent.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("[model\n")
    with pytest.raises(ConfigurationError, match="not valid TOML"):
        load_configuration(broken)
    broken.write_bytes(b"\xff\xfd")
    with pytest.raises(ConfigurationError, match="not valid TOML"):
        load_configuration(broken)
    broken.write_text("#" * (1 << 20) + "\n")
    with pytest.raises(ConfigurationError, match="1 MiB"):
        load_configuration(broken)
