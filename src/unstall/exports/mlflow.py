"""A run in MLflow: its figures as metrics, what it ran on as parameters, the report as an artifact."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from unstall.exports.exporter import Exporter, ExportError
from unstall.exports.metrics import figures, parameters
from unstall.records.report import Report

_EXPERIMENT = "unstall"
_MAX_PARAMETER_CHARACTERS = 500  # MLflow's own limit in older servers


class MLflow(Exporter):
    """One MLflow run in the experiment ``unstall``, which is made if there is none."""

    name = "mlflow"
    help = "Log to MLflow: a tracking URI or folder."
    metavar = "URI"
    takes = ("report",)
    extra = "mlflow"

    def export(self, source: Report, target: str, flags: frozenset[str] = frozenset()) -> None:
        """Make the run; ExportError where MLflow does not take it."""
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient

        try:
            _log(MlflowClient(tracking_uri=target), source)
        except ImportError as error:  # a server needs mlflow-skinny only, a database or folder more
            raise ExportError(f"this MLflow store needs {error.name}: pip install mlflow") from error
        except MlflowException as error:
            raise ExportError(f"MLflow did not take the run: {str(error).splitlines()[0]}") from error


EXPORTER = MLflow()


def _log(client: Any, report: Report) -> None:
    experiment = client.get_experiment_by_name(_EXPERIMENT)
    experiment_id = experiment.experiment_id if experiment else client.create_experiment(_EXPERIMENT)
    run_id: str = client.create_run(experiment_id, run_name=report.run.id).info.run_id
    for key, value in figures(report).items():
        client.log_metric(run_id, key, value)
    for key, text in parameters(report).items():
        client.log_param(run_id, key, text[:_MAX_PARAMETER_CHARACTERS])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "unstall-report.json"
        path.write_bytes(report.to_json())
        client.log_artifact(run_id, str(path))
    client.set_terminated(run_id, "FINISHED" if report.run.exit_code in (0, None) else "FAILED")
