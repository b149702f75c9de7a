"""From a task to a labelled result, whatever the kind of input: sampling, keeping, certifying, certifying again."""

from localsmooth.pipeline.certify import certify
from localsmooth.pipeline.recertify import recertify, settings_of
from localsmooth.pipeline.run import Run

__all__ = ["Run", "certify", "recertify", "settings_of"]
