"""The remedies at run time inside a recorded run: an extension of the recording child, with a trial's plan."""

from __future__ import annotations

from typing import Any

from unstall.child import trial


def install(recording: Any) -> dict[str, list[Any]]:
    """Called once by the recording child, in every process of the program; returns what to install, and when."""
    return trial.targets(recording.options.get("settings") or {}, recording.directory)
