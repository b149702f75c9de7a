"""Prove how many predictions of a multi-output model one adversarial input can change.

The whole public interface on one page. A model, its inputs, a layout and a noise go into `certify`; a labelled data set
comes out, which `write_report` shows. Certificates from elsewhere go into `Problem` and `solve`.
"""

from importlib.metadata import version

import lazy_loader

from localsmooth.moved import finder

# What `__init__.pyi` lists is imported on first use: much of it takes seconds, and `solve` needs none of that.
_known, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
# Earlier versions showed everything here.
_ROOMS = ("baselines", "bounds", "certificates", "collective", "layout", "tasks.arrays")
__getattr__ = finder(__name__, [f"localsmooth.{room}" for room in _ROOMS], _known)
__version__ = version("localsmooth")
