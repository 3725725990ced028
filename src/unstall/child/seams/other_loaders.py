"""Loaders that are none of torch's: SPDL's, nodes of torchdata, Ray Data. They work in threads or in other processes.

A ``StatefulDataLoader`` is one of torch's with its own start of an epoch.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from unstall.child.recording import seam_ready, wrap, wrap_attribute
from unstall.child.seams.loader import EPOCH, NEXT
from unstall.records.vocabulary import Seam


def _install_spdl(module: Any) -> None:
    seam_ready()
    wrap_attribute(module.Pipeline, "get_item", NEXT)


def _install_nodes(module: Any) -> None:
    wrap_attribute(module.LoaderIterator, "next", NEXT)


def _install_stateful(module: Any) -> None:
    wrap_attribute(module.StatefulDataLoader, "__iter__", EPOCH)


def _install_ray_data(module: Any) -> None:
    """Ray Data's loop takes its batches from a generator. Its own method is recorded: no frame of ours is between."""
    original = module.iter_threaded

    @functools.wraps(original)
    def iter_threaded(*args: Any, **kwargs: Any) -> Iterator[Any]:
        return iter(wrap(original(*args, **kwargs).__next__, NEXT), object())

    seam_ready()
    module.iter_threaded = iter_threaded


SEAMS: tuple[Seam, ...] = ()
TARGETS = {
    "ray.data._internal.block_batching.iter_batches": _install_ray_data,
    "spdl.pipeline._pipeline": _install_spdl,
    "torchdata.nodes.loader": _install_nodes,
    "torchdata.stateful_dataloader.stateful_dataloader": _install_stateful,
}
