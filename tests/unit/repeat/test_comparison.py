"""Two runs side by side: what is different, which is faster, and when that cannot be said."""

from __future__ import annotations

import numpy as np
import pytest
from changes import changed
from makers import entry, kept, report
from rich.console import Console

from unstall.records import report as r
from unstall.records.archive import Archive
from unstall.records.measurements import LoaderMeasurement, Measurement, Slowing
from unstall.records.model import ModelMeasurement
from unstall.records.run import StepTime, Utilization
from unstall.records.speedup import Speedup
from unstall.repeat import differences, noise
from unstall.repeat.comparison import compare
from unstall.report import compare_view


def _durations(mean, spread=0.05, count=200, seed=0):
    return mean * np.exp(spread * np.random.default_rng(seed).standard_normal(count))


def test_a_faster_run_is_faster():
    found = compare(kept(_durations(0.2)), kept(_durations(0.1, seed=1)))
    assert found.conclusion == "faster"
    assert found.speedup.low < 2.0 < found.speedup.high
    assert found.phases[0].name == "data_wait" and found.phases[0].sure


def test_the_same_run_shows_no_difference_and_how_small_a_one_would_have_been_found():
    found = compare(kept(_durations(0.1)), kept(_durations(0.1, seed=1)))
    assert found.conclusion == "no difference"
    assert 1.0 < found.smallest_detectable < 1.03
    assert not any(phase.sure for phase in found.phases)


def test_runs_that_differ_by_themselves_make_it_less_sure():
    a, b = kept(_durations(0.105)), kept(_durations(0.1, seed=1))
    assert compare(a, b).conclusion == "faster"
    found = compare(a, b, noise.Noise(0.05, 10))
    assert found.conclusion == "no difference" and found.smallest_detectable > 1.1


def test_warm_up_does_not_count():
    durations = _durations(0.1)
    durations[:50] = 5.0
    found = compare(kept(durations, measured=np.arange(200) >= 50), kept(_durations(0.1, seed=1)))
    assert found.conclusion == "no difference"


def test_reports_alone_give_a_ratio_and_no_interval():
    found = compare(Archive(report=report(10.0)), Archive(report=report(12.0)))
    assert found.conclusion == "unknown" and found.speedup.value == pytest.approx(1.2) and found.speedup.low is None
    assert "no interval" in found.caveats[0]


def test_no_steps_no_comparison():
    found = compare(Archive(report=report(None, steps=0)), kept(_durations(0.1)))
    assert found.speedup is None and "no comparison" in compare_view.headline(found)


def test_very_short_runs_tell_nothing_for_sure():
    found = compare(kept([0.1, 0.1, 0.1]), kept([0.1, 0.1, 0.1]))
    assert all(phase.sure is None for phase in found.phases)


def _names(a, b):
    return {(one.subject, one.name): (one.a, one.b) for one in differences.between(a, b)}


def test_what_was_different_is_named():
    busy = Utilization(other_processes_cores=1.5)
    gpus = [{"name": "H200", "memory_bytes": 1}]
    a = Archive(report=report(environment={"torch": "2.12", "git_revision": "a" * 40}))
    b = Archive(
        report=report(
            environment={"torch": "2.13", "git_revision": "b" * 40, "cpu_count": 4.0, "gpus": gpus},
            command=["train.py", "--fast"],
            utilization=busy,
        )
    )
    assert _names(a, b) == {
        ("machine", "cores"): ("2", "4"),
        ("machine", "GPUs"): ("none", "H200"),
        ("software", "torch"): ("2.12", "2.13"),
        ("load", "cores taken by other processes"): ("0", "1.5"),
        ("command", "command"): ("train.py", "train.py --fast"),
        ("code", "git revision"): ("aaaaaaaa", "bbbbbbbb"),
    }
    assert any("may not be the reason" in caveat for caveat in compare(a, b).caveats)


def test_uncommitted_changes_are_another_code():
    a = Archive(report=report(environment={"git_revision": "a" * 40}))
    b = Archive(report=report(environment={"git_revision": "a" * 40, "git_changes": "123456789abc"}))
    assert _names(a, b) == {("code", "git revision"): ("aaaaaaaa", "aaaaaaaa with uncommitted changes (1234)")}


def test_memory_may_vary_a_little_from_boot_to_boot():
    a, b = (Archive(report=report(environment={"memory_bytes": size})) for size in (8_000_000_000, 8_000_100_000))
    assert not _names(a, b)


def _with_loader(**settings):
    step = StepTime(0.1, 0.1, 0.1)
    measurement = Measurement("batch", 9, 1, 10, step, [], 2.0, 1, loader=LoaderMeasurement(**settings))
    return Archive(report=report(), measurement=measurement)


def test_the_loaders_settings_are_named():
    a, b = _with_loader(workers=0, batch_size=32), _with_loader(workers=4, batch_size=64, pin_memory=True)
    assert _names(a, b) == {
        ("settings", "batch size"): ("32", "64"),
        ("settings", "workers"): ("0", "4"),
        ("settings", "pinned memory"): ("no", "yes"),
    }
    assert any("samples/s" in caveat for caveat in compare(a, b).caveats)


