"""Logging, plotting, checkpoints: the calls of common libraries that serve the person, not the model."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from unstall.child import finding
from unstall.child.recording import wrap_attribute
from unstall.records import vocabulary
from unstall.records.vocabulary import Seam, SeamGroup, Tick

CALLBACK = Seam(
    "~callback.*", phase=vocabulary.CALLBACK.name, counts=Tick.OTHER, group=SeamGroup.CALLBACKS, stub="callbacks"
)

_CALLS: dict[str, tuple[tuple[str | None, tuple[str, ...]], ...]] = {
    # module: ((class or None for the module itself, attributes), ...)
    "torch.serialization": ((None, ("save",)),),
    "torch.utils.tensorboard.writer": (
        (
            "SummaryWriter",
            (
                "add_scalar", "add_scalars", "add_histogram", "add_image", "add_images", "add_figure", "add_video",
                "add_audio", "add_text", "add_graph", "add_embedding", "add_pr_curve", "add_hparams", "flush",
            ),
        ),
    ),
    "tensorboardX.writer": (
        ("SummaryWriter", ("add_scalar", "add_scalars", "add_histogram", "add_image", "add_figure", "flush")),
    ),
    "matplotlib.figure": (("Figure", ("savefig",)),),
    "matplotlib.pyplot": ((None, ("pause", "show")),),
    "wandb.sdk.wandb_run": (("Run", ("log", "log_artifact", "watch")),),
    "mlflow.tracking.fluent": ((None, ("log_metric", "log_metrics", "log_artifact", "log_figure", "log_params")),),
    "logging": (("Logger", ("handle",)),),
}  # fmt: skip


def _installer(calls: tuple[tuple[str | None, tuple[str, ...]], ...]) -> Any:
    def install(module: Any) -> None:
        for class_name, attributes in calls:
            owner = getattr(module, class_name, None) if class_name else module
            if owner is None:
                continue
            for attribute in attributes:
                label = f"{class_name}.{attribute}" if class_name else attribute
                wrap_attribute(owner, attribute, CALLBACK, f"{module.__name__.split('.')[0]}.{label}")

    return install


def _find() -> list[FunctionType]:
    """Those of the libraries that are imported."""
    return [
        function
        for module, calls in _CALLS.items()
        for class_name, attributes in calls
        for function in finding.members(module, *attributes, owner=class_name)
    ]


SEAMS = (CALLBACK,)
TARGETS = {module: _installer(calls) for module, calls in _CALLS.items()}
FINDERS = {CALLBACK.stub: _find}
