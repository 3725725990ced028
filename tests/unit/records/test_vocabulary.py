"""Phases as objects: their order, their names, and that every built-in one is shown and documented."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstall.records.vocabulary import MODEL_PHASES, PHASE_NAMES, PHASES, Phase, Plugins, can_name_a_phase, in_order
from unstall.report import html

TEMPLATES = Path(html.__file__).parent / "templates"
DOCS = Path(__file__).parents[3] / "docs"


def test_names_are_in_the_order_of_reports_and_others_after_them():
    assert in_order(["zeta", "other", "alpha", "forward", "zeta"]) == ["forward", "other", "zeta", "alpha"]


@pytest.mark.parametrize("name", ["tokenize", "a", "my_phase_2", *PHASE_NAMES])
def test_what_a_phase_may_be_called(name):
    assert can_name_a_phase(name)


@pytest.mark.parametrize("name", ["", "2nd", "Forward", "a b", "a-b", "a{}", "é", "x" * 33, "a\n"])
def test_what_a_phase_may_not_be_called(name):
    assert not can_name_a_phase(name)


def test_a_plugins_phases_come_after_the_built_in_ones():
    ema = Phase("ema", "averaging weights", model=True)
    assert Plugins((ema,)).all_phases == (*PHASES, ema)
    assert "ema" not in MODEL_PHASES


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_phase_has_a_colour(theme):
    sheet = (TEMPLATES / f"{theme}.css").read_text()
    assert [name for name in PHASE_NAMES if f"--p-{name}:" not in sheet] == []


def test_every_phase_is_in_the_documentation():
    page = (DOCS / "reading-a-report.md").read_text()
    assert [name for name in PHASE_NAMES if f"| `{name}` |" not in page] == []
