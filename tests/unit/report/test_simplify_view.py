"""The screen of `unstall simplify`."""

from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console

from unstall.records.experiments import Ceiling, NotMeasured, ReportedExperiment, Study
from unstall.report import simplify_view


@pytest.fixture
def studied(input_bound):
    """Of a step of 25 ms, 20 ms go with the warp, 3 ms with the log."""
    return msgspec.structs.replace(
        input_bound,
        kind="simplify",
        ceilings=[
            Ceiling(
                component="without RandomWarp.__call__", steps_per_s=200, known_by="measured", ci95=(180, 220), gap=0.8
            ),
            Ceiling(component="without log", steps_per_s=45, known_by="measured", gap=0.12),
        ],
        experiments=[
            ReportedExperiment(
                name="without RandomWarp.__call__",
                intervention="stub",
                ratio=5.0,
                ci95=(4.5, 5.5),
                predicted_ratio=4.8,
                notes=["2 blocks were disturbed"],
            ),
            ReportedExperiment(name="without log", intervention="stub", ratio=1.1, ci95=(1e-6, 1e6), conclusive=False),
            ReportedExperiment(name="data +50%", intervention="delay", ratio=0.7, ci95=(0.65, 0.75), elasticity=0.9),
        ],
        study=Study(
            base_s=0.025,
            elasticity_sum=0.9,
            elasticity_ci95=(0.8, 1.1),
            elasticity_says="the components account for the step",
            failures=[NotMeasured(name="without items", intervention="stub", why="it is a generator")],
            untried=["8 workers"],
            sandbox="an overlay",
            runs=3,
        ),
    )


def lines_of(report, **console):
    made = Console(file=io.StringIO(), width=100, **console)
    simplify_view.page(report, made.width).show(made)
    return made.file.getvalue()


def test_what_is_read_without_colour(studied):
    text = simplify_view.page(studied).as_text()
    assert lines_of(studied, color_system=None) == text
    assert max(map(len, text.splitlines())) <= 100
    for words in ("without RandomWarp.__call__", "80 %", "40", "the components account for the step"):
        assert words in text
    assert "without items: it is a generator" in text and "8 workers" in text
    assert "2 blocks were disturbed" in text and "started 3 times" in text


def test_trials_are_in_the_order_they_were_made(studied):
    text = simplify_view.page(studied).as_text()
    assert text.index(" 1 without RandomWarp") < text.index(" 2 without log") < text.index(" 3 data +50%")


def test_an_interval_without_end_is_unknown_and_inconclusive(studied):
    (line,) = (line for line in simplify_view.page(studied).as_text().splitlines() if " 2 without log" in line)
    assert "inconclusive" in line and "unknown" in line


def test_colour_tells_the_gap(studied):
    shown = lines_of(studied, force_terminal=True, color_system="standard", no_color=False)
    rows = {name: line for line in shown.splitlines() for name in ("as it is", "RandomWarp", "without log")
            if name in line and "█" in line}  # fmt: skip
    red, green = "\x1b[31m", "\x1b[32m"
    assert red in rows["RandomWarp"] and green in rows["without log"]
    assert red not in rows["as it is"] and green not in rows["as it is"]


def test_a_program_without_steps_has_no_picture(studied):
    text = simplify_view.page(msgspec.structs.replace(studied, study=None)).as_text()
    assert "Ceilings" not in text and "Tried" not in text
