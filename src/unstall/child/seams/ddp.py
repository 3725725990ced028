"""DistributedDataParallel: what torch itself logs of the exchange of gradients, which C++ does inside backward.

torch times the first ten steps and then every hundredth, whether anybody asks or not: how long the exchange took, how
much of it backward hid, and the sizes of the buckets. It is read after an update of the optimizer, by torch's own hook,
which steps aside where torch.compile traces one: nothing that is compiled sees anything of ours.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

from unstall.child import handlers, recording
from unstall.child.recording import wrap_attribute
from unstall.records.vocabulary import Seam

MADE = Seam("~ddp.made")
_FIRST, _OFTEN_UNTIL, _EVERY = 4, 12, 50
"""The updates after which it is read; the first steps build their buckets."""
_NANOSECONDS = ("backward_comm_time", "backward_compute_comm_overlap_time", "backward_compute_time")

_models: list[weakref.ref[Any]] = []
_updates = 0


def _install(module: Any) -> None:
    wrap_attribute(module.DistributedDataParallel, "__init__", MADE, after=_on_created)


def _on_created(result: Any, model: Any, *args: Any, **kwargs: Any) -> int:
    try:
        if not _models:
            _follow_updates()
        _models.append(weakref.ref(model))
    except Exception as error:
        if handlers.raised(error):
            raise
    return 0


def _follow_updates() -> None:
    is_compiling = sys.modules["torch"].compiler.is_compiling

    def updated(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not is_compiling():
            _updated()

    sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(updated)


def _updated() -> None:
    """Read what was logged of the steps since the last time."""
    global _updates
    _updates += 1
    if _FIRST <= _updates <= _OFTEN_UNTIL or _updates % _EVERY == 0:
        try:
            for reference in _models:
                model = reference()
                if model is not None and model.logger is not None and recording.emit_fact is not None:
                    _emit_figures(model.logger._get_ddp_logging_data(), id(model))
        except Exception as error:  # other versions of torch log other figures
            if handlers.raised(error):
                raise


def _emit_figures(logged: Any, address: int) -> None:
    words, figures = logged.strs_map, logged.ints_map
    if recording.emit_fact is None or any(name not in figures for name in _NANOSECONDS):
        return
    exchange, hidden, backward = (figures[name] for name in _NANOSECONDS)
    sizes = words.get("rebuilt_bucket_sizes") or words.get("bucket_sizes") or ""
    recording.emit_fact(
        "ddp",
        model=address,
        iteration=figures["iteration"],
        exchange_ns=exchange,
        hidden_ns=hidden,
        backward_ns=backward,
        buckets=[int(size) for size in sizes.split(",") if size.strip().isdigit()],
        looks_for_unused=bool(figures.get("find_unused_parameters")),
        unused_bytes=figures.get("unused_parameter_size", 0),
        copies_buckets=not figures.get("gradient_as_bucket_view", 1),
    )


SEAMS = (MADE,)
TARGETS = {"torch.nn.parallel.distributed": _install}
