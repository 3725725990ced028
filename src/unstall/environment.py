"""The environment variables that unstall sets and reads, one constant each.

Standard library only: the user's process imports this too.
"""

from __future__ import annotations

LEDGER = "UNSTALL_LEDGER"
"""Set by the user: the ledger of every command, a path or a ``postgresql://`` URL."""

STATE = "UNSTALL_STATE"
"""Set by the user: the folder of a project's runs and ledger; relative to the working directory, as ``.unstall``."""

RUN_DIR = "UNSTALL_RUN_DIR"
"""Set for recorded programs: the folder that their processes write their recordings to."""

OPTIONS = "UNSTALL_OPTIONS"
"""Set for recorded programs: what to record, as JSON."""

CHILD = "UNSTALL_CHILD"
"""Set for trials of ``optimize``: the module that the bootstrap starts in place of the recorder."""

PLAN = "UNSTALL_PLAN"
"""Set for trials of ``optimize`` and ``prove``: what to count, check and write, as JSON that is sealed."""

BRIEF = "UNSTALL_BRIEF"
"""Set for the command of ``optimize --agent``: the file that says what to do."""

SANDBOX = "UNSTALL_SANDBOX"
"""Set inside a sandbox: its own folder."""

SANDBOX_MEANS = "UNSTALL_SANDBOX_MEANS"
"""Set inside a sandbox: what to watch in the program's processes, separated by commas."""

SANDBOX_KEEP = "UNSTALL_SANDBOX_KEEP"
"""Set inside a sandbox without an overlay: the folders that stay writable for real, separated as in ``PATH``."""
