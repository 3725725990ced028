import base64
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from changes import changed
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import Environment, UndefinedError, nodes
from report_strategies import reports

from unstall.records import report as r
from unstall.records.archive import Archive, Excerpt, StepSeries
from unstall.records.observations import Frame, MachinePoint, ResourcePoint, StackSample
from unstall.records.run import RunInfo, Throughput, Utilization
from unstall.records.what_if import Knob, Outcome, Sliders
from unstall.report import html, templating
from unstall.report.html import charts, flame, markup, series, source
from unstall.report.html.markup import json_block
from unstall.report.templating import Markup


class _Outline(HTMLParser):
    """The elements of a page, and whether they are closed in order."""

    VOID = ("br", "hr", "input", "meta", "col")

    def __init__(self, document):
        super().__init__()
        self.open, self.tags, self.attributes = [], [], []
        self.feed(document)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def floats(packed):
    return np.frombuffer(base64.b64decode(packed), "<f4")


def step_series(durations, phases=None):
    ends = np.concatenate([[0.0], np.cumsum(durations)])
    flags = np.ones(len(durations), "u1")
    phases = phases or {"forward": durations}
    return StepSeries(
        boundaries_f8=ends.astype("<f8").tobytes(),
        phases_f4={name: np.asarray(values).astype("<f4").tobytes() for name, values in phases.items()},
        measured_u1=flags.tobytes(),
        gap_u1=(0 * flags).tobytes(),
    )


def shown(template, **context):
    return markup.environment().from_string(template).render(context)


def test_every_string_of_a_template_is_escaped_and_loses_its_control_characters():
    hostile = "<b> & \x1b[31m\"'\n\u202e\ud800"
    as_text = "&lt;b&gt; &amp; &#34;&#39; \ufffd"
    assert shown('<a title="{{ x }}">{{ x }}</a>', x=hostile) == f'<a title="{as_text}">{as_text}</a>'
    assert shown("{% for name, value in x.items() %}{{ name }}{{ value }}{% endfor %}", x={"<": ["\x07"]}) == (
        "&lt;[&#39;\\x07&#39;]"
    )
    assert (
        shown("{% macro m(x) %}{{ x }}{{ caller() }}{% endmacro %}{% call m(x) %}{{ x }}{% endcall %}", x="\x1b[1m<")
        == "&lt;&lt;"
    )
    assert shown("{% set block %}{{ x }}{% endset %}{{ block }}", x="\x1b[1m<") == "&lt;"
    assert shown("{{ x }}{{ y }}{{ z }}", x=Markup("<i></i>"), y=None, z=12) == "<i></i>12"
    with pytest.raises(UndefinedError):
        shown("{{ unknown }}")


TEMPLATES = [path for path in Path(templating.__file__).parent.rglob("templates/*") if path.suffix in (".html", ".md")]
FILTERS = {"bounded", "fenced", "join", "known", "length", "map", "permille", "sort", "sum", "thousands"}


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_template_goes_around_the_escaping(path):
    source = path.read_text(encoding="utf-8")
    tree = Environment().parse(source)
    assert list(tree.find_all((nodes.Concat, nodes.MarkSafe, nodes.ScopedEvalContextModifier))) == []
    assert {node.name for node in tree.find_all(nodes.Filter)} <= FILTERS
    assert not re.search(r"=\s*\{\{", source), "an attribute without quotes"


@pytest.mark.parametrize("module", ["unstall", "unstall.cli.main", "unstall.report.html", "unstall.report.run_view"])
def test_importing_loads_no_template_engine(module):
    code = f"import sys, {module}; assert 'jinja2' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_json_cannot_end_its_element():
    block = json_block({"a": "</script><!--", "b": [float("nan"), 1.5], "c": "\u2028", "d": "\x1b[1mx"})
    assert not set("<>&\u2028") & set(block)
    assert json.loads(block) == {"a": "</script><!--", "b": [None, 1.5], "c": "", "d": "x"}


@settings(max_examples=40, deadline=None)
@given(reports)
def test_every_report_makes_a_well_formed_page(report):
    for document in (html.page(Archive(report=report)), html.inline(report)):
        outline = _Outline(document)
        assert not any(name.startswith("on") or name == "style" for name in outline.attributes)
        assert not {"img", "iframe", "object", "link"} & set(outline.tags)


def test_the_page_names_the_verdict_and_needs_nothing_else(input_bound):
    page = html.page(Archive(report=input_bound))
    assert "RandomWarp.__call__" in page and "83 %" in page
    assert not re.search(r'(src|href)="(?!#)', page)
    assert "url(" not in page and "@import" not in page


