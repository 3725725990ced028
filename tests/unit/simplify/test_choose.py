"""Which experiments a first run gives cause for."""

import pytest
from changes import changed

from unstall.model.parts import Parts
from unstall.records.measurements import LoaderMeasurement, Measurement, ModelMeasurement, RankMeasurement, Site
from unstall.records.report import Culprit, Finding, Hotspot, Phase, Report, RunInfo, StepTime, Throughput, Utilization
from unstall.simplify import choose
from unstall.simplify.study import deeper
from unstall.simplify.trial import Outcome


def measurement(*, loader=None, sites=(), threads=2):
    return Measurement(
        kind="optimizer",
        steps=50,
        warmup=3,
        total_steps=60,
        step=StepTime(0.1, 0.1, 0.1),
        phases=[],
        cores=4,
        main_pid=1,
        loader=loader,
        model=ModelMeasurement(root="Net", file="train.py", threads=threads),
        sites=list(sites),
    )


def report(phases, *findings, hotspots=()):
    run = RunInfo(id="1", command=[], started="", duration_s=1, steps=9, exit_code=0, environment={})
    return Report(
        kind="run",
        run=run,
        throughput=Throughput(steps_per_s=10.0),
        utilization=Utilization(),
        phases=[Phase(name=name, share=share, mean_s=share / 10) for name, share in phases.items()],
        verdict=findings[0],
        findings=list(findings),
        hotspots=list(hotspots),
    )


def blamed(function, pattern="callback-bound", share=0.5, where="main"):
    return Finding(
        pattern=pattern,
        headroom=2.0,
        headroom_known_by="estimated",
        confidence="high",
        evidence=[],
        advice=[],
        culprit=Culprit(function=function, file="train.py", line=1, share=share, where=where),
    )


def names(trials):
    return [trial.name for trial in trials]


def test_the_culprit_comes_first_and_what_takes_little_not_at_all():
    told = report({"forward": 0.3, "backward": 0.6, "callback": 0.08, "optimizer": 0.02}, blamed("Log.write"))
    found = names(choose.trials(told, measurement()))
    assert found[0] == "without Log.write"
    assert "without the optimizer's step" not in found
    assert "backward +50%" in found
    assert len(found) == len(set(found))


def test_calls_of_logging_libraries_are_tried_where_they_take_time():
    told = report({"forward": 0.5, "backward": 0.42, "callback": 0.08}, blamed("Log.write"))
    words = "without logging, plotting and checkpoint calls"
    saves = changed(measurement(), callbacks={"~torch.save": 0.006})  # of a step of 0.1 s
    assert words in names(choose.trials(told, saves))
    assert words not in names(choose.trials(told, measurement())), "nothing of a library's was called"


def test_a_loader_with_workers_gets_three_arms_and_other_settings():
    loader = LoaderMeasurement(workers=2, batches_per_step=1.0, service_cpu_s=0.1, prefetch_factor=2)
    told = report({"data_wait": 0.5, "forward": 0.5}, blamed("Rows.read", "input-bound", where="worker"))
    trials = choose.trials(told, measurement(loader=loader))
    assert [trial.intervention for trial in trials][:3] == ["stub", "cached", "placebo"]
    assert trials[2].base == trials[1].arm
    workers = {t.settings["loader"]["num_workers"] for t in trials if t.intervention == "workers"}
    assert workers == {0, 1, 4}


@pytest.mark.parametrize("name", ["main", "<module>", "Trainer.fit", "train.<lambda>"])
def test_what_holds_the_step_itself_is_not_stubbed(name):
    site = Site("~optimizer", "train.py", "fit", 3, callers=(("train.py", "main", 9), ("train.py", "<module>", 20)))
    told = report({"other": 1.0}, blamed(name, "host-bound"))
    assert list(choose.suspects(told, measurement(sites=[site]))) == []


def test_hotspots_are_suspects_too():
    spot = Hotspot(function="Rows.read", file="train.py", line=1, share=0.4, where="worker", phase="data_wait")
    told = report({"forward": 1.0}, blamed("Net.forward", "compute-bound"), hotspots=[spot])
    found = {function.name: function.of_data for function in choose.suspects(told, measurement())}
    assert found == {"Net.forward": False, "Rows.read": True}


def outcome(trial, log_ratio):
    made = Outcome(trial)
    made.log_ratios = [log_ratio + noise for noise in (0.01, -0.01, 0.01, -0.01, 0.0)]
    return made


def test_behind_the_costliest_the_others_are_tried_again():
    first, second = choose.stub(choose.Function("log", None)), choose.of_kind("env")
    (trial,) = deeper([outcome(second, 0.2), outcome(first, 1.0)])
    assert trial.base == first.arm
    assert trial.arm == second.arm


def test_nothing_is_deeper_than_nothing():
    assert deeper([outcome(choose.of_kind("env"), 0.0)]) == []


def test_what_is_part_of_the_data_is_gone_with_it():
    data = choose.of_kind("cached")
    read = choose.stub(choose.Function("read", None, of_data=True))
    assert deeper([outcome(data, 1.0), outcome(read, 0.9)]) == []


def test_two_functions_of_the_data_pipeline_are_tried_together():
    read, decode = (choose.stub(choose.Function(name, None, of_data=True)) for name in ("read", "decode"))
    assert len(deeper([outcome(read, 1.0), outcome(decode, 0.9)])) == 1


def test_one_function_under_two_names_is_not_its_own_next_bottleneck():
    step, env = outcome(choose.stub(choose.Function("Room.step", None)), 2.0), outcome(choose.of_kind("env"), 1.9)
    step.places = env.places = {"train.py:8"}
    assert deeper([step, env]) == []


@pytest.mark.parametrize(("name", "of_data"), [("log", False), ("read", True), ("unseen", True)])
def test_the_stacks_tell_whether_a_function_that_was_asked_for_makes_batches(name, of_data):
    seen = Parts({"data": ((frozenset({("train", "read")}), 5),), "callback": ((frozenset({("train", "log")}), 5),)})
    asked = choose.stub(choose.Function(name, None, of_data=True))
    assert choose.placed(asked, seen).touches_data is of_data


def test_a_setting_of_the_loader_is_for_the_main_one():
    trial = choose.of_loader(choose.setting("workers", 4), 2)
    assert trial.settings == {"loader": {"num_workers": 4, "from": 2}}
    assert choose.of_loader(choose.setting("ranks", 1), 2).settings == {"ranks": 1}
    assert choose.setting("threads", 1).settings is None


def test_ranks_are_tried_alone_where_there_are_several():
    several = changed(measurement(), ranks=[RankMeasurement(rank, rank, 0.1, {}, {}) for rank in (0, 1)])
    told = report({"forward": 0.9}, blamed("Log.write"))
    assert "one rank alone" in names(choose.trials(told, several))
    assert "one rank alone" not in names(choose.trials(told, measurement()))
