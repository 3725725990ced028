"""The verbs: one screen of help each, the same options everywhere, exit codes from one table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from unstall.cli.exits import Exit
from unstall.cli.main import VERBS, app

DOCS = Path(__file__).parents[3] / "docs" / "cli.md"


def command(name: str) -> click.Command:
    found = app.get_command(click.Context(app), name)
    assert found is not None
    return found


def option(verb: str, name: str) -> click.Option | None:
    return next((one for one in command(verb).params if name in one.opts), None)


@pytest.mark.parametrize("name", VERBS)
def test_the_help_of_every_verb_fits_one_screen(name):
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, [name, "--help"])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0].startswith(f"Usage: app {name} ")
    assert len(lines) <= 40 and max(map(len, lines)) <= 80


def test_the_list_of_verbs_fits_one_screen_and_none_is_cut_short():
    lines = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["--help"]).output.splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 80
    listed = lines[lines.index("Commands:") + 1 :]
    assert [line.split()[0] for line in listed] == list(VERBS)
    assert not any(line.endswith("...") for line in listed)


_WITHOUT_OUTPUTS = {"watch", "export", "prune", "mcp", "setup-agent"}
SAME = {
    "--budget": ({"simplify", "data", "optimize", "prove", "gate"}, "TIME"),
    "--json": (set(VERBS) - _WITHOUT_OUTPUTS, "FILE|-"),
    "--markdown": (set(VERBS) - _WITHOUT_OUTPUTS, "FILE|-"),
    "--md": (set(VERBS) - _WITHOUT_OUTPUTS, "FILE|-"),
    "--html": ({"run", "attach", "simplify", "optimize", "trace", "report"}, "FILE|-"),
    "--ledger": ({"run", "simplify", "optimize", "history", "compare", "next"}, "FILE|URL"),
    "--sandbox": ({"simplify", "data", "optimize", "prove", "gate"}, None),
    "--allow-network-writes": ({"simplify", "data", "optimize", "prove", "gate"}, None),
}


@pytest.mark.parametrize("name", SAME)
def test_an_option_is_the_same_in_every_verb_that_has_it(name):
    verbs, metavar = SAME[name]
    found = {verb: one for verb in VERBS if (one := option(verb, name)) is not None}
    assert set(found) == verbs
    assert {one.metavar or one.type.name.upper() for one in found.values() if metavar} <= {metavar}
    assert len({one.help for one in found.values()}) == 1


@pytest.mark.parametrize("verb", ["simplify", "data", "optimize", "gate"])
@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("30s", 30), ("5m", 300), ("1h", 3600)])
def test_a_budget_is_written_the_same_way_everywhere(verb, text, seconds):
    needed = ["--baseline", "main"] if verb == "gate" else []
    with command(verb).make_context(verb, [*needed, "--budget", text, "train.py"]) as context:
        assert context.params["budget"] == seconds


@pytest.mark.parametrize("verb", ["compare", "history", "next", "doctor"])
def test_json_without_a_place_is_a_usage_error(verb):
    result = CliRunner().invoke(app, [verb, "--json"])
    assert result.exit_code == Exit.REFUSED and "'--json' requires an argument" in result.stderr


def test_a_verb_whose_libraries_are_missing_says_which_extra_has_them(monkeypatch):
    for module in [
        module for module in sys.modules if module.startswith(("unstall.optimize", "unstall.runs.optimize"))
    ]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delattr("unstall.runs.optimize", raising=False)
    monkeypatch.setitem(sys.modules, "libcst", None)
    result = CliRunner().invoke(app, ["optimize", "train.py", "--epochs", "1"])
    assert result.exit_code == Exit.REFUSED
    assert result.stderr == "unstall: libcst is not installed: pip install 'unstall[optimize]'\n"


def test_an_unknown_verb_is_a_usage_error():
    assert CliRunner().invoke(app, ["optimise"]).exit_code == Exit.REFUSED


def test_an_interrupted_verb_says_so(monkeypatch):
    from unstall.runs import archives

    def interrupt(run):
        raise KeyboardInterrupt

    monkeypatch.setattr(archives, "load_report", interrupt)
    result = CliRunner().invoke(app, ["report"])
    assert (result.exit_code, result.stderr) == (Exit.INTERRUPTED, "unstall: interrupted\n")


def test_the_table_of_exit_codes_in_the_documentation_is_the_one_in_force():
    rows = [f"| {code.value} | {code.meaning} |" for code in Exit]
    assert "\n".join(["| code | meaning |", "| --- | --- |", *rows]) in DOCS.read_text()


def test_help_imports_none_of_the_libraries_that_the_work_needs():
    heavy = "{'libcst', 'numpy', 'torch', 'polars', 'psycopg'}"
    program = (
        "import sys\n"
        "from unstall.cli.main import app\n"
        "app(['--help'], standalone_mode=False)\n"
        f"print({heavy} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"
