"""The verbs: each can be imported, and one whose libraries are missing says so."""

from __future__ import annotations

import importlib
import sys

import pytest
from typer.testing import CliRunner

from unstall.cli.main import VERBS, app


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_help(name):
    result = CliRunner().invoke(app, [name, "--help"])
    assert result.exit_code == 0
    assert "Usage" in result.output


def test_a_verb_whose_libraries_are_missing_says_which_extra_has_them(monkeypatch):
    for module in [module for module in sys.modules if module.startswith(("unstall.optimize", "unstall.cli.optimize"))]:
        monkeypatch.delitem(sys.modules, module)
    real = importlib.import_module

    def import_module(name, *rest):
        if name == "unstall.cli.optimize":
            raise ImportError("No module named 'libcst'", name="libcst")
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", import_module)
    result = CliRunner().invoke(app, ["optimize", "train.py", "--epochs", "1"])
    assert result.exit_code == 2
    assert "pip install 'unstall[optimize]'" in result.output


def test_an_unknown_verb_is_a_usage_error():
    assert CliRunner().invoke(app, ["optimise"]).exit_code == 2
