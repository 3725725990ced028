"""vLLM's offline engine: each call of ``LLM.generate`` or ``LLM.chat`` is a request, for all of its prompts.

The engine itself is a process of its own, in which nothing is recorded: what a request waits for is not known.
"""

from __future__ import annotations

from typing import Any

from unstall.child.recording import seam_ready, wrap_attribute
from unstall.child.seams.transformers import REQUEST
from unstall.records.vocabulary import Seam


def _install(module: Any) -> None:
    seam_ready()
    for attribute in ("generate", "chat"):
        getattr(module.LLM, attribute)  # the error of a version without it becomes a note
        wrap_attribute(module.LLM, attribute, REQUEST, after=_sequences)


def _sequences(result: Any, *args: Any, **kwargs: Any) -> int:
    """One answer for each prompt."""
    return len(result) if type(result) is list else 0


SEAMS: tuple[Seam, ...] = ()
TARGETS = {"vllm.entrypoints.llm": _install}
