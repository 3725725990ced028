"""What a quarter of an hour has found is not lost where a file cannot be written."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from unstall.cli import optimize
from unstall.cli.main import app
from unstall.optimize.source.files import Sources
from unstall.runs.errors import Refused
from unstall.runs.optimize import Optimized

FULL = Path("/dev/full")


@pytest.fixture
def found(tmp_path, healthy_report):
    return Optimized(
        report=healthy_report,
        patch=b"--- a/train.py\n",
        remedies=b"# remedies\n",
        root=tmp_path,
        remarks=[],
        interrupted=False,
        problem=None,
        sources=Sources(),
    )


@pytest.mark.skipif(not FULL.exists(), reason="no device here that is always full")
def test_a_patch_that_cannot_be_written_is_given_all_the_same(found, tmp_path, capfdbinary):
    assert not optimize._write(found, FULL, tmp_path / "remedies.toml")
    assert (tmp_path / "remedies.toml").read_bytes() == b"# remedies\n"
    captured = capfdbinary.readouterr()
    assert captured.out == b"--- a/train.py\n"
    assert captured.err.decode().splitlines() == [
        "unstall: cannot write /dev/full: No space left on device",
        "unstall: the patch is on stdout",
    ]


def test_without_a_file_it_is_said_how_to_have_the_patch(found, tmp_path):
    assert "--patch FILE" in optimize._about_patch(found, None)[0]
    assert "git apply fast.patch" in optimize._about_patch(found, Path("fast.patch"))[0]


@pytest.mark.parametrize(
    ("words", "budget_s", "quick"),
    [([], 900.0, False), (["--quick"], 60.0, True), (["--quick", "--budget", "3m"], 180.0, True)],
)
def test_a_quick_search_has_a_minute_unless_it_is_given_more(monkeypatch, words, budget_s, quick):
    asked = []

    def refuse(program, options, **_):
        asked.append(options)
        raise Refused("nothing is run in this test")

    monkeypatch.setattr("unstall.runs.optimize.optimize", refuse)
    CliRunner().invoke(app, ["optimize", *words, "train.py"])
    assert [(options.budget_s, options.quick) for options in asked] == [(budget_s, quick)]
