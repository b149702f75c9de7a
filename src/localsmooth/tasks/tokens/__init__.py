"""Embedded sequences of tokens, with a label for every token."""

from localsmooth.tasks.tokens.huggingface import HuggingFaceTagger, Sentence
from localsmooth.tasks.tokens.layout import WindowLayout
from localsmooth.tasks.tokens.model import EmbeddedTagger, features_last
from localsmooth.tasks.tokens.task import TokenTask

__all__ = ["EmbeddedTagger", "HuggingFaceTagger", "Sentence", "TokenTask", "WindowLayout", "features_last"]