def test_the_inline_form_has_no_script_and_no_ids(input_bound):
    shown = html.inline(input_bound)
    outline = _Outline(shown)
    assert "script" not in outline.tags and "id" not in outline.attributes
    assert "RandomWarp.__call__" in shown


def test_widths_have_a_rule_each(input_bound):
    page = html.page(Archive(report=input_bound))
    used = set(re.findall(r'class="(w-\d+)[ "]', page))
    assert used and all(f".{name}{{width:" in page for name in used)


@pytest.mark.parametrize("count", (1, 2, 5999, 6000, 6001, 50_000))
def test_buckets_cover_every_step_once(count):
    edges = series.bucket_edges(count)
    assert edges[0] == 0 and edges[-1] == count
    assert (np.diff(edges) >= 1).all() and len(edges) <= series.MOST_BUCKETS + 1


def test_extremes_of_a_long_series_are_kept():
    durations = np.full(100_000, 0.01)
    durations[[1, 77_777]] = 5.0, 0.001
    kept = charts.steps(Archive(report=_report(), steps=step_series(durations)))
    assert floats(kept["high"]).max() == pytest.approx(5.0)
    assert floats(kept["low"]).min() == pytest.approx(0.001, rel=1e-3)
    weights = np.diff(floats(kept["edges"]))
    assert (floats(kept["mean"]) * weights).sum() == pytest.approx(durations.sum(), rel=1e-4)
    assert kept["unmeasured"] == [] and kept["gaps"] == []


def test_a_histogram_counts_everything():
    values = np.random.default_rng(0).gamma(5, 0.01, 3000)
    values[7] = 90.0
    edges, counts, beyond = series.histogram(values)
    assert counts.sum() == len(values) and len(edges) == len(counts) + 1
    assert beyond == 15 and edges[-1] < 1
    same = series.histogram(np.full(10, 0.25))
    assert same.counts.sum() == 10


def test_stretches_are_joined_where_there_are_too_many():
    flags = np.array([1, 1, 0, 1, 0, 0, 0, 1], bool)
    assert series.stretches(flags) == [(0, 2), (3, 4), (7, 8)]
    assert series.stretches(flags, most=2) == [(0, 4), (7, 8)]
    assert series.stretches(~flags, most=1) == [(2, 7)]
    assert series.stretches(np.zeros(3, bool)) == []


def test_resources_are_rates_of_their_counters():
    points = [ResourcePoint(t / 4, 1, 0.5 * t / 4, 0, 1000 + t) for t in range(41)]
    found = charts.resources(Archive(report=_report(), resources=points))
    cores, memory = found["panels"]
    assert floats(cores["series"][0]["values"]) == pytest.approx(np.full(20, 0.5))
    assert cores["ceiling"] == 2
    assert floats(memory["series"][0]["values"]).max() == 1040
    assert charts.resources(Archive(report=_report(), resources=points[:2])) is None


def test_a_flame_graph_sums_equal_functions():
    outer, inner = Frame("f", "/a/b.py", 3), Frame("g", "/x/site-packages/torch/g.py", 4)
    other_line = Frame("f", "/a/b.py", 9)
    samples = [
        StackSample(1, "MainThread", (outer, inner), 5),
        StackSample(1, "MainThread", (other_line,), 2),
        StackSample(1, "loader", (outer,), 1, main_thread=False),
    ]
    main, other = flame.graphs(Archive(report=_report(), stacks=samples))
    assert (main["name"], main["samples"], other["name"]) == ("main thread", 7, "other threads")
    (f,) = main["tree"]["children"]
    assert (f["name"], f["value"], f["at"], f["kind"]) == ("f", 7, "/a/b.py:3", "own")
    assert f["children"][0]["kind"] == "torch"


def test_a_flame_graph_is_bounded():
    samples = [
        StackSample(1, "MainThread", tuple(Frame(f"f{i}", "/a.py", 1) for _ in range(3000)), 1) for i in range(50)
    ]
    (graph,) = flame.graphs(Archive(report=_report(), stacks=samples))
    assert len(json.dumps(graph)) < 1_000_000


def test_the_source_of_the_function_is_shown_around_the_line():
    lines = ["def load(p):", "    data = open(p)", "    return data.read('<b>')"]
    shown = source.excerpt(_culprit("train.py", 6, "return data.read('<b>')"), [Excerpt("train.py", 4, lines)])
    plain = re.sub(r"<[^>]*>", "", shown)
    assert "def load(p):" in plain and "data = open(p)" in plain
    assert "&lt;b&gt;" in shown and shown.count("blamed line") == 1


