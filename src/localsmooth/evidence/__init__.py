"""Evidence that a reviewer can check: a finished run verified from its files alone, and certificates that name it."""

from localsmooth.evidence.ledger import Checked, DoesNotHoldError, Verification
from localsmooth.evidence.verification import export_certificate, verify_run

__all__ = ["Checked", "DoesNotHoldError", "Verification", "export_certificate", "verify_run"]
