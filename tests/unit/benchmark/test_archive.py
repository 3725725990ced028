"""What is kept of a run comes back as it was; what somebody else made of it harms nobody."""

from __future__ import annotations

import contextlib
import gzip
import math
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unstall.benchmark import archive
from unstall.benchmark.archive import ArchiveError
from unstall.records import report as r
from unstall.records.archive import Archive, FetchSeries, StepSeries
from unstall.records.encoding import packed
from unstall.records.measurements import LoaderMeasurement, Measurement
from unstall.records.observations import Frame, MachinePoint, ResourcePoint, StackSample
from unstall.records.run import RunInfo, StepTime, Throughput, Utilization

_REPORT = r.Report(
    kind="run",
    run=RunInfo(
        id="20260102-030405-abcdef",
        command=["train.py"],
        started="2026-01-02T03:04:05Z",
        duration_s=1.0,
        steps=3,
        exit_code=0,
        environment={"python": "3.11", "gpus": []},
    ),
    throughput=Throughput(steps_per_s=2.0),
    utilization=Utilization(),
    phases=[],
    verdict=r.Finding(
        pattern="healthy", headroom=1.0, headroom_known_by="estimated", confidence="high", evidence=[], advice=[]
    ),
    findings=[],
)


def _steps(**more):
    values = {
        "boundaries_f8": np.array([10.0, 10.5, 11.5, 12.0]).tobytes(),
        "phases_f4": {"forward": np.array([0.25, 0.5, 0.25], "<f4").tobytes()},
        "measured_u1": b"\0\1\1",
        "gap_u1": b"\1\0\0",
    }
    return StepSeries(**{**values, **more})


def _full():
    sample = StackSample(7, "MainThread", (Frame("f", "/a.py", 3),), 5)
    measurement = Measurement(
        kind="batch",
        steps=np.int64(2),
        warmup=1,
        total_steps=3,
        step=StepTime(0.5, 0.5, np.float64(0.6)),
        phases=[],
        cores=2.0,
        main_pid=7,
        worker_pids=frozenset({8, 9}),
        loader=LoaderMeasurement(workers=2),
    )
    fetches = FetchSeries(
        starts_f8=np.array([10.0, 10.1]).tobytes(),
        wall_f4=np.array([0.1, 0.2], "<f4").tobytes(),
        cpu_f4=np.array([np.nan, 0.2], "<f4").tobytes(),
        blocked_f4=np.array([np.nan, 0.0], "<f4").tobytes(),
        pid_i4=np.array([8, 9], "<i4").tobytes(),
    )
    return Archive(
        report=_REPORT,
        measurement=measurement,
        steps=_steps(),
        fetches=fetches,
        epochs=[(10.0, 0.1)],
        resources=[ResourcePoint(10.0, 7, 1.0, 0.0, 1000)],
        machine=[MachinePoint(10.0, 5.0)],
        stacks=[sample],
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / archive.FILE_NAME


def test_everything_comes_back(path):
    archive.write(path, _full())
    back = archive.read(path)
    assert back.report == _REPORT
    assert back.steps.durations.tolist() == [0.5, 1.0, 0.5]
    assert back.steps.measured.tolist() == [False, True, True]
    assert back.steps.at_boundary.tolist() == [True, False, False]
    assert back.steps.phase("forward").tolist() == [0.25, 0.5, 0.25]
    assert back.steps.phase("comm").tolist() == [0, 0, 0]
    assert math.isnan(back.fetches.cpu[0]) and back.fetches.pids.tolist() == [8, 9]
    assert back.measurement.worker_pids == {8, 9} and back.measurement.loader.workers == 2
    assert back.measurement.samples == back.stacks == _full().stacks
    assert (back.resources, back.machine, back.epochs) == (_full().resources, _full().machine, [(10.0, 0.1)])


def test_a_run_without_steps_is_kept_too(path):
    archive.write(path, Archive(report=_REPORT))
    assert archive.read(path).steps is None


def test_nothing_is_left_of_a_write_that_fails(path):
    with pytest.raises(OSError, match="would take"):
        archive.write(path, _full(), most_bytes=100)
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize("times", [[10.0, 9.0, 11.0, 12.0], [10.0, np.nan, 11.0, 12.0]])
def test_times_that_are_none_are_refused(path, times):
    archive.write(path, Archive(report=_REPORT, steps=_steps(boundaries_f8=np.array(times).tobytes())))
    with pytest.raises(ArchiveError, match="invalid times"):
        archive.read(path)


def test_another_version_is_refused_by_name(path):
    archive.write(path, Archive(report=_REPORT, version=archive.VERSION + 1))
    with pytest.raises(ArchiveError, match="another version"):
        archive.read(path)


def test_a_file_that_swells_is_refused_without_swelling(path):
    packer = zlib.compressobj(9, wbits=31)
    path.write_bytes(b"".join(packer.compress(bytes(1 << 20)) for _ in range(600)) + packer.flush())
    assert path.stat().st_size < 1 << 20
    with pytest.raises(ArchiveError, match="unpacks to more than 64 MB"):
        archive.read(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"no gzip", gzip.compress(b"", mtime=0)[:5], gzip.compress(b"\x80" * 10, mtime=0)],
    ids=["empty", "no gzip", "cut short", "no archive"],
)
def test_other_files_are_refused_in_one_line(path, content):
    path.write_bytes(content)
    with pytest.raises(ArchiveError, match="not a recording of a run") as refused:
        archive.read(path)
    assert "\n" not in str(refused.value)


