"""`unstall export`: a recorded run's figures for other tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unstall import exports
from unstall.benchmark import archive
from unstall.benchmark.archive import ArchiveError

if TYPE_CHECKING:
    from unstall.records.archive import Archive

_EXIT_USAGE = 2


def export(
    run: str = typer.Argument("last", help="A run: id, beginning or end of one, `last`, folder or file."),
    csv: Path | None = typer.Option(None, "--csv", help="Write every step as CSV."),
    parquet: Path | None = typer.Option(None, "--parquet", help="Write every step as Parquet."),
    prometheus: Path | None = typer.Option(None, "--prometheus", help="Write for node_exporter's textfile collector."),
    tensorboard: Path | None = typer.Option(None, "--tensorboard", help="Write scalars into this folder."),
    otlp: str | None = typer.Option(
        None, "--otlp", help="Send to an OpenTelemetry collector: http://host:4318/v1/metrics."
    ),
    mlflow: str | None = typer.Option(None, "--mlflow", help="Log to MLflow: a tracking URI or folder."),
    wandb: str | None = typer.Option(None, "--wandb", help="Log to Weights & Biases: a project."),
    offline: bool = typer.Option(False, "--offline", help="With --wandb: write files only, for `wandb sync`."),
) -> None:
    """Export a recorded run: to files, a metrics collector, or a tracker of experiments."""
    try:
        found = archive.load(run)
    except ArchiveError as error:
        print(f"unstall: {error}", file=sys.stderr)
        raise typer.Exit(_EXIT_USAGE) from error
    targets = {
        "csv": csv, "parquet": parquet, "prometheus": prometheus, "tensorboard": tensorboard, "otlp": otlp,
        "mlflow": mlflow, "wandb": wandb,
    }  # fmt: skip
    wanted = {name: str(target) for name, target in targets.items() if target}
    if not wanted:
        print("unstall: say where to, e.g. --csv steps.csv; see `unstall export --help`", file=sys.stderr)
        raise typer.Exit(_EXIT_USAGE)
    done = [_did(name, target, found, offline) for name, target in wanted.items()]
    if not all(done):
        raise typer.Exit(1)


def _did(name: str, target: str, found: Archive, offline: bool) -> bool:
    try:
        exports.export(exports.exporters()[name], found, target, {"offline"} if offline else ())
    except exports.ExportError as error:
        print(f"unstall: {target}: {error}", file=sys.stderr)
        return False
    print(f"exported to {target}")
    return True
