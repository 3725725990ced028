"""Loaders that are none of torch's: SPDL's pipelines and torchdata's nodes, which work in threads of their own.

A ``StatefulDataLoader`` is one of torch's with its own start of an epoch.
"""

from __future__ import annotations

from typing import Any

from unstall.child.recording import seam_ready, wrap_attribute
from unstall.child.seams.loader import EPOCH, NEXT
from unstall.records.vocabulary import Seam


def _install_spdl(module: Any) -> None:
    seam_ready()
    wrap_attribute(module.Pipeline, "get_item", NEXT)


def _install_nodes(module: Any) -> None:
    wrap_attribute(module.LoaderIterator, "next", NEXT)


def _install_stateful(module: Any) -> None:
    wrap_attribute(module.StatefulDataLoader, "__iter__", EPOCH)


SEAMS: tuple[Seam, ...] = ()
TARGETS = {
    "spdl.pipeline._pipeline": _install_spdl,
    "torchdata.nodes.loader": _install_nodes,
    "torchdata.stateful_dataloader.stateful_dataloader": _install_stateful,
}
