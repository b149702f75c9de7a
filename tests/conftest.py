"""Check array shapes and types of every call into the package while the tests run."""

from jaxtyping import install_import_hook

with install_import_hook("localsmooth", "beartype.beartype"):
    import localsmooth  # noqa: F401  (imported here so that the hook sees every module)
