"""`unstall export`: a recorded run's figures for other tools."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

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
    wanted = dict(_wanted(found, csv, parquet, prometheus, tensorboard, otlp, mlflow, wandb, offline))
    if not wanted:
        print("unstall: say where to, e.g. --csv steps.csv; see `unstall export --help`", file=sys.stderr)
        raise typer.Exit(_EXIT_USAGE)
    done = [_did(name, act) for name, act in wanted.items()]
    if not all(done):
        raise typer.Exit(1)


def _wanted(
    found: Archive,
    csv: Path | None,
    parquet: Path | None,
    prometheus: Path | None,
    tensorboard: Path | None,
    otlp: str | None,
    mlflow: str | None,
    wandb: str | None,
    offline: bool,
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Where to, and how; the library of each is imported when it is its turn."""
    from unstall.exports import tables

    report = found.report
    if csv:
        yield str(csv), lambda: tables.write_csv(found, csv)
    if parquet:
        yield str(parquet), lambda: tables.write_parquet(found, parquet)
    if prometheus:
        from unstall.exports import prometheus as textfile

        yield str(prometheus), lambda: textfile.write(report, prometheus)
    if tensorboard:
        from unstall.report import tensorboard as scalars

        yield str(tensorboard), lambda: scalars.write(report, list(enumerate(_durations(found))), tensorboard)
    if otlp:
        from unstall.exports import opentelemetry

        yield otlp, lambda: opentelemetry.send(report, otlp)
    if mlflow:
        from unstall.exports import mlflow as tracker

        yield mlflow, lambda: tracker.log(report, tracking_uri=mlflow)
    if wandb:
        from unstall.exports import wandb as cloud

        yield wandb, lambda: cloud.log(report, _durations(found), project=wandb, offline=offline)


def _durations(found: Archive) -> list[float]:
    return found.steps.durations[found.steps.measured].tolist() if found.steps else []


def _did(name: str, act: Callable[[], object]) -> bool:
    try:
        act()
    except Exception as error:
        # A tracker's library may raise anything, and the other targets are done all the same.
        kind = "" if isinstance(error, (OSError, RuntimeError, ValueError)) else f"{type(error).__name__}: "
        print(f"unstall: {name}: {kind}{' '.join(str(error).split())}", file=sys.stderr)
        return False
    print(f"exported to {name}")
    return True
