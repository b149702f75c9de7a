"""Check array shapes and types of every call into the package while the tests run."""

from hypothesis import settings
from jaxtyping import install_import_hook

install_import_hook("localsmooth", "beartype.beartype")

# The same examples in every run, however slow the machine is.
settings.register_profile("localsmooth", derandomize=True, deadline=None)
settings.load_profile("localsmooth")
