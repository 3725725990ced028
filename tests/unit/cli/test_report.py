import webbrowser

import msgspec
import pytest
from click.testing import CliRunner
from jinja2 import Environment, StrictUndefined

from unstall.cli.main import app
from unstall.cli.report import _refused_if_damaged
from unstall.records import report as r
from unstall.records.trace import TraceFacts
from unstall.runs.errors import Refused


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
        (("garbage.json",), "is not a report of unstall"),
        (("report.json", "--html", "no/such/folder.html"), "cannot write no/such/folder.html"),
    ),
)
def test_errors_are_one_line(report, tmp_path, words, message):
    (tmp_path / "garbage.json").write_text("[1, 2")
    result = invoke(*words)
    assert result.exit_code == 2
    assert message in result.stderr and result.stderr.count("\n") == 1


def test_a_damaged_report_is_refused_in_one_line(report, tmp_path):
    facts = TraceFacts(
        files=["t.json"],
        source="kineto",
        devices=["GPU"],
        marked_steps=True,
        device={},  # without the shares that every report holds
        queue={},
        kernels={},
        step_variation=0.0,
        replay_error=0.0,
        replay_steps=1,
        critical_path={},
    )
    damaged = msgspec.structs.replace(r.Report.from_json(report.read_bytes()), kind="trace", trace=facts)
    (tmp_path / "damaged.json").write_bytes(damaged.to_json())
    result = invoke("damaged.json")
    assert result.exit_code == 2
    assert "damaged.json is damaged and cannot be shown (KeyError" in result.stderr
    assert result.stderr.count("\n") == 1


def test_what_a_template_misses_is_one_line_too():
    with pytest.raises(Refused, match="damaged"), _refused_if_damaged("last"):
        Environment(undefined=StrictUndefined).from_string("{{ panels[0].title }}").render(panels=[])
