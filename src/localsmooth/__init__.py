"""Prove how many predictions of a multi-output model one adversarial input can change."""

from importlib.metadata import version

__version__ = version("localsmooth")
