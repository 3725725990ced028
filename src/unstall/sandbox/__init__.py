"""The sandbox: an experiment's program runs as it always does, and what it writes is gone afterwards."""

from unstall.sandbox.sandbox import Sandbox, SandboxError, open_sandbox

__all__ = ["Sandbox", "SandboxError", "open_sandbox"]
