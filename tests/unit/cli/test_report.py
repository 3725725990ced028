import webbrowser

import pytest
from typer.testing import CliRunner

from unstall.cli.main import app
from unstall.records import report as r


@pytest.fixture
def report(tmp_path, monkeypatch):
    """A report's file in the working directory."""
    monkeypatch.chdir(tmp_path)
    verdict = r.Finding(
        pattern="healthy", headroom=1.0, headroom_known_by="estimated", confidence="high", evidence=[], advice=[]
    )
    run = r.RunInfo(
        id="../odd id", command=["a.py"], started="2026-01-01T00:00:00Z", duration_s=1.0, steps=9, exit_code=0,
        environment={},
    )  # fmt: skip
    made = r.Report(
        kind="run",
        run=run,
        throughput=r.Throughput(steps_per_s=3.0),
        utilization=r.Utilization(),
        phases=[],
        verdict=verdict,
        findings=[verdict],
    )
    (tmp_path / "report.json").write_bytes(made.to_json())
    return tmp_path / "report.json"


def invoke(*words):
    return CliRunner().invoke(app, ["report", *words])


def test_each_format_is_written(report, tmp_path):
    result = invoke("report.json", "--html", "r.html", "--md", "r.md", "--json", "r.json")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "r.md").read_text().startswith("### unstall run")
    assert r.Report.from_json((tmp_path / "r.json").read_bytes()).run.id == "../odd id"


def test_without_a_format_it_is_shown(report):
    result = invoke("report.json")
    assert result.exit_code == 0
    assert "healthy" in result.stdout


def test_open_writes_a_page_here_and_shows_it(report, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)
    assert invoke("report.json", "--open").exit_code == 0
    assert opened == [(tmp_path / "unstall-___odd_id.html").as_uri()]
    assert (tmp_path / "unstall-___odd_id.html").exists()


@pytest.mark.parametrize(
    "words, message",
    (
        (("nonsense", "--html", "r.html"), "no run and no file is called 'nonsense'"),
        (("last",), "no run is kept here yet"),
        (("garbage.json",), "is no report of unstall"),
        (("report.json", "--html", "no/such/folder.html"), "cannot write no/such/folder.html"),
    ),
)
def test_errors_are_one_line(report, tmp_path, words, message):
    (tmp_path / "garbage.json").write_text("[1, 2")
    result = invoke(*words)
    assert result.exit_code == 2
    assert message in result.stderr and result.stderr.count("\n") == 1
