"""A detached signature by a key of the user's: Ed25519, over the bytes of a file."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from types import ModuleType
from typing import Any

from localsmooth.errors import InvalidInputError

__all__ = ["ALGORITHM", "loaded_private_key", "signature_of", "signature_path", "signature_problem"]

ALGORITHM = "Ed25519"


def signature_path(certificate: Path) -> Path:
    """Where the signature of a certificate is: beside it, with .sig after its name."""
    return certificate.with_name(f"{certificate.name}.sig")


def _serialization() -> ModuleType:
    try:
        from cryptography.hazmat.primitives import serialization
    except ImportError:
        raise InvalidInputError(
            "key", "signatures need the package cryptography, which is not installed", "pip install cryptography"
        ) from None
    return serialization


def loaded_private_key(path: Path) -> Any:
    """Read a private key in PEM.

    Raises
    ------
    InvalidInputError
        If the package cryptography is missing, or the file is no Ed25519 key without a password.
    """
    serialization = _serialization()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    remedy = "Make one: openssl genpkey -algorithm ed25519 -out key.pem"
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except TypeError:
        raise InvalidInputError(
            "key", f"{path} is protected by a password", "Write it without one first: openssl pkey -in key.pem"
        ) from None
    except Exception as error:  # the library has many kinds
        raise InvalidInputError("key", f"{path} cannot be read as a private key ({error})", remedy) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidInputError("key", f"{path} is no {ALGORITHM} key", remedy)
    return key


def signature_of(content: bytes, key: Any) -> bytes:
    """Sign some bytes; the signature is one line of base64."""
    return base64.b64encode(key.sign(content)) + b"\n"


def signature_problem(content: bytes, signature: bytes, public_key: Path) -> str:
    """Say why a signature is not that of a key over some bytes; empty if it is.

    Raises
    ------
    InvalidInputError
        If the package cryptography is missing, or the file is no public Ed25519 key.
    """
    serialization = _serialization()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    remedy = "Write it from the private one: openssl pkey -in key.pem -pubout -out public.pem"
    try:
        key = serialization.load_pem_public_key(public_key.read_bytes())
    except Exception as error:  # the library has many kinds
        raise InvalidInputError(
            "public_key", f"{public_key} cannot be read as a public key ({error})", remedy
        ) from None
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidInputError("public_key", f"{public_key} is no public {ALGORITHM} key", remedy)
    try:
        raw = base64.b64decode(signature.removesuffix(b"\n"), validate=True)
        if base64.b64encode(raw) + b"\n" != signature:
            return "the signature is not one line of base64"
        key.verify(raw, content)
    except (binascii.Error, InvalidSignature):
        return "the signature is not that of this key over these bytes"
    return ""
