"""A run in Weights & Biases: its figures as the summary, each step's time as a series, the facts as the config."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unstall.exports.flat import figures, parameters
from unstall.records.report import Report

_MISSING = 'Weights & Biases is not installed; run: pip install "unstall[wandb]"'
_MOST_POINTS = 10_000  # of the series; W&B thins longer ones itself when it draws them


def log(
    report: Report,
    durations: Sequence[float],
    *,
    project: str = "unstall",
    offline: bool = False,
    folder: Path | None = None,
) -> None:
    """Make a W&B run of a report.

    Args:
        report: the finished report.
        durations: seconds of each measured step.
        project: W&B's project.
        offline: write to ``folder`` only, for ``wandb sync`` later; also by ``WANDB_MODE=offline``.
        folder: where W&B keeps its files; the working directory if not given.

    Raises:
        RuntimeError: W&B is not installed, or does not take the run.
    """
    try:
        import wandb
    except ImportError as error:
        raise RuntimeError(_MISSING) from error
    try:
        run = wandb.init(
            project=project,
            name=report.run.id,
            job_type="unstall",
            config=parameters(report),
            mode="offline" if offline else None,
            dir=str(folder) if folder else None,
            settings=wandb.Settings(silent=True, console="off"),
        )
    except (wandb.errors.Error, OSError) as error:
        raise RuntimeError(f"Weights & Biases did not take the run: {error}") from error
    every = 1 + len(durations) // _MOST_POINTS
    for step in range(0, len(durations), every):
        run.log({"unstall/step_seconds": durations[step]}, step=step)
    run.summary.update(figures(report))
    run.finish(exit_code=report.run.exit_code or 0)
