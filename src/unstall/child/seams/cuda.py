"""CUDA: blocking copies and synchronisation, recorded only once a program starts to use a GPU."""

from __future__ import annotations

import sys
from typing import Any

from unstall.child.recording import wrap_attribute
from unstall.records import vocabulary
from unstall.records.vocabulary import Seam, Tick

TRANSFER = Seam("~transfer.*", phase=vocabulary.TRANSFER.name, counts=Tick.OTHER)
SYNC = Seam("~sync.*", phase=vocabulary.SYNC.name, counts=Tick.OTHER)

_TRANSFERS = ("to", "cuda", "pin_memory")
_SYNCS = ("item", "cpu", "tolist", "numpy", "nonzero", "__bool__", "__int__", "__float__")


def _install_tensor_calls() -> None:
    torch: Any = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", None)
    if tensor is None:
        return
    for name in _TRANSFERS:
        wrap_attribute(tensor, name, TRANSFER, name)
    for name in _SYNCS:
        wrap_attribute(tensor, name, SYNC, name)


def _install(module: Any) -> None:
    wrap_attribute(module, "synchronize", SYNC, "synchronize")
    for event_class in (getattr(module, "Event", None), getattr(module, "Stream", None)):
        if event_class is not None:
            wrap_attribute(event_class, "synchronize", SYNC, "synchronize")
    module._lazy_call(_install_tensor_calls)  # runs when, and only if, CUDA is initialised


SEAMS = (TRANSFER, SYNC)
TARGETS = {"torch.cuda": _install}
