"""Each exporter, read back by the library it is meant for."""

from __future__ import annotations

import csv
import http.server
import math
import sys
import threading

import numpy as np
import pytest
from changes import changed

from unstall.exports import flat, metrics, mlflow, opentelemetry, prometheus, tables, wandb
from unstall.records import report as r
from unstall.records.archive import Archive, StepSeries

_HOSTILE = '<script>"\\\n\x1b[31m{x="1"} 5'


@pytest.fixture
def report():
    verdict = r.Finding(
        pattern="input-bound",
        headroom=2.5,
        headroom_known_by="measured",
        confidence="high",
        evidence=[],
        advice=[],
        culprit=r.Culprit(function=_HOSTILE, file="/w/train.py", line=7, share=0.5),
    )
    return r.Report(
        kind="run",
        run=r.RunInfo(
            id="20260102-030405-abcdef",
            command=["train.py", _HOSTILE],
            started="2026-01-02T03:04:05Z",
            duration_s=60.0,
            steps=100,
            exit_code=0,
            environment={"python": "3.11.7", "git_revision": "c0ffee"},
        ),
        throughput=r.Throughput(steps_per_s=10.0, mfu=math.nan, step_s=r.StepTime(mean=0.1, p50=0.09, p95=0.2)),
        utilization=r.Utilization(cpu=0.5, gpu=[0.9, 0.1]),
        phases=[r.Phase(name="data_wait", share=0.6, mean_s=0.06), r.Phase(name="forward", share=0.4, mean_s=0.04)],
        verdict=verdict,
        findings=[verdict],
    )


@pytest.fixture
def archive(report):
    durations = np.array([0.5, 0.25, 0.25])
    steps = StepSeries(
        boundaries_f8=np.concatenate([[102.0], 102.0 + durations.cumsum()]).tobytes(),
        phases_f4={"forward": durations.astype("<f4").tobytes()},
        measured_u1=b"\0\1\1",
        gap_u1=b"\1\0\0",
        first=7,
    )
    return Archive(report=report, steps=steps, began=100.0)


def test_what_is_not_known_is_no_metric(report):
    names = [metric.name for metric in metrics.metrics(report)]
    assert "unstall_mfu_ratio" not in names and "unstall_samples_per_second" not in names
    report = changed(report, run__steps=0)
    assert "unstall_headroom_ratio" not in [metric.name for metric in metrics.metrics(report)]


def test_prometheus_reads_it_back(report, tmp_path):
    parser = pytest.importorskip("prometheus_client.parser")
    path = tmp_path / "unstall.prom"
    prometheus.write(report, path)
    families = {family.name: family for family in parser.text_string_to_metric_families(path.read_text())}
    assert families["unstall_steps_per_second"].samples[0].value == 10.0
    phases = {sample.labels["phase"]: sample.value for sample in families["unstall_phase_seconds"].samples}
    assert phases == {"data_wait": 0.06, "forward": 0.04}
    (info,) = families["unstall_run_info"].samples
    assert (info.labels["pattern"], info.labels["revision"]) == ("input-bound", "c0ffee")
    assert info.labels["command"].startswith('train.py <script>"\\ {x=')
    assert [entry.name for entry in tmp_path.iterdir()] == ["unstall.prom"]


def test_a_file_that_cannot_be_written_leaves_nothing(report, tmp_path):
    with pytest.raises(OSError):
        prometheus.write(report, tmp_path / "none" / "unstall.prom")


def test_opentelemetry_reads_it_back(report):
    export = pytest.importorskip("opentelemetry.sdk.metrics.export")
    reader = export.InMemoryMetricReader()
    opentelemetry.send(report, reader=reader)
    (resource,) = reader.get_metrics_data().resource_metrics
    assert resource.resource.attributes["unstall.run"] == "20260102-030405-abcdef"
    found = {one.name: one for one in resource.scope_metrics[0].metrics}
    assert found["unstall_steps_per_second"].data.data_points[0].value == 10.0
    assert found["unstall_step_mean_seconds"].unit == "s"
    assert {point.attributes["gpu"] for point in found["unstall_gpu_utilization_ratio"].data.data_points} == {"0", "1"}


