"""A run in MLflow: its figures as metrics, what it ran on as parameters, the report as an artifact."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from unstall.exports.flat import figures, parameters
from unstall.records.report import Report

_MISSING = 'MLflow is not installed; run: pip install "unstall[mlflow]"'
_LONGEST = 500  # characters of a parameter, MLflow's own limit in older servers


def log(report: Report, *, tracking_uri: str | None = None, experiment: str = "unstall") -> str:
    """Make an MLflow run of a report and return its id.

    Args:
        report: the finished report.
        tracking_uri: the server or folder; MLflow's own setting (``MLFLOW_TRACKING_URI``) if not given.
        experiment: its name; made if there is none.

    Raises:
        RuntimeError: MLflow is not installed, or does not take the run.
    """
    try:
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient
    except ImportError as error:
        raise RuntimeError(_MISSING) from error
    try:
        return _log(MlflowClient(tracking_uri=tracking_uri), report, experiment)
    except ImportError as error:  # a server needs mlflow-skinny only, a database or folder more
        raise RuntimeError(f"this place of MLflow's needs {error.name}: pip install mlflow") from error
    except (MlflowException, OSError) as error:
        raise RuntimeError(f"MLflow did not take the run: {str(error).splitlines()[0]}") from error


def _log(client: Any, report: Report, name: str) -> str:
    experiment = client.get_experiment_by_name(name)
    experiment_id = experiment.experiment_id if experiment else client.create_experiment(name)
    run_id: str = client.create_run(experiment_id, run_name=report.run.id).info.run_id
    for key, value in figures(report).items():
        client.log_metric(run_id, key, value)
    for key, text in parameters(report).items():
        client.log_param(run_id, key, text[:_LONGEST])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "unstall-report.json"
        path.write_bytes(report.to_json())
        client.log_artifact(run_id, str(path))
    client.set_terminated(run_id, "FINISHED" if report.run.exit_code in (0, None) else "FAILED")
    return run_id
