"""ONNX Runtime: each call of a session is one forward."""

from __future__ import annotations

from typing import Any

from unstall.child.recording import seam_ready, wrap_attribute
from unstall.records import vocabulary
from unstall.records.vocabulary import Seam, SeamGroup, Tick

RUN = Seam("~onnxruntime.run", phase=vocabulary.FORWARD.name, counts=Tick.FORWARD, group=SeamGroup.MODULES)


def _install(module: Any) -> None:
    seam_ready()
    wrap_attribute(module.Session, "run", RUN)


SEAMS = (RUN,)
TARGETS = {"onnxruntime.capi.onnxruntime_inference_collection": _install}
