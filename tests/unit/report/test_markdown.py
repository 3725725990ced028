from __future__ import annotations

import re

import pytest
from changes import changed
from hypothesis import HealthCheck, given, settings
from report_strategies import reports

from unstall.records import report as r
from unstall.records.experiments import NotMeasured
from unstall.report import markdown, run_markdown


def test_the_verdict_is_in_view_and_the_figures_are_folded(input_bound: r.Report) -> None:
    text = run_markdown.render(input_bound)
    summary, details = text.split("<details>")
    assert "**input-bound (transform): 83 % of each step waits for" in summary
    assert "```python\nout[y, x] = img[sy, sx]\n```" in summary
    assert "| data\\_wait | 83 % | 20.1 ms | 60 % blocked" in summary
    assert "```sh\nunstall simplify train.py --epochs 1\n```" in summary
    assert "- Speed: 41.5 steps/s" in details
    assert details.endswith("</details>\n")


def test_modules_spans_and_hot_lines_are_listed_in_full(reinforcement: r.Report) -> None:
    reinforcement = changed(
        reinforcement, hotspots=[r.Hotspot(function="f", file="<string>", line=2, share=0.5, where="main")]
    )
    text = run_markdown.render(reinforcement)
    assert text.count("| policy.net.") == 7
    assert text.count("\n| phase ") == 7 + 1  # spans, and the header of the phases
    assert "| f | &lt;string&gt;:2 | 50 % | main | other |" in text


def test_absent_parts_are_absent(no_steps: r.Report) -> None:
    text = run_markdown.render(no_steps)
    assert "None" not in text and "Ceiling" not in text and "Gain" not in text and "| phase" not in text


def test_hostile_strings_add_no_markup(hostile: r.Report) -> None:
    text = run_markdown.render(hostile)
    outside = _outside_code(text)
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
    input_bound = changed(input_bound, verdict__culprit__code="x = '````'")
    assert "`````python\nx = '````'\n`````" in run_markdown.render(input_bound)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(reports)
def test_any_report_can_be_written(report: r.Report) -> None:
    columns = None
    for line in _outside_code(run_markdown.render(report)).splitlines():
        cells = len(re.split(r"(?<!\\)(?:\\\\)*\|", line)) if line.startswith("|") else None
        assert columns in (None, cells) or cells is None  # as many as in the table's header
        columns = cells


def test_a_study_is_told_in_full(input_bound: r.Report) -> None:
    input_bound = changed(
        input_bound, ceilings=[r.Ceiling(component="without decode", steps_per_s=50.0, known_by="measured", gap=0.6)]
    )
    input_bound = changed(
        input_bound,
        experiments=[
            r.ReportedExperiment(
                name="decode free", intervention="free", ratio=2.5, ci95=(2.4, 2.6), predicted_ratio=2.0
            ),
            r.ReportedExperiment(
                name="decode +20%", intervention="delay", ratio=0.9, ci95=(0.2, 1e6), conclusive=False
            ),
        ],
    )
    input_bound = changed(
        input_bound,
        study=r.Study(
            base_s=0.05,
            deeper=["then forward"],
            failures=[NotMeasured(name="cached", intervention="cached", why="no loader")],
            untried=["gc off"],
            sandbox="a copy",
        ),
    )
    text = run_markdown.render(input_bound)
    assert "| without decode | 50 | 60 % | measured |\n| as it is | 20 |" in text
    assert "| decode free | 2.5× | 2.4 to 2.6 | 2× |  |\n| decode +20% | inconclusive | unknown |" in text
    assert "- cached: no loader" in text and "- gc off" in text and "- then forward" in text
    assert "- Sandbox: a copy; the program was started once" in text


def test_remedies_and_the_patch_are_told(input_bound: r.Report) -> None:
    remedy = r.TriedRemedy(
        name="share memory", exactness="exact", sameness="exact", kept=False, why_not="slower | here"
    )
    input_bound = changed(input_bound, remedies=[remedy], patch="-a = 1\n+\tb = `2`\x1b[1m\n")
    text = run_markdown.render(input_bound)
    assert "| share memory | no | exact |  |  | slower \\| here |" in text
    assert "```diff\n-a = 1\n+\tb = `2`\ufffd[1m\n```" in text


def _outside_code(text: str) -> str:
    return re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
