"""Each exporter, read back by the library it is meant for."""

from __future__ import annotations

import csv
import http.server
import subprocess
import sys
import threading

import msgspec
import pytest

from unstall.exports import ExportError, export, exporters, exporters_of, metrics, opentelemetry
from unstall.exports.tables import step_columns
from unstall.records.archive import Archive


def test_what_is_not_known_is_no_metric(report):
    names = [metric.name for metric in metrics.metrics(report)]
    assert "unstall_mfu_ratio" not in names and "unstall_samples_per_second" not in names
    without = msgspec.structs.replace(report, run=msgspec.structs.replace(report.run, steps=0))
    assert "unstall_headroom_ratio" not in [metric.name for metric in metrics.metrics(without)]


def test_ceiling_and_gain_come_with_their_intervals(report):
    given = {metric.name: metric.value for metric in metrics.metrics(report)}
    ceiling = [given[f"unstall_{name}_ratio"] for name in ("ceiling_low", "ceiling", "ceiling_high")]
    gain = [given[f"unstall_{name}_ratio"] for name in ("expected_gain_low", "expected_gain", "expected_gain_high")]
    assert (ceiling, gain) == ([2.25, 2.5, 4.0], [1.25, 1.5, 4.0])


@pytest.mark.parametrize("pattern", ["unexplained", "no-verdict"])
def test_a_verdict_that_knows_nothing_has_no_headroom(report, pattern):
    verdict = msgspec.structs.replace(report.verdict, pattern=pattern, headroom=1.0, ceiling=None, expected_gain=None)
    names = [metric.name for metric in metrics.metrics(msgspec.structs.replace(report, verdict=verdict))]
    assert not any("headroom" in name or "ceiling" in name or "gain" in name for name in names)


def test_prometheus_reads_it_back(report, tmp_path):
    parser = pytest.importorskip("prometheus_client.parser")
    path = tmp_path / "unstall.prom"
    export(exporters()["prometheus"], Archive(report=report), str(path))
    families = {family.name: family for family in parser.text_string_to_metric_families(path.read_text())}
    assert families["unstall_steps_per_second"].samples[0].value == 10.0
    phases = {sample.labels["phase"]: sample.value for sample in families["unstall_phase_seconds"].samples}
    assert phases == {"data_wait": 0.06, "forward": 0.04}
    (info,) = families["unstall_run_info"].samples
    assert (info.labels["pattern"], info.labels["revision"]) == ("input-bound", "c0ffee")
    assert info.labels["command"].startswith('train.py <script>"\\ {x=')
    assert [entry.name for entry in tmp_path.iterdir()] == ["unstall.prom"]


def test_a_file_that_cannot_be_written_leaves_nothing(report, tmp_path):
    with pytest.raises(ExportError, match="No such file"):
        export(exporters()["prometheus"], Archive(report=report), str(tmp_path / "none" / "unstall.prom"))
    assert list(tmp_path.iterdir()) == []


def test_opentelemetry_reads_it_back(report):
    export = pytest.importorskip("opentelemetry.sdk.metrics.export")
    reader = export.InMemoryMetricReader()
    opentelemetry.collect(report, reader)
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
    export(exporters()["otlp"], Archive(report=report), f"http://127.0.0.1:{collector.server_port}/v1/metrics")
    (body,) = collector.bodies
    request = service.ExportMetricsServiceRequest.FromString(body)
    names = {one.name for one in request.resource_metrics[0].scope_metrics[0].metrics}
    assert {"unstall_steps_per_second", "unstall_run_info"} <= names


def test_a_collector_that_refuses_is_told_once(report, collector, capfd):
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http.metric_exporter")
    collector.status = 400
    with pytest.raises(ExportError, match=r"did not take the metrics: .*400"):
        export(exporters()["otlp"], Archive(report=report), f"http://127.0.0.1:{collector.server_port}/v1/metrics")
    assert capfd.readouterr().err == ""


