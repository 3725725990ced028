from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from changes import changed
from report_examples import finding, make

from unstall.diagnose.patterns import all_patterns
from unstall.records import report as r
from unstall.records.vocabulary import WITHOUT_CULPRIT
from unstall.report import promise, wording


def test_the_sentence_of_a_loop_that_waits_for_its_workers(input_bound: r.Report) -> None:
    assert wording.headline(input_bound) == (
        "input-bound (transform): 83 % of each step waits for RandomWarp.__call__ in the loader "
        "workers; ceiling without it 4.1× (3.2 to 5.8, estimated); high confidence"
    )


def test_workers_that_take_the_cores_are_not_called_late(contended: r.Report) -> None:
    sentence = wording.headline(contended)
    assert "takes the cores from the model, which waits 31 % of each step for one" in sentence
    assert "9 %" not in sentence


def test_loading_in_the_main_process(input_bound: r.Report) -> None:
    input_bound = changed(input_bound, verdict__culprit__where="main")
    report = make(input_bound.verdict, {"data_wait": 0.83})
    assert "goes into preparing the next batch in RandomWarp.__call__" in wording.headline(report)


def test_a_run_without_steps_has_no_verdict_but_a_way_on(no_steps: r.Report) -> None:
    assert wording.headline(no_steps) == (
        "no verdict: no step was seen (the program ended before its first optimizer step); "
        "what to do: mark the loop: for batch in unstall.steps(loader)"
    )
    no_steps = changed(no_steps, run__notes=[], verdict__advice=[])
    assert wording.headline(no_steps) == "no verdict: no step was seen"


@pytest.mark.parametrize("pattern", sorted(set(all_patterns()) - {"no-verdict"}))
@pytest.mark.parametrize("with_culprit", [True, False])
def test_every_pattern_has_a_sentence(pattern: str, with_culprit: bool) -> None:
    culprit = r.Culprit(function="gather_loss", file="a.py", line=3, share=0.4)
    verdict = finding(pattern, culprit=culprit if with_culprit else None)
    sentence = wording.headline(make(verdict, {}))
    assert sentence.startswith(f"{pattern}: ")
    assert sentence.endswith("high confidence)" if pattern in WITHOUT_CULPRIT else "; high confidence")
    assert ("ceiling" in sentence) == (pattern not in WITHOUT_CULPRIT)
    assert ("gather_loss" in sentence) == (with_culprit and pattern not in WITHOUT_CULPRIT)
    assert "None" not in sentence and "{" not in sentence and "  " not in sentence


def in_library(**more) -> r.Culprit:
    file = "/env/lib/python3.11/site-packages/pkg/sampling.py"
    called_by = r.Caller(function="train", file="/elsewhere/train.py", line=45)
    fields = {"function": "corrupt", "file": file, "line": 87, "share": 0.85, "package": "pkg", "version": "1.2.1"}
    return r.Culprit(**{**fields, "called_by": called_by, **more})


def test_a_culprit_in_a_library_is_told_with_its_version_and_who_calls_it() -> None:
    assert wording.name_and_place(in_library()) == ["corrupt", "pkg/sampling.py:87 (pkg 1.2.1)"]
    assert wording.called_by(in_library()) == "called by your train, /elsewhere/train.py:45"
    assert wording.name_and_place(in_library(version="")) == ["corrupt", "pkg/sampling.py:87 (pkg)"]
    assert wording.name_and_place(in_library(function="<module>")) == ["pkg/sampling.py:87 (pkg 1.2.1)"]


def test_a_line_of_a_module_that_calls_a_library_is_its_file_alone() -> None:
    caller = r.Caller(function="<module>", file="/elsewhere/train.py", line=3)
    assert wording.called_by(in_library(called_by=caller)) == "called by your /elsewhere/train.py:3"
    assert wording.called_by(in_library(called_by=None)) == ""


def test_callers_come_before_the_users_line_and_none_twice():
    item, users = (r.Caller(function=name, file=f"/elsewhere/{name}.py", line=3, share=0.9) for name in ("item", "fit"))
    chain = "called by item, /elsewhere/item.py:3"
    assert wording.called_by(in_library(called_by=None, callers=[item])) == chain
    both = in_library(called_by=r.Caller(function="fit", file=users.file, line=3), callers=[item, users])
    assert wording.called_by(both) == f"{chain} ← your fit, /elsewhere/fit.py:3"


def test_absent_shares_are_not_called_zero() -> None:
    sentence = wording.headline(make(finding("sync-bound"), {"forward": 1.0}))
    assert sentence.startswith("sync-bound: each step goes into")


def test_a_report_without_intervals_says_what_it_knows(input_bound: r.Report) -> None:
    input_bound = changed(input_bound, verdict__headroom_known_by="measured", verdict__ceiling=None)
    input_bound = changed(input_bound, verdict__expected_gain=None)
    assert "; ceiling without it 4.1× (measured); high confidence" in wording.headline(input_bound)
    assert promise.ceiling_line(input_bound) == "4.1× (measured), 41.5 steps/s → 171 steps/s"
    assert promise.gain_line(input_bound) is None


