"""A run in Weights & Biases: its figures as the summary, each step's time as a series, the facts as the config."""

from __future__ import annotations

from unstall.exports.exporter import Exporter, ExportError
from unstall.exports.metrics import figures, parameters
from unstall.exports.tables import measured_seconds
from unstall.records.archive import Archive

_MAX_POINTS = 10_000  # of the series; W&B thins longer ones itself when it draws them


class WeightsAndBiases(Exporter):
    """One W&B run of job type ``unstall``."""

    name = "wandb"
    help = "Log to Weights & Biases: a project."
    metavar = "PROJECT"
    takes = ("archive",)
    extra = "wandb"
    flags = {"offline": "With --wandb: only write files, for `wandb sync`."}  # noqa: RUF012

    def export(self, source: Archive, target: str, flags: frozenset[str] = frozenset()) -> None:
        """Make the run; ExportError where W&B does not take it. ``WANDB_MODE`` and ``WANDB_DIR`` are W&B's own."""
        import wandb

        report, seconds = source.report, measured_seconds(source)
        try:
            run = wandb.init(
                project=target,
                name=report.run.id,
                job_type="unstall",
                config=parameters(report),
                mode="offline" if "offline" in flags else None,
                settings=wandb.Settings(silent=True, console="off"),
            )
        except (wandb.errors.Error, OSError) as error:
            raise ExportError(f"Weights & Biases did not take the run: {error}") from error
        every = 1 + len(seconds) // _MAX_POINTS
        for step in range(0, len(seconds), every):
            run.log({"unstall/step_seconds": seconds[step]}, step=step)
        run.summary.update(figures(report))
        run.finish(exit_code=report.run.exit_code or 0)


EXPORTER = WeightsAndBiases()