class _Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def collector():
    with http.server.HTTPServer(("127.0.0.1", 0), _Collector) as server:
        server.bodies, server.status = [], 200
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_collector_gets_the_metrics_once(report, collector):
    service = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    opentelemetry.send(report, f"http://127.0.0.1:{collector.server_port}/v1/metrics")
    (body,) = collector.bodies
    request = service.ExportMetricsServiceRequest.FromString(body)
    names = {one.name for one in request.resource_metrics[0].scope_metrics[0].metrics}
    assert {"unstall_steps_per_second", "unstall_run_info"} <= names


def test_a_collector_that_refuses_is_told_once(report, collector, capfd):
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http.metric_exporter")
    collector.status = 400
    with pytest.raises(RuntimeError, match=r"did not take the metrics: .*400"):
        opentelemetry.send(report, f"http://127.0.0.1:{collector.server_port}/v1/metrics")
    assert capfd.readouterr().err == ""


def test_csv_has_a_row_a_step(archive, tmp_path):
    tables.write_csv(archive, tmp_path / "steps.csv")
    with (tmp_path / "steps.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["7", "8", "9"]
    assert [float(row["start_s"]) for row in rows] == [2.0, 2.5, 2.75]
    assert [row["measured"] for row in rows] == ["0", "1", "1"]
    assert [float(row["forward_s"]) for row in rows] == [0.5, 0.25, 0.25]


def test_parquet_has_the_same_columns(archive, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    tables.write_parquet(archive, tmp_path / "steps")
    table = parquet.read_table(tmp_path / "steps").to_pydict()
    assert table["duration_s"] == [0.5, 0.25, 0.25] and table["epoch_boundary"] == [True, False, False]
    assert list(table) == list(tables.columns(archive))


def test_a_run_without_steps_has_no_table(archive, tmp_path):
    archive = changed(archive, steps=None)
    with pytest.raises(RuntimeError, match="no steps"):
        tables.write_csv(archive, tmp_path / "steps.csv")


def test_trackers_get_one_flat_name_a_figure(report):
    found = flat.figures(report)
    assert found["unstall/phase_seconds/data_wait"] == 0.06
    assert found["unstall/step_seconds/0.95"] == 0.2
    assert flat.parameters(report)["unstall/environment/python"] == "3.11.7"


@pytest.mark.slow
def test_mlflow_reads_it_back(report, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MLflow's artifacts lie beside its caller
    tracking = pytest.importorskip("mlflow.tracking")
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    run_id = mlflow.log(report, tracking_uri=uri)
    run = tracking.MlflowClient(tracking_uri=uri).get_run(run_id)
    assert run.data.metrics["unstall/steps_per_second"] == 10.0
    assert run.data.params["unstall/pattern"] == "input-bound"
    assert run.info.status == "FINISHED"


def test_a_store_of_mlflow_that_needs_more_says_so(report, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("mlflow.tracking")
    monkeypatch.setitem(sys.modules, "alembic.migration", None)
    monkeypatch.delitem(sys.modules, "mlflow.store.db.utils", raising=False)
    monkeypatch.delitem(sys.modules, "mlflow.store.tracking.sqlalchemy_store", raising=False)
    with pytest.raises(RuntimeError, match=r"needs alembic.*pip install mlflow"):
        mlflow.log(report, tracking_uri=f"sqlite:///{tmp_path}/other.db")


def test_wandb_takes_it_offline(report, tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    wandb.log(report, [0.1, 0.2, 0.3], offline=True, folder=tmp_path)
    assert list(tmp_path.rglob("run-*.wandb"))


@pytest.mark.parametrize(
    "library, act",
    [
        ("mlflow.exceptions", lambda report: mlflow.log(report)),
        ("wandb", lambda report: wandb.log(report, [])),
        ("opentelemetry.sdk.metrics", lambda report: opentelemetry.send(report)),
    ],
)
def test_a_library_that_is_missing_is_named(report, monkeypatch, library, act):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(RuntimeError, match=r"is not installed; run: pip install \"unstall\["):
        act(report)
