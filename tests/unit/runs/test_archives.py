"""What the name of a run may stand for: a report, a GPU trace, or nothing."""

from __future__ import annotations

import pytest
from kineto_files import document, small, write
from makers import report

from unstall.records.archive import Archive
from unstall.runs import archives
from unstall.runs.errors import Refused


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "report.json").write_bytes(report(run_id="r").to_json())
    write(tmp_path / "trace.json.gz", document(small(3)))
    (tmp_path / "notes.txt").write_text("nothing of ours")


def test_a_report_alone_is_a_run():
    for load in (archives.load, archives.load_report, archives.load_exportable):
        assert load("report.json").report.run.id == "r"


def test_a_trace_is_diagnosed_or_exported():
    diagnosed = archives.load_report("trace.json.gz")
    assert isinstance(diagnosed, Archive) and diagnosed.report.kind == "trace"
    assert len(archives.load_exportable("trace.json.gz").host) > 0


@pytest.mark.parametrize("name", ["notes.txt", "nothing", "last"])
@pytest.mark.parametrize("load", [archives.load, archives.load_report, archives.load_exportable])
def test_anything_else_is_refused_in_one_line(load, name):
    with pytest.raises(Refused) as refused:
        load(name)
    assert "\n" not in str(refused.value)