def test_a_figure_that_says_little_names_who_knows(input_bound: r.Report) -> None:
    unsure = changed(input_bound, verdict__ceiling__confidence="low", verdict__ceiling__high=1000.0)
    line = promise.ceiling_line(unsure)
    assert line == "3.2× or more (estimated); `unstall simplify` measures it"
    assert "simplify" not in (promise.ceiling_line(changed(unsure, kind="simplify")) or "")


def test_a_gain_without_a_ceiling_is_in_the_headline(input_bound: r.Report) -> None:
    gain_alone = changed(input_bound, verdict__ceiling=None)
    assert "; expected gain of a cheaper transform 1.34 to 5× (estimated); high" in wording.headline(gain_alone)


def test_a_gain_above_the_ceiling_says_what_it_takes(input_bound: r.Report) -> None:
    ceiling = input_bound.verdict.ceiling.high
    usual, more = (changed(input_bound, verdict__expected_gain__high=times * ceiling) for times in (1.1, 1.5))
    assert promise.gain_line(usual).endswith("(estimated)")
    assert promise.gain_line(more).endswith("(estimated); the upper end only if what is around it gets cheaper, too")


def test_no_gain_is_not_promised(memory_growth: r.Report) -> None:
    assert wording.headline(memory_growth) == (
        "memory-growth (graph): memory grows by 2.1 MB every step, kept by train.py:31 (high confidence)"
    )
    assert promise.ceiling_line(memory_growth) is None
    assert wording.culprit_share(memory_growth.verdict) == ""


def test_runner_up(input_bound: r.Report, healthy: r.Report) -> None:
    assert wording.runner_up_line(input_bound) == (
        "callback-bound (logging), ceiling 1.06× (estimated), in log_step at train.py:88"
    )
    assert wording.runner_up_line(healthy) is None


def test_locations_are_short_where_they_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert wording.location(str(tmp_path / "src" / "a b.py"), 3) == os.path.join("src", "a b.py:3")
    assert wording.location("/elsewhere/a.py", 3) == "/elsewhere/a.py:3"
    assert wording.location("/v/lib/python3/site-packages/pkg/m.py", 3) == "pkg/m.py:3"
    assert wording.location("<string>", 1) == "<string>:1"
    assert wording.location("a\x00b.py", 1) == "a\ufffdb.py:1"


def test_a_working_directory_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert wording.location("/a/train.py", 3) == "/a/train.py:3"


@pytest.mark.parametrize(
    "name, command",
    [
        ("input_bound", "unstall simplify train.py --epochs 1"),
        ("compute_bound", "unstall run --modules train.py --epochs 1"),
        ("memory_growth", "unstall run --memory train.py --epochs 1"),
        ("noisy", "unstall run train.py --epochs 1"),
        ("no_steps", "unstall run train.py --epochs 1"),
        ("healthy", None),
    ],
)
def test_next_command(name: str, command: str | None, request: pytest.FixtureRequest) -> None:
    assert wording.next_command(request.getfixturevalue(name)).command == command


def test_low_confidence_asks_for_more_steps_where_more_can_be_had(noisy: r.Report) -> None:
    noisy = changed(noisy, run__exit_code=None)
    assert wording.next_command(noisy).command == "unstall run --steps 200 train.py --epochs 1"
    noisy = changed(noisy, run__steps=300)
    assert wording.next_command(noisy).command == "unstall run --steps 600 train.py --epochs 1"


def test_low_confidence_by_a_busy_machine_asks_to_wait(noisy: r.Report) -> None:
    noisy = changed(noisy, utilization__other_processes_cores=1.5)
    assert "other processes" in wording.next_command(noisy).why


def test_a_server_that_is_idle_asks_for_more_clients(input_bound: r.Report) -> None:
    idle = changed(input_bound, verdict=finding("idle", cause="requests"))
    assert wording.next_command(idle) == ("with more clients at once:", "unstall run train.py --epochs 1")


def test_modules_are_asked_for_once(compute_bound: r.Report) -> None:
    compute_bound = changed(
        compute_bound, modules=[r.ModuleTime(name="", type="Net", calls_per_step=1, forward_s=0.1, self_s=0.1)]
    )
    assert "--modules" not in wording.next_command(compute_bound).command


def test_the_command_can_be_pasted(input_bound: r.Report) -> None:
    input_bound = changed(input_bound, run__command=["my train.py", "--name", "a  b; rm"])
    assert wording.next_command(input_bound).command.endswith("'my train.py' --name 'a  b; rm'")
    input_bound = changed(input_bound, run__command=[])
    assert wording.next_command(input_bound).command is None


def test_wording_changes_no_report(example: r.Report) -> None:
    before = msgspec.structs.asdict(example)
    wording.headline(example)
    wording.next_command(example)
    assert msgspec.structs.asdict(example) == before


@pytest.mark.parametrize(
    "function, file, said",
    [
        ("decode", "/w/train.py", ["decode", "/w/train.py:3"]),
        ("<module>", "/w/train.py", ["/w/train.py:3"]),
        ("aten::mm", "", ["aten::mm"]),
    ],
)
def test_a_place_is_said_once(function: str, file: str, said: list[str]) -> None:
    assert wording.name_and_place(r.Culprit(function=function, file=file, line=3, share=0.4)) == said
