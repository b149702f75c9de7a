"""Kinds of input: what differs between them, and the contract that the pipeline knows them by."""

import lazy_loader

# A report looks up which kinds there are, and needs nothing else of them.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
