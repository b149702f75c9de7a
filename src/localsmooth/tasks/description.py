"""From what the tallies depend on to the words that say which smoothed classifier they are of."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from localsmooth.bounds import Automatic, CountRule, Sharing
from localsmooth.certificates import OutputVotes, ScoreCertificate
from localsmooth.layout import Layout
from localsmooth.results import RunInfo, Saving, SmoothedClassifier
from localsmooth.runs import RunIdentity
from localsmooth.tasks.record import ONE_BASIS, RunRecord, RunRecordError, load_record
from localsmooth.tasks.strategies import Strategies

__all__ = ["CHOSEN", "describe_smoothing", "run_facts", "sampled_at"]

CHOSEN = " share α was chosen from the candidate stage"
"""Part of the sentence of a result whose rule was left to the candidates."""

_SYMBOLS = {"gaussian": ("σ",), "uniform": ("λ",), "bernoulli": ("θ",), "sparse-flips": ("θ⁺", "θ⁻")}
_NAMED = 10
_DIGEST = re.compile(r"[0-9a-f]{64}")


def describe_smoothing(
    configuration: RunIdentity | None, layouts: Sequence[Layout], sampled: str
) -> SmoothedClassifier | None:
    """Describe the smoothed classifier that tallies were drawn of.

    Parameters
    ----------
    configuration
        What the tallies depend on; without it, nothing is known.
    layouts
        The layout of each item.
    sampled
        When the samples were complete.
    """
    if configuration is None:
        return None
    content: Mapping[str, Any] = configuration.content
    items: Sequence[Mapping[str, Any]] = content.get("items", ())
    noise: dict[str, Any] = dict(content["noise"])
    inputs = [content["graph"]] if "graph" in content else [item["content"] for item in items]
    placed = [content["layout"]] if "layout" in content else [item["layout"] for item in items]
    symbols = _SYMBOLS.get(str(noise.get("distribution")), ("level",))
    values = np.concatenate([layout.levels.reshape(-1, len(symbols)) for layout in layouts])
    shown = np.where(np.isfinite(values), values, np.nan)  # hidden inputs have no level, and are told of apart
    lowest, highest = ([float(bound) for bound in of(shown, axis=0)] for of in (np.nanmin, np.nanmax))
    return SmoothedClassifier(
        model=_digest([content["model"]["fingerprint"]]),
        data=_digest(inputs),
        noise=noise,
        levels=dict(zip(symbols, zip(lowest, highest, strict=True), strict=True)),
        layout=_digest(sorted(set(placed))),
        output_groups=max(layout.outputs.count for layout in layouts),
        input_groups=max(layout.inputs.count for layout in layouts),
        plan=dict(content["plan"]),
        package=f"localsmooth {metadata.version('localsmooth')}",
        sampled=sampled,
        hidden=any(layout.views is not None or not layout.visible.all() for layout in layouts),
    )


def _digest(texts: Sequence[object]) -> str:
    """The digest itself where there is one, so that it can be compared with what a model or a layout says."""
    lines = list(map(str, texts))
    if len(lines) == 1 and _DIGEST.fullmatch(lines[0]):
        return lines[0]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def sampled_at(out: Path | None, n_bound: int) -> str:
    """When the samples of a run that is complete were so: now, unless its directory said so of as many samples."""
    known = ""
    if out is not None:
        with suppress(RunRecordError):
            record = load_record(out)
            known = record.sampled if record.n_bound == n_bound and record.begun is None else ""
    return known or datetime.now(UTC).isoformat(timespec="seconds")


def run_facts(
    record: RunRecord,
    settings: Strategies,
    sampled: Sequence[tuple[Layout, OutputVotes]],
    rules: Sequence[Sharing],
    configuration: RunIdentity | None,
    assumptions: Sequence[str],
    *,
    outputs: str = "outputs",
    one_basis: bool = True,
    **said: Any,
) -> RunInfo:
    """What a result says of its run, and of what was proven from it.

    Parameters
    ----------
    record
        How the tallies came about.
    settings
        What was proven.
    sampled
        Layout and votes of each item.
    rules
        How the outputs of each shared α.
    configuration
        What the tallies depend on.
    assumptions
        What the promise rests on, besides what is so whatever the kind of input.
    outputs
        What the outputs are called.
    one_basis
        Whether votes and scores are combined where both are named.
    said
        What only the kind of input knows: budgets, norm, threat, and other fields of `RunInfo`.
    """
    recorded = {field.name: getattr(record, field.name) for field in fields(RunInfo) if hasattr(record, field.name)}
    saving = _saving(sampled, record)
    proven: dict[str, Any] = {
        "alpha": settings.alpha,
        "class_names": tuple(record.class_names),
        "bound_names": tuple(settings.bounds),
        "assumptions": (*assumptions, *_assumptions(settings, rules, record, saving, outputs, one_basis)),
        "proven": all(rule.simultaneous for rule in rules),
        "described": any(isinstance(rule, CountRule) for rule in rules),
        "saving": saving,
        "work": _work(sampled, record),
        "left_out": tuple(record.left_out),
        "smoothing": describe_smoothing(configuration, [layout for layout, _ in sampled], record.sampled),
    }
    return RunInfo(**recorded | proven | said)


def _work(sampled: Sequence[tuple[Layout, OutputVotes]], record: RunRecord) -> float | None:
    """Passes over the whole input that the samples of an item are worth; None where that is not known."""
    if not record.shown or len(sampled) != len(record.certified_items):
        return None
    made: list[float] = []
    for item, (layout, votes) in zip(record.certified_items, sampled, strict=True):
        first = np.unique(layout.outputs.labels, return_index=True)[1]
        counted = np.broadcast_to(votes.n, votes.votes.shape)[first] + record.n_candidate
        shares = record.shown[record.item_layouts[item]]
        if len(shares) != len(counted):
            raise RunRecordError(
                f"The record of the run says what a sample of {len(shares)} output groups costs (shown), but there are "
                f"{len(counted)}: it is damaged. Run the same certification into its directory again"
            )
        made.append(float(counted @ np.array(shares)))
    return float(np.mean(made))


def _saving(sampled: Sequence[tuple[Layout, OutputVotes]], record: RunRecord) -> Saving | None:
    """What stopping early saved; None where every group was sampled to the end."""
    if record.sequence is None and record.begun is None:
        return None
    counted: list[int] = []
    for layout, votes in sampled:
        first = np.unique(layout.outputs.labels, return_index=True)[1]
        counted.append(int(np.broadcast_to(votes.n, votes.votes.shape)[first].sum()))
    return Saving(tuple(counted), tuple(layout.outputs.count * record.n_bound for layout, _ in sampled))


def _chosen_for(name: str, rules: Sequence[Sharing], record: RunRecord) -> str:
    """Which items go by a rule, by their names where they are few."""
    chosen = [item for (item, _), rule in zip(record.kept_items, rules, strict=True) if rule.name == name]
    shown = f" ({', '.join(chosen)})" if len(chosen) <= _NAMED else ""
    return f"{name} for {len(chosen)} of {len(rules)} items{shown}"


def _assumptions(
    settings: Strategies,
    rules: Sequence[Sharing],
    record: RunRecord,
    saving: Saving | None,
    outputs: str,
    one_basis: bool,
) -> list[str]:
    """Sentences that a promise rests on whatever the kind of input."""
    sentences: list[str] = []
    # Rules that count need no sequence: early stopping or not, they bound the votes themselves.
    bounding = {
        rule.name
        if record.sequence is None or isinstance(rule, CountRule)
        else "the confidence sequence of early stopping"
        for rule in rules
    }
    holds = " and ".join(sorted(bounding))
    if saving is not None and record.begun is not None:
        sentences.append(
            f"Sampling was ended before its plan of N₂ = {record.n_bound} samples per output group: "
            f"{sum(saving.counted):,} of {sum(saving.planned):,} samples of the certified items were counted. When it "
            f"ended may depend on the votes: {holds} holds at every number of samples at once."
        )
    if saving is not None and record.sequence is not None:
        saved = "" if record.begun is not None else f" ({saving.total:.1%} of the planned samples were saved)"
        sentences.append(
            f"Output groups stop sampling when they are decided, after at most N₂ = {record.n_bound} samples{saved}. "
            f"Votes are bounded by {holds}, which holds at every number of samples at once."
        )
    if isinstance(settings.simultaneous, Automatic) and record.sequence is None:
        chosen = dict.fromkeys(rule.name for rule in rules)
        among = "" if len(chosen) == 1 else f": {'; '.join(_chosen_for(name, rules, record) for name in chosen)}"
        sentences.append(f"How {outputs}{CHOSEN}, whose samples are independent of those that bound the votes{among}.")
    if record.extended is not None:
        sentences.append(
            f"The run began with N₂ = {record.extended} and was extended to {record.n_bound}. How many samples were "
            f"drawn may depend on the votes: {holds} holds at every number of samples at once."
        )
    if record.candidates is not None:
        run, model = (_digest([record.candidates[name]])[:16] for name in ("run", "model"))
        sentences.append(
            f"Candidates were chosen by the model {model} in the run {run}. The samples that bound the probabilities "
            "are of this model alone, and independent of that run."
        )
    if settings.needs_scores:
        sentences.append(f"Scores bounded by {settings.score_bound.name}.")
    if one_basis and len({isinstance(each, ScoreCertificate) for each in settings.certificates}) > 1:
        sentences.append(ONE_BASIS)
    counting = [rule for rule in rules if isinstance(rule, CountRule)]
    if counting:
        always = ", at every number of samples" if all(rule.anytime for rule in counting) else ""
        sentences.append(
            f"Bounds are for the certified counts: these hold with probability 1 − α{always}. The probability, "
            f"threshold and radius shown for one of the {outputs}, and whether it abstains, follow from a bound at "
            f"level α of its own, as a description; they do not hold for all {outputs} together."
        )
    discount = max(0 if isinstance(rule, CountRule) else rule.discount for rule in rules)
    if discount:
        sentences.append(
            f"Up to {discount} bounds may fail unnoticed; as many {outputs} are subtracted from every certified count."
        )
    if record.noise.get("clamp"):
        sentences.append("Noisy inputs are clamped to the input bounds; the clamp is part of the base classifier.")
    if record.precision != "float32":
        sentences.append(f"The base classifier is the model as evaluated in {record.precision}.")
    return sentences
