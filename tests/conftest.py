"""Check array shapes and types of every call into the package while the tests run."""

from jaxtyping import install_import_hook

install_import_hook("localsmooth", "beartype.beartype")
