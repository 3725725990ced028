"""One account of phases: headline, bars, evidence, Markdown and page show the same share for the same thing."""

from __future__ import annotations

import re

import pytest
from factory import CALL, NEXT, lib, measurement, run, stack
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unstall.diagnose.patterns import all_patterns
from unstall.diagnose.summary import report
from unstall.records.archive import Archive
from unstall.records.measurements import MemoryMeasurement
from unstall.records.model import ModelMeasurement
from unstall.records.observations import Frame
from unstall.records.report import Report
from unstall.records.vocabulary import PHASE_NAMES
from unstall.report import html, run_markdown, run_view, wording
from unstall.text.units import percent

USER = Frame("train", "/work/train.py", 3)
PLOT = lib("matplotlib/figure.py", "savefig")

seconds = st.floats(1e-4, 2.0)
recordings = st.builds(
    lambda phases, plotting, model, data, other_cores, delay, run_delay, kind, threads, growing: measurement(
        phases,
        samples=[
            stack(USER, PLOT, count=plotting),
            stack(USER, CALL, count=model),
            stack(USER, NEXT, Frame("fetch", "/work/data.py", 9), count=data),
        ],
        other_cores=other_cores,
        team_delay_s=delay * sum(phases.values()),
        run_delay=run_delay,
        kind=kind,
        model=ModelMeasurement(threads=threads, ops=400, batch_size=8, forwards=1),
        memory=MemoryMeasurement(rss_by_step=[(float(n), 5e8 + growing * n) for n in range(0, 200, 4)]),
    ),
    phases=st.dictionaries(st.sampled_from(PHASE_NAMES), seconds, min_size=1),
    plotting=st.integers(1, 300),
    model=st.integers(1, 300),
    data=st.integers(1, 300),
    other_cores=st.floats(0, 3.9),
    delay=st.floats(0, 3),
    run_delay=st.floats(0, 1),
    kind=st.sampled_from(["optimizer", "env", "batch"]),
    threads=st.integers(1, 4),
    growing=st.sampled_from([0.0, 2e6]),
)


def diagnosed(recorded) -> Report:
    return report(run(), recorded)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(recordings)
def test_headline_bars_evidence_and_page_agree_to_the_printed_digit(recorded):
    made = diagnosed(recorded)
    shares = {phase.name: phase.share for phase in made.phases}
    assert sum(shares.values()) == pytest.approx(1.0)
    for finding in made.findings:
        if finding.share is None:
            continue
        said = percent(finding.share)
        assert said in finding.evidence[0]
        if finding.phases:
            assert percent(sum(shares.get(name, 0.0) for name in finding.phases)) == said
    told = re.search(r"([0-9.<]+ %) of each step", wording.headline(made))
    if told and "which waits" not in wording.headline(made):
        assert told[1] == percent(made.verdict.share)
    screens = (run_view.page(made, 100).as_text(), run_markdown.render(made), html.page(Archive(report=made)))
    largest = max(made.phases, key=lambda phase: phase.share)
    for screen in screens:
        assert percent(largest.share) in screen.replace("\u202f", " ").replace("&nbsp;", " ")


@given(recordings)
def test_what_other_programs_took_is_in_no_share_and_said(recorded):
    made = diagnosed(recorded)
    assert all(phase.attributed_s is not None and phase.wall_s is not None for phase in made.phases)
    attributed = sum(phase.attributed_s for phase in made.phases)
    if made.account is None:
        assert sum(phase.mean_s for phase in made.phases) == pytest.approx(attributed)
    else:
        assert sum(phase.mean_s for phase in made.phases) == pytest.approx(made.account.step_s)
        assert made.account.step_s < attributed
        assert any("other programs" in note for note in made.run.notes)


def test_every_pattern_is_told_by_its_own_object():
    assert all(pattern.name == name for name, pattern in all_patterns().items())