def test_a_missing_file_is_told(path):
    with pytest.raises(ArchiveError, match="cannot be read"):
        archive.read(path)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400))
def test_any_bytes_give_an_archive_or_an_error(path, content):
    path.write_bytes(gzip.compress(content, 1))
    with pytest.raises(ArchiveError):
        archive.read(path)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_archive_is_read_or_refused(path, data):
    """A few bytes of the packed content changed, or its end cut off."""
    content = bytearray(packed(_full()))
    for _ in range(data.draw(st.integers(0, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(gzip.compress(bytes(content[: data.draw(st.integers(0, len(content)))]), 1))
    with contextlib.suppress(ArchiveError):
        assert archive.read(path).report.run.id is not None


def test_deep_nesting_is_refused(path):
    path.write_bytes(gzip.compress(b"\x81\xa6report" + b"\x91" * 100_000))
    with pytest.raises(ArchiveError):
        archive.read(path)


@pytest.fixture
def project(tmp_path):
    for name in ("20260101-000000-aaaaaa", "20260102-000000-bbbbbb"):
        folder = tmp_path / ".unstall" / "runs" / name
        folder.mkdir(parents=True)
        (folder / "report.json").write_bytes(_REPORT.to_json())
    archive.write(folder / archive.FILE_NAME, _full())
    (tmp_path / ".unstall" / "runs" / "20260103-000000-cccccc").mkdir()  # in progress
    return tmp_path


@pytest.mark.parametrize(
    "name", ["last", "20260102", "bbbbbb", "20260102-000000-bbbbbb", ".unstall/runs/20260102-000000-bbbbbb"]
)
def test_a_run_is_found_by_what_a_person_types(project, name):
    assert archive.load(name, project).steps is not None


def test_a_run_of_which_only_the_report_is_left(project):
    loaded = archive.load("aaaaaa", project)
    assert loaded.report == _REPORT and loaded.steps is None
    assert archive.load(".unstall/runs/20260101-000000-aaaaaa/report.json", project).report == _REPORT


@pytest.mark.parametrize(
    "name, said",
    [
        ("2026", "matches 2 runs"),
        ("nope", "no run and no file"),
        ("", "no run and no file"),
        ("x.json", "not a report"),
    ],
)
def test_a_name_that_means_nothing_or_too_much(project, name, said):
    (project / "x.json").write_text("[" * 5000)
    with pytest.raises(ArchiveError, match=said):
        archive.load(name, project)


def test_no_runs_at_all(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ArchiveError, match="no run is kept here yet"):
        archive.load("last", tmp_path)