def test_the_blamed_line_stands_alone_where_no_excerpt_holds_it():
    alone = source.excerpt(
        _culprit("train.py", 8, "x = load()"), [Excerpt("/another.py", 7, ["def f():", "    x = load()"])]
    )
    assert ">7<" not in alone and ">8<" in alone and "load" in alone
    assert source.excerpt(_culprit("train.py", 1, "")) is None


def test_sliders_positions_read_as_a_person_says_them():
    knobs = [Knob("workers", "loader workers", (0.0, 2.0), 0), Knob("decode", "time of decode", (1.0, 0.5, 0.0), 0)]
    shown = charts.what_if(Sliders(knobs, []))["knobs"]
    assert [knob["values"] for knob in shown] == [["0", "2"], ["as it is", "0.5×", "free"]]


def test_sliders_become_plain_data():
    knob = Knob("workers", "loader workers", (0.0, 1.0), 0)
    table = Sliders([knob], [Outcome(0.04, 0.03, 0.05, "data"), Outcome(0.02, 0.01, 0.03, "forward")])
    assert charts.what_if(table) == {
        "knobs": [{"label": "loader workers", "values": ["0", "1"], "now": 0}],
        "stepS": [0.04, 0.02],
        "low": [0.03, 0.01],
        "high": [0.05, 0.03],
        "limits": ["data", "forward"],
        "limit": [0, 1],
    }


def _culprit(path, line, code):
    return r.Culprit(function="load", file=str(path), line=line, share=0.5, code=code)


def _report():
    verdict = r.Finding(
        pattern="healthy", headroom=1.0, headroom_known_by="estimated", confidence="high", evidence=[], advice=[]
    )
    return r.Report(
        kind="run",
        run=RunInfo(
            id="x",
            command=["a.py"],
            started="2026-01-01T00:00:00Z",
            duration_s=1.0,
            steps=10,
            exit_code=0,
            environment={"cpu_count": 2},
        ),
        throughput=Throughput(steps_per_s=1.0),
        utilization=Utilization(),
        phases=[],
        verdict=verdict,
        findings=[verdict],
    )


def test_the_inline_forms_rules_reach_nothing_else_of_the_notebook(input_bound):
    style = re.search(r"<style>(.*?)</style>", html.inline(input_bound), re.DOTALL)[1]
    selectors = [one.strip() for rule in re.findall(r"([^{}]+)\{", style) if "@" not in rule for one in rule.split(",")]
    assert len(selectors) > 100
    assert all(".unstall" in one for one in selectors)


_any = st.floats() | st.floats(0, 1e4)
_points = st.builds(
    ResourcePoint,
    t=_any,
    pid=st.integers(0, 3),
    cpu_s=_any,
    run_delay_s=_any,
    rss_bytes=st.integers(-(2**63), 2**63),
    read_bytes=st.integers(0, 2**63),
)
_machine = st.builds(
    MachinePoint,
    t=_any,
    busy_cpu_s=_any,
    gpu_utilization=st.lists(_any, max_size=2).map(tuple),
    gpu_memory_bytes=st.lists(st.integers(0, 2**63), max_size=2).map(tuple),
)
_frames = st.builds(Frame, function=st.text(max_size=9), file=st.text(max_size=9), line=st.integers(-9, 9))
_stacks = st.builds(
    StackSample,
    pid=st.integers(0, 3),
    thread=st.text(max_size=5),
    frames=st.lists(_frames, max_size=6).map(tuple),
    count=st.integers(-5, 2**40),
    main_thread=st.booleans(),
)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=60, deadline=None)
@given(st.lists(_points, max_size=12), st.lists(_machine, max_size=6), st.lists(_stacks, max_size=6))
def test_any_recording_makes_a_page(points, machine, stacks):
    archive = Archive(report=_report(), resources=points, machine=machine, stacks=stacks)
    page = html.page(archive)
    _Outline(page)
    data_of(page)


def test_a_phase_of_a_plugin_has_a_colour_in_bar_and_chart(healthy):
    phases = [r.PhaseTime(name=name, share=0.25, mean_s=0.1) for name in ("forward", "tokenize", "pack", "a{}b")]
    healthy = changed(healthy, phases=phases)
    page = html.page(Archive(report=healthy, steps=step_series([0.1] * 20, {"tokenize": [0.1] * 20})))
    assert "--p-tokenize:var(--e-0);--p-pack:var(--e-1);" in page
    assert ".p-tokenize{background:var(--p-tokenize)}" in page
    assert re.search(r'class="w-250 p-tokenize"', page)
    assert list(data_of(page)["steps"]["phases"]) == ["tokenize"]
    assert "a{}b{" not in page, "a name that is no class gets no rule"
