from __future__ import annotations

import io
import math
import unicodedata

import pytest
from changes import changed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report_strategies import reports
from rich.cells import cell_len
from rich.console import Console

from unstall.records import report as r
from unstall.report import run_view


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_lines_fit_the_width(example: r.Report, width: int) -> None:
    *lines, command = run_view.page(example, width).as_text().splitlines()
    assert all(cell_len(line) <= width for line in lines)
    assert cell_len(command) <= 4 * width


def test_the_report_fits_one_screen(example: r.Report) -> None:
    rows = [-(-max(cell_len(line), 1) // 100) for line in run_view.page(example, 100).as_text().splitlines()]
    assert sum(rows) < 40


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(reports, st.sampled_from([60, 100, 160]))
def test_any_report_can_be_shown(report: r.Report, width: int) -> None:
    text = run_view.page(report, width).as_text()
    assert not {unicodedata.category(c) for c in text if c != "\n"} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    lines = text.splitlines()
    last = 1 if report.run.command else 0
    assert all(cell_len(line) <= width for line in lines[: len(lines) - last])


def test_the_order_of_the_answers(input_bound: r.Report) -> None:
    text = run_view.page(input_bound).as_text()
    told = [
        "input-bound (transform): 83 % of each step",
        "RandomWarp.__call__ train.py:42 (91 % of the loader workers' time)",
        "> out[y, x] = img[sy, sx]",
        "in the call of numpy.ndarray.__getitem__",
        "data_wait  ████",
        "the rest",
        "Ceiling    4.1× (3.2 to 5.8, estimated), 41.5 steps/s",
        "Gain       expected gain of a cheaper transform 1.34 to 5× (estimated)",
        "Speed      41.5 steps/s",
        "Machine    CPU 98 % of 2 cores",
        "Evidence   • the main thread waits",
        "Advice     • do RandomWarp",
        "Runner-up  callback-bound",
        "Run        200 steps measured",
        "Next       ",
        "unstall simplify train.py --epochs 1",
    ]
    positions = [text.index(line) for line in told]
    assert positions == sorted(positions)
    assert text.endswith(told[-1] + "\n")


def test_nothing_absent_is_shown(no_steps: r.Report) -> None:
    text = run_view.page(no_steps).as_text()
    for word in ("None", "nan", "Speed", "Ceiling", "Gain", "Step ", "Culprit", "steps/s"):
        assert word not in text
    assert "no verdict: no step was seen" in text
    assert text.count("the program ended before its first optimizer step") == 1
    assert "• py-spy may not attach" in text


def test_figures_that_are_not_numbers_are_left_out(healthy: r.Report) -> None:
    healthy = changed(healthy, throughput__steps_per_s=math.nan)
    first, *others = healthy.phases
    healthy = changed(healthy, phases=[changed(first, share=math.nan), *others])
    healthy = changed(healthy, verdict__headroom=math.inf)
    healthy = changed(healthy, utilization__cpu=math.nan)
    text = run_view.page(healthy).as_text()
    assert "nan" not in text and "unknown" not in text and "inf " not in text


def test_hostile_strings_stay_text(hostile: r.Report) -> None:
    text = run_view.page(hostile).as_text()
    assert "[red]x[/red] red a b" in text
    assert not set(text) & set("\x1b\x07\r\t\u202e\u200b\ud800")


def test_modules_and_spans_have_a_table_of_five_rows(reinforcement: r.Report) -> None:
    text = run_view.page(reinforcement).as_text()
    assert text.count("policy.net.") == 5
    assert text.count("phase ") == 5
    assert "policy.net.6" in text and "policy.net.1" not in text


def console(**options) -> Console:
    return Console(file=io.StringIO(), width=100, **options)


def test_a_pipe_gets_no_colours(input_bound: r.Report) -> None:
    out = console()
    run_view.page(input_bound, out.width).show(out)
    assert out.file.getvalue() == run_view.page(input_bound).as_text()


def test_a_terminal_gets_colours_and_the_same_words(input_bound: r.Report) -> None:
    out = console(force_terminal=True, color_system="truecolor", record=True)
    run_view.page(input_bound, out.width).show(out)
    assert "\x1b[1;31minput-bound" in out.file.getvalue()
    exported = [line.rstrip() for line in out.export_text().splitlines()]
    assert exported == run_view.page(input_bound).as_text().splitlines()


def test_an_output_without_unicode(hostile: r.Report) -> None:
    raw = io.BytesIO()
    out = Console(file=io.TextIOWrapper(raw, encoding="ascii"), width=100)
    run_view.page(hostile, out.width).show(out)
    out.file.flush()
    assert b"ceiling 4.1x" in raw.getvalue()
