"""Loaders that are none of torch's: SPDL's, nodes of torchdata, Ray Data, DALI. They work in threads or elsewhere.

A ``StatefulDataLoader`` is one of torch's with its own start of an epoch.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from unstall.child.families import visit_family
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


def _install_dali(module: Any) -> None:
    """The iterators of all its plug-ins, for torch, JAX and Paddle, each with a ``__next__`` of its own.

    A class of the program's that is derived from one calls that: it would count twice.
    """
    library = module.__name__.partition(".plugin")[0]

    def visit(iterator: type) -> None:
        if iterator.__module__.startswith(library) and "__next__" in iterator.__dict__:
            wrap_attribute(iterator, "__next__", NEXT)

    seam_ready()
    visit_family(module._DaliBaseIterator, visit)


SEAMS: tuple[Seam, ...] = ()
TARGETS = {
    "nvidia.dali.plugin.base_iterator": _install_dali,
    "ray.data._internal.block_batching.iter_batches": _install_ray_data,
    "spdl.pipeline._pipeline": _install_spdl,
    "torchdata.nodes.loader": _install_nodes,
    "torchdata.stateful_dataloader.stateful_dataloader": _install_stateful,
}
