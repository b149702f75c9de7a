"""Point clouds: coordinates per point, and a label per point."""

import lazy_loader

# A report needs the panel alone.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