@pytest.mark.parametrize("facts", [{"gpus": "odd"}, {"gpus": [3]}, {"memory_bytes": "much"}, {"cpu_count": None}])
def test_odd_facts_of_somebody_elses_report_do_no_harm(facts):
    assert _names(Archive(report=report(environment=facts)), Archive(report=report()))


_HOSTILE = "<script>alert('1')</script>\x1b[2J|`x`\n# big"


def test_hostile_names_are_data():
    culprit = r.Culprit(function=_HOSTILE, file=_HOSTILE, line=1, share=0.5)
    a = kept(_durations(0.1), culprit=culprit, command=[_HOSTILE], run_id=_HOSTILE, environment={"cpu": _HOSTILE})
    found = compare(a, kept(_durations(0.2)))
    console = Console(width=90, record=True, file=open("/dev/null", "w"))
    compare_view.page(found, console.width).show(console)
    assert "\x1b" not in console.export_text()
    written = compare_view.markdown(found)
    assert "<script>" not in written and "\x1b" not in written and "\n# big" not in written


def test_the_headline_has_the_interval():
    line = compare_view.headline(compare(kept(_durations(0.2)), kept(_durations(0.1, seed=1))))
    assert line.startswith("B is faster than A: ") and " to " in line


def test_noise_is_learnt_from_runs_of_the_same_code():
    same = [entry(str(number), speed) for number, speed in enumerate((10.0, 11.0, 9.0))]
    other = [entry("x", 50.0, revision="d" * 40), entry("y", 70.0, revision=None), entry("z", None)]
    found = noise.of_runs([*same, *other])
    assert found.degrees == 2 and found.deviation == pytest.approx(0.1, abs=0.01)
    assert noise.of_runs(same[:2]) is None


def test_the_verdicts_say_their_ceilings_with_the_intervals():
    a, b = kept(_durations(0.1), headroom=4.0), kept(_durations(0.1, seed=1))
    ceiling = Speedup(value=4.0, low=3.1, high=6.0, confidence="medium", known_by="estimated")
    a = changed(a, report__verdict__ceiling=ceiling)
    text = " ".join(compare_view.page(compare(a, b)).as_text().split())
    assert "ceiling 4× (3.1 to 6, estimated)" in text
    assert "headroom" not in text


def test_callbacks_of_the_steps_are_set_side_by_side():
    def with_callback(mean, **step_s):
        archive = kept(_durations(mean))
        times = [
            r.CallbackTime(
                framework="keras",
                callback=name,
                event="on_end",
                calls=9,
                total_s=1.0,
                mean_s=0.1,
                share=0.1,
                step_s=step,
            )
            for name, step in step_s.items()
        ]
        return changed(archive, report=changed(archive.report, callbacks=times))

    found = compare(with_callback(0.2, Plot=0.05, Log=0.02, Rare=0.0), with_callback(0.15, Log=0.021))
    assert [(change.name, change.a_s, change.b_s) for change in found.callbacks] == [
        ("Plot.on_end", 0.05, 0.0),
        ("Log.on_end", 0.02, 0.021),
    ]
    shown = compare_view.page(found).as_text()
    assert "Callbacks" in shown and "Plot.on_end" in shown and "−50 ms" in shown
    assert "Callbacks" not in compare_view.page(compare(kept(_durations(0.2)), kept(_durations(0.2)))).as_text()


def test_a_run_that_slowed_down_is_said_to():
    slowing = Slowing(per_1000=0.12, low=0.11, high=0.14, begin_s=0.1, end_s=0.2, phase="other")
    steady = Measurement("batch", 9, 1, 10, StepTime(0.1, 0.1, 0.1), [], 2.0, 1)
    a = Archive(report=report(), measurement=steady)
    caveats = compare(a, changed(a, measurement__slowing=slowing)).caveats
    assert any(line.startswith("B slows down: a step takes 12 % longer every 1,000 steps") for line in caveats)
    assert not any(line.startswith("A slows down") for line in caveats)


def _with_model(libraries=None, **model):
    measured = Measurement(
        "optimizer", 9, 1, 10, StepTime(0.1, 0.1, 0.1), [], 2.0, 1, model=ModelMeasurement(forwards=1.0, **model)
    )
    return Archive(report=report(environment={"libraries": libraries or {}}), measurement=measured)


def test_samples_a_step_shapes_and_libraries_are_named():
    a = _with_model({"torchvision": "0.27", "numpy": "2.1"}, batch_size=2048, sample="3×224×224", parameters=10)
    b = _with_model({"torchvision": "0.28", "scipy": "1.0"}, batch_size=128, sample="3×112×112", parameters=12)
    assert _names(a, b) == {
        ("software", "torchvision"): ("0.27", "0.28"),
        ("settings", "samples a step"): ("2048", "128"),
        ("settings", "parameters"): ("10", "12"),
        ("settings", "shape of a sample"): ("3×224×224", "3×112×112"),
    }
    assert any("samples/s" in caveat for caveat in compare(a, b).caveats)


def test_a_short_last_batch_and_shapes_that_vary_are_no_differences():
    a, b = _with_model(batch_size=128, sample="3×8"), _with_model(batch_size=127, sample="")
    assert not _names(a, b)