def test_csv_has_a_row_a_step(archive, tmp_path):
    export(exporters()["csv"], archive, str(tmp_path / "steps.csv"))
    with (tmp_path / "steps.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["7", "8", "9"]
    assert [float(row["start_s"]) for row in rows] == [2.0, 2.5, 2.75]
    assert [row["measured"] for row in rows] == ["0", "1", "1"]
    assert [float(row["forward_s"]) for row in rows] == [0.5, 0.25, 0.25]


def test_parquet_has_the_same_columns(archive, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    export(exporters()["parquet"], archive, str(tmp_path / "steps"))
    table = parquet.read_table(tmp_path / "steps").to_pydict()
    assert table["duration_s"] == [0.5, 0.25, 0.25] and table["epoch_boundary"] == [True, False, False]
    assert list(table) == list(step_columns(archive))


def test_a_run_without_steps_has_no_table(archive, tmp_path):
    without = msgspec.structs.replace(archive, steps=None)
    with pytest.raises(ExportError, match="no steps"):
        export(exporters()["csv"], without, str(tmp_path / "steps.csv"))


def test_trackers_get_one_flat_name_a_figure(report):
    found = metrics.figures(report)
    assert found["unstall/phase_seconds/data_wait"] == 0.06
    assert found["unstall/step_seconds/0.95"] == 0.2
    assert metrics.parameters(report)["unstall/environment/python"] == "3.11.7"


@pytest.mark.slow
def test_mlflow_reads_it_back(report, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MLflow's artifacts lie beside its caller
    tracking = pytest.importorskip("mlflow.tracking")
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    export(exporters()["mlflow"], Archive(report=report), uri)
    client = tracking.MlflowClient(tracking_uri=uri)
    (run,) = client.search_runs([client.get_experiment_by_name("unstall").experiment_id])
    assert run.data.metrics["unstall/steps_per_second"] == 10.0
    assert run.data.params["unstall/pattern"] == "input-bound"
    assert run.info.status == "FINISHED"


def test_a_store_of_mlflow_that_needs_more_says_so(report, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("mlflow.tracking")
    monkeypatch.setitem(sys.modules, "alembic.migration", None)
    monkeypatch.delitem(sys.modules, "mlflow.store.db.utils", raising=False)
    monkeypatch.delitem(sys.modules, "mlflow.store.tracking.sqlalchemy_store", raising=False)
    with pytest.raises(ExportError, match=r"needs alembic.*pip install mlflow"):
        export(exporters()["mlflow"], Archive(report=report), f"sqlite:///{tmp_path}/other.db")


def test_wandb_takes_it_offline(archive, tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    export(exporters()["wandb"], archive, "unstall", {"offline"})
    assert list(tmp_path.rglob("run-*.wandb"))


def _scalars(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder))
    accumulator.Reload()
    tensors = {tag: accumulator.Tensors(tag) for tag in accumulator.Tags()["tensors"]}
    tags = accumulator.Tags()["scalars"]
    return {tag: [(one.step, one.tensor_proto.float_val[0]) for one in found] for tag, found in tensors.items()} | {
        tag: [(one.step, one.value) for one in accumulator.Scalars(tag)] for tag in tags
    }


def test_tensorboard_reads_it_back(archive, tmp_path):
    pytest.importorskip("tensorboard")
    export(exporters()["tensorboard"], archive, str(tmp_path / "tb"))
    read = _scalars(tmp_path / "tb")
    assert read["unstall/step_seconds"] == [(0, pytest.approx(0.25)), (1, pytest.approx(0.25))]
    assert read["unstall/share/data_wait"] == [(1, pytest.approx(0.6))]
    assert read["unstall/headroom"] == [(1, pytest.approx(2.5))]
    assert read["unstall/ceiling_high"] == [(1, pytest.approx(4.0))]
    assert read["unstall/expected_gain_low"] == [(1, pytest.approx(1.25))]


def test_tensorboard_of_a_run_without_steps_has_neither_steps_nor_headroom(report, tmp_path):
    pytest.importorskip("tensorboard")
    run = msgspec.structs.replace(report.run, steps=0)
    without = Archive(report=msgspec.structs.replace(report, run=run, phases=[]))
    export(exporters()["tensorboard"], without, str(tmp_path))
    assert _scalars(tmp_path) == {}


@pytest.mark.parametrize(
    "name, library",
    [
        ("mlflow", "mlflow.exceptions"),
        ("wandb", "wandb"),
        ("otlp", "opentelemetry.exporter.otlp.proto.http.metric_exporter"),
        ("tensorboard", "tensorboard.compat.proto"),
    ],
)
def test_a_library_that_is_missing_is_named(archive, monkeypatch, tmp_path, name, library):
    monkeypatch.setitem(sys.modules, library, None)
    extra = exporters()[name].extra
    with pytest.raises(ExportError, match=rf"is not installed; run: pip install \"unstall\[{extra}\]\""):
        export(exporters()[name], archive, str(tmp_path / "target"))
    assert list(tmp_path.iterdir()) == []


def test_parquet_needs_polars(archive, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ExportError, match=r"polars is not installed; run: pip install"):
        export(exporters()["parquet"], archive, str(tmp_path / "steps"))


def test_a_kind_of_thing_that_a_format_does_not_take_is_refused(archive, tmp_path):
    with pytest.raises(ExportError, match="perfetto exports a GPU trace, not a run"):
        export(exporters()["perfetto"], archive, str(tmp_path / "x"))


def test_each_format_names_the_kinds_that_it_takes():
    assert set(exporters_of("archive")) == {"csv", "mlflow", "otlp", "parquet", "prometheus", "tensorboard", "wandb"}
    assert set(exporters_of("timeline")) == {"chrome", "csv", "parquet", "perfetto"}
    assert set(exporters_of("spans")) == {"chrome"}


def test_loading_all_exporters_imports_none_of_their_libraries():
    heavy = "{'mlflow', 'opentelemetry', 'pandas', 'polars', 'pyarrow', 'tensorboard', 'torch', 'wandb'}"
    code = f"import sys; from unstall.exports import exporters; exporters(); print({heavy} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"
