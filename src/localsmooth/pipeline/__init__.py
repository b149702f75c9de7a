"""From a model and its inputs to a labelled result: sampling, bounds, certificates and the collective problem."""

from localsmooth.pipeline.certify import certify
from localsmooth.pipeline.method import ItemMethod
from localsmooth.pipeline.recertify import recertify
from localsmooth.pipeline.settings import CertificationSettings
from localsmooth.pipeline.stopping import StopWhenDecided
from localsmooth.pipeline.threat import Flips, ItemThreat, Kind, NormBall

__all__ = [
    "CertificationSettings",
    "Flips",
    "ItemMethod",
    "ItemThreat",
    "Kind",
    "NormBall",
    "StopWhenDecided",
    "certify",
    "recertify",
]
