"""The network that is told the noise: what comes with the package, and that a file can ask for it."""

from __future__ import annotations

import numpy as np
import torch

from localsmooth.config.packaged_models import DigitScenesModelSection
from localsmooth.config.sampling import SamplingSection
from localsmooth.execution import sample
from localsmooth.layout import GridLayout
from localsmooth.noise import Gaussian
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.scenes import CHECKPOINT, SCENE_SHAPE, TOLD_CHECKPOINT, DigitScenes, Split, load_unet


def test_it_has_the_size_of_the_other() -> None:
    assert TOLD_CHECKPOINT.stat().st_size < 1.02 * CHECKPOINT.stat().st_size
    told, untold = (
        {name: value.shape for name, value in load_unet(one).state_dict().items()}
        for one in (TOLD_CHECKPOINT, CHECKPOINT)
    )
    assert [name for name in told if told[name] != untold[name]] == ["encode_fine.0.convolution.weight"]


def test_a_section_asks_for_it() -> None:
    sampling = SamplingSection(n_candidate=1, n_bound=1)
    told, untold = (DigitScenesModelSection(kind="digit-scenes", told=told).build(sampling) for told in (True, False))
    assert told.told
    assert not untold.told
    assert told.fingerprint() != untold.fingerprint()


def test_it_reads_scenes_under_noise_that_falls_off_and_in_windows() -> None:
    """Two scenes that it was not trained on; most pixels are background, so digits are counted alone."""
    model = DigitScenesModelSection(kind="digit-scenes", told=True).build(SamplingSection(n_candidate=1, n_bound=1))
    images, labels = DigitScenes(Split.TEST, 0).stack(range(2))
    for margin in (None, 8):
        layout = GridLayout((3, 4), 0.25, 1.0, window_margin=margin, window_align=8).layout(
            (1, *SCENE_SHAPE), SCENE_SHAPE
        )
        options = SamplingOptions(batch_size=16, channels_last=True, check_model=False)
        plan = SamplingPlan(n_candidate=16, n_bound=1, seed=0)
        made = sample(model, list(torch.from_numpy(images)), [layout] * 2, Gaussian(), plan, options=options)
        candidates = np.stack([tally.candidate.reshape(SCENE_SHAPE) for tally in made])
        assert (candidates == labels)[labels > 0].mean() > 0.8
