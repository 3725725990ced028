import io

import msgspec
from pipelines import pipeline
from rich.console import Console

from unstall.model import Changes, assumptions, elasticities, predict, survey
from unstall.records.what_if import WhatIfReport
from unstall.report import what_if_view


def shown(answers, **more):
    report = WhatIfReport(
        run="r", command=["t.py"], recorded_step_s=0.02, answers=answers, elasticities={"data": 1.0}, **more
    )
    console = Console(file=io.StringIO(), width=100, color_system=None)
    what_if_view.page(report, console.width).show(console)
    return console.file.getvalue()


def test_the_survey_names_the_fewest_workers_that_do():
    found = survey(pipeline(measured_s=0.02, workers=1))
    names = [one.changes for one in found]
    assert names[0] == "workers 2", "12 ms of body hide 20 ms of two workers"
    assert "workers 8" not in names and "workers 0" in names
    assert "Photos.decode 0.5x" in names and "callback async" in names
    assert [round(one.speedup, 2) for one in found] == sorted((round(one.speedup, 2) for one in found), reverse=True)


def test_a_loop_without_loader_is_asked_nothing_about_workers():
    found = survey(pipeline(has_loader=False, workers=0, measured_s=0.012))
    assert found and not any("workers" in one.changes or "data" in one.changes for one in found)


def test_one_answer_in_words():
    text = shown([predict(pipeline(measured_s=0.02), Changes(workers=2))])
    assert text.splitlines()[1].startswith("1.67× as fast, predicted (")
    assert "recorded 20 ms · predicted 12 ms" in text and "Limited by main thread: backward" in text
    slower = shown([predict(pipeline(measured_s=0.02), Changes(workers=0))])
    assert "Slower: 0.625× as fast" in slower


def test_a_step_of_nothing_in_words():
    free = dict.fromkeys(["forward", "backward", "callback", "data"], 0.0)
    found = predict(pipeline(measured_s=0.02), Changes(scales=free))
    assert "Nothing is left of the step" in shown([found])
    assert msgspec.json.decode(msgspec.json.encode(found))["step_s"] == 0


def test_what_is_taken_for_granted_is_said():
    made = pipeline(workers=0, threads=1, background=4.0, cores=8.0)
    lines = assumptions(made, Changes(workers=2, threads=4, aside=frozenset({"callback"})))
    assert len(lines) == 4 and assumptions(pipeline(), Changes(workers=2)) == []
    assert "other programs took 4.0 cores" in shown([], notes=lines)


def test_what_matters_after_a_change_is_something_else():
    made = pipeline(measured_s=0.02)
    assert elasticities(made)["data"] > 0.95
    assert elasticities(made, Changes(workers=4)).get("data", 0.0) < 0.05
