"""Prove how many predictions of a multi-output model one adversarial input can change.

The whole public interface on one page. A model, its inputs, a layout and a noise go into `certify`; a labelled data set
comes out, which `write_report` shows. Certificates from elsewhere go into `Problem` and `solve`.
"""

from importlib.metadata import version

import lazy_loader

# What `__init__.pyi` lists is imported on first use: much of it takes seconds, and `solve` needs none of that.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = version("localsmooth")
