"""The command line."""

from localsmooth.cli.app import main

__all__ = ["main"]
