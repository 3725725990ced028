import webbrowser

import pytest
from click.testing import CliRunner

from unstall.cli.main import app
from unstall.records import report as r


@pytest.fixture
def report(tmp_path, monkeypatch, healthy_report):
    """A report's file in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "report.json").write_bytes(healthy_report.to_json())
    return tmp_path / "report.json"


def invoke(*words):
    return CliRunner().invoke(app, ["report", *words])


def test_each_format_is_written(report, tmp_path):
    result = invoke("report.json", "--html", "r.html", "--md", "r.md", "--json", "r.json")
    assert result.exit_code == 0, result.output
    assert result.stderr == "wrote r.json\nwrote r.md\nwrote r.html\n"
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
