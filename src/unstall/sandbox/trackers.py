"""Experiment trackers' own switches for working without their servers, as their documentation names them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_OFFLINE = {
    "WANDB_MODE": "offline",  # docs.wandb.ai: environment variables
    "COMET_START_ONLINE": "0",  # comet.com/docs: comet_ml.start; its older classes go offline when a request fails
    "NEPTUNE_MODE": "offline",  # docs.neptune.ai: offline logging
    "CLEARML_OFFLINE_MODE": "1",  # clear.ml/docs: offline mode
    "SWANLAB_MODE": "offline",  # docs.swanlab.cn: swanlab offline
    "DVC_STUDIO_OFFLINE": "true",  # dvc.org/doc: environment variables
    "DVC_NO_ANALYTICS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",  # huggingface.co/docs: environment variables
    "DO_NOT_TRACK": "1",
}
_OFF_ALREADY = {"WANDB_MODE": {"disabled", "dryrun"}, "NEPTUNE_MODE": {"debug"}, "SWANLAB_MODE": {"disabled", "local"}}


def offline(env: Mapping[str, str], folder: Path) -> dict[str, str]:
    """What to set so that trackers write nothing to the outside; one that is off already stays off.

    MLflow has no such mode: a run meant for its server goes to files in ``folder`` (mlflow.org: tracking URI).
    """
    changes = {name: value for name, value in _OFFLINE.items() if env.get(name) not in _OFF_ALREADY.get(name, ())}
    if env.get("MLFLOW_TRACKING_URI", "").startswith(("http:", "https:", "databricks")):
        changes["MLFLOW_TRACKING_URI"] = (folder / "mlruns").as_uri()
    return changes
