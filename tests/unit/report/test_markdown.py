from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from report_strategies import reports

from unstall import records as r
from unstall.report import markdown


def test_the_verdict_is_in_view_and_the_figures_are_folded(input_bound: r.Report) -> None:
    text = markdown.render(input_bound)
    summary, details = text.split("<details>")
    assert "**input-bound (transform): 83 % of each step waits for" in summary
    assert "```python\nout[y, x] = img[sy, sx]\n```" in summary
    assert "| data\\_wait | 83 % | 20.1 ms | 60 % blocked" in summary
    assert "```sh\nunstall simplify train.py --epochs 1\n```" in summary
    assert "- Speed: 41.5 steps/s" in details
    assert details.endswith("</details>\n")


def test_modules_spans_and_hot_lines_are_listed_in_full(reinforcement: r.Report) -> None:
    reinforcement.hotspots = [r.Hotspot(function="f", file="<string>", line=2, share=0.5, where="main")]
    text = markdown.render(reinforcement)
    assert text.count("| policy.net.") == 7
    assert text.count("\n| phase ") == 7 + 1  # spans, and the header of the phases
    assert "| f | &lt;string&gt;:2 | 50 % | main | other |" in text


def test_absent_parts_are_absent(no_steps: r.Report) -> None:
    text = markdown.render(no_steps)
    assert "None" not in text and "Headroom" not in text and "| phase" not in text


def test_hostile_strings_add_no_markup(hostile: r.Report) -> None:
    text = markdown.render(hostile)
    outside = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert "<img" not in outside and "@you" not in outside
    assert not re.search(r"(?<!\\)\[red", outside)
    assert outside.count("</details>") == 1


@pytest.mark.parametrize(
    "text, escaped",
    [
        ("a_b*c* `d` [e](f) g|h", "a\\_b\\*c\\* \\`d\\` \\[e\\](f) g\\|h"),
        ("1. x", "1\\. x"),
        ("- y", "\\- y"),
        ("# z", "\\# z"),
        ("---", "\\---"),
        ("24.1 ms", "24.1 ms"),
        ("<b> & c", "&lt;b&gt; &amp; c"),
        ("@me", "@\u200bme"),
    ],
)
def test_escape(text: str, escaped: str) -> None:
    assert markdown.escape(text) == escaped


def test_a_fence_in_the_code_cannot_close_the_block(input_bound: r.Report) -> None:
    input_bound.verdict.culprit.code = "x = '````'"
    assert "`````python\nx = '````'\n`````" in markdown.render(input_bound)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(reports)
def test_any_report_can_be_written(report: r.Report) -> None:
    text = markdown.render(report)
    for line in text.splitlines():
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)(?:\\\\)*\|", line)
            assert len(cells) in (6, 7)
