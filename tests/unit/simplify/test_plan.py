"""Which experiments a first run gives cause for."""

import pytest
from changes import changed
from simplify_builders import make_finding, make_measurement, make_report, make_result

from unstall.model.function_shares import FunctionShares
from unstall.records.communication import Communication, RankCommunication
from unstall.records.measurements import LoaderMeasurement, MemoryMeasurement, RankMeasurement, SeamSite
from unstall.records.report import Hotspot
from unstall.simplify import plan, registry

DATA, ENV, OPTIMIZER = (registry.components()[name] for name in ("data", "env", "optimizer"))


def names(experiments):
    return [experiment.name for experiment in experiments]


def test_the_culprit_comes_first_and_what_takes_little_not_at_all():
    report = make_report(
        make_finding(function="Log.write"),
        phases={"forward": 0.3, "backward": 0.6, "callback": 0.08, "optimizer": 0.02},
    )
    found = names(plan.experiments(report, make_measurement()))
    assert found[0] == "without Log.write"
    assert "without the optimizer's step" not in found
    assert "backward +50%" in found
    assert len(found) == len(set(found))


def test_calls_of_logging_libraries_are_tried_where_they_take_time():
    report = make_report(
        make_finding(function="Log.write"), phases={"forward": 0.5, "backward": 0.42, "callback": 0.08}
    )
    words = "without logging, plotting and checkpoint calls"
    saves = changed(make_measurement(), library_calls={"~torch.save": 0.006})  # of a step of 0.1 s
    assert words in names(plan.experiments(report, saves))
    assert words not in names(plan.experiments(report, make_measurement())), "nothing of a library's was called"


def test_a_loader_with_workers_gets_three_arms_and_other_settings():
    loader = LoaderMeasurement(workers=2, batches_per_step=1.0, service_cpu_s=0.1, prefetch_factor=2)
    report = make_report(
        make_finding("input-bound", function="Rows.read", where="worker"), phases={"data_wait": 0.5, "forward": 0.5}
    )
    planned = plan.experiments(report, make_measurement(loader=loader))
    assert [experiment.intervention for experiment in planned][:3] == ["stub", "cached", "placebo"]
    assert planned[2].base == planned[1].arm
    workers = {one.settings["loader"]["num_workers"] for one in planned if one.intervention == "workers"}
    assert workers == {0, 1, 4}


@pytest.mark.parametrize("name", ["main", "<module>", "Trainer.fit", "train.<lambda>"])
def test_what_holds_the_step_itself_is_not_stubbed(name):
    site = SeamSite("~optimizer", "train.py", "fit", 3, callers=(("train.py", "main", 9), ("train.py", "<module>", 20)))
    report = make_report(make_finding("host-bound", function=name), phases={"other": 1.0})
    assert list(plan.suspects(report, make_measurement(sites=[site]))) == []


def test_hotspots_are_suspects_too():
    spot = Hotspot(function="Rows.read", file="train.py", line=1, share=0.4, where="worker", phase="data_wait")
    report = make_report(
        make_finding("compute-bound", function="Net.forward"), hotspots=[spot], phases={"forward": 1.0}
    )
    found = {function.name: function.of_data for function in plan.suspects(report, make_measurement())}
    assert found == {"Net.forward": False, "Rows.read": True}


def test_of_the_kinds_of_work_training_comes_last_and_the_largest_first():
    report = make_report(make_finding(), phases={"backward": 0.4, "env": 0.1, "validation": 0.3, "optimizer": 0.01})
    kinds = plan.worthwhile(report, make_measurement())
    assert [kind.component for kind in kinds] == ["validation", "env", "backward"]


def test_what_waits_for_the_network_is_tried_without():
    loader = LoaderMeasurement(batches_per_step=1.0, service_s=0.1, service_network_s=0.08)
    report = make_report(make_finding())
    assert "network" in {kind.component for kind in plan.worthwhile(report, make_measurement(loader=loader))}
    assert plan.worthwhile(report, make_measurement()) == []


def test_each_part_that_is_large_enough_is_slowed():
    loader = LoaderMeasurement(workers=2, batches_per_step=1.0)
    report = make_report(make_finding("healthy"), phases={"forward": 0.4, "backward": 0.5, "data_wait": 0.01})
    slowed = [*plan.delays(report, make_measurement(loader=loader), [])]
    assert [(one.component, one.touches_data) for one in slowed] == [
        ("data", True), ("Net.forward", False), ("backward", False),
    ]  # fmt: skip
    assert all(one.arm[0]["share"] == one.share for one in slowed)


def test_behind_the_costliest_the_others_are_tried_again():
    first, second = plan.stub(plan.ReplaceableFunction("log", None)), plan.free(ENV)
    (experiment,) = plan.deeper([make_result(second, 1.2), make_result(first, 2.7)])
    assert experiment.base == first.arm
    assert experiment.arm == second.arm


def test_nothing_is_deeper_than_nothing():
    assert plan.deeper([make_result(plan.free(ENV), 1.0)]) == []
    assert plan.deeper([]) == []


def test_what_is_part_of_the_data_is_gone_with_it():
    read = plan.stub(plan.ReplaceableFunction("read", None, of_data=True))
    assert plan.deeper([make_result(plan.free(DATA), 2.7), make_result(read, 2.5)]) == []


def test_two_functions_of_the_data_pipeline_are_tried_together():
    read, decode = (plan.stub(plan.ReplaceableFunction(name, None, of_data=True)) for name in ("read", "decode"))
    assert len(plan.deeper([make_result(read, 2.7), make_result(decode, 2.5)])) == 1


def test_one_function_under_two_names_is_not_its_own_next_bottleneck():
    step, env = (
        make_result(plan.stub(plan.ReplaceableFunction("Room.step", None)), 7.4),
        make_result(plan.free(ENV), 6.7),
    )
    step.replaced = env.replaced = {"train.py:8"}
    assert plan.deeper([step, env]) == []


@pytest.mark.parametrize(("name", "of_data"), [("log", False), ("read", True), ("unseen", True)])
def test_the_stacks_tell_whether_a_function_that_was_asked_for_makes_batches(name, of_data):
    seen = FunctionShares(
        {"data": ((frozenset({("train", "read")}), 5),), "callback": ((frozenset({("train", "log")}), 5),)}
    )
    asked = plan.stub(plan.ReplaceableFunction(name, None, of_data=True))
    assert plan.placed(asked, seen).touches_data is of_data


def test_a_setting_of_the_loader_is_for_the_main_one():
    experiment = plan.for_loader(plan.setting("workers", 4), 2)
    assert experiment.settings == {"loader": {"num_workers": 4, "from": 2}}
    assert plan.for_loader(plan.setting("ranks", 1), 2).settings == {"ranks": 1}
    assert plan.setting("threads", 1).settings is None


@pytest.mark.parametrize(("threads", "tried"), [(1, {4}), (2, {1, 4}), (4, {1}), (0, set())])
def test_one_thread_is_tried_and_all_the_cores(threads, tried):
    found = [*plan.thread_settings(make_measurement(threads=threads))]
    assert {experiment.arm[0]["threads"] for experiment in found} == tried


FAULTING = {"page_faults": 1e5, "main_kernel_s": 0.02}


@pytest.mark.parametrize(
    ("facts", "gib", "tried"),
    [(FAULTING, 1, True), (FAULTING, 3, False), ({"page_faults": 1e5, "main_kernel_s": 0.002}, 1, False)],
    ids=["a fifth of the step", "no room", "little"],
)
def test_freed_memory_is_kept_where_the_kernel_takes_part_of_the_step(facts, gib, tried):
    memory = MemoryMeasurement(rss_peak=gib << 30, available=8 << 30)
    report = make_report(make_finding(function="Log.write"), phases={"forward": 0.9})
    planned = plan.experiments(report, changed(make_measurement(), memory=memory, **facts))
    assert ("keeping freed memory" in names(planned)) is tried


@pytest.mark.parametrize(
    ("cause", "remedy"), [("threads", "4 threads inside operators"), ("model", "without backward")]
)
def test_the_remedy_of_the_verdicts_cause_is_tried_first(cause, remedy):
    finding = changed(make_finding("compute-bound"), cause=cause)
    report = make_report(finding, phases={"forward": 0.3, "backward": 0.7})
    assert names(plan.experiments(report, make_measurement(threads=2)))[0] == remedy


def test_ranks_are_tried_alone_where_there_are_several():
    several = changed(make_measurement(), ranks=[RankMeasurement(rank, rank, 0.1, {}, {}) for rank in (0, 1)])
    report = make_report(make_finding(function="Log.write"), phases={"forward": 0.9})
    assert "one rank alone" in names(plan.experiments(report, several))
    assert "one rank alone" not in names(plan.experiments(report, make_measurement()))


def test_forward_is_slowed_on_the_rank_that_waits_least_and_on_the_one_that_waits_most():
    several = changed(make_measurement(), ranks=[RankMeasurement(rank, rank, 0.1, {}, {}) for rank in (0, 1, 2)])
    waits = {0: 0.02, 1: 0.05, 2: 0.001}
    ranks = [RankCommunication(rank=rank, step_s=0.1, own_s=0.1 - wait, exposed_s=wait) for rank, wait in waits.items()]
    report = make_report(make_finding(function="Log.write"), phases={"forward": 0.9})
    report = changed(report, communication=Communication(ranks=ranks))
    found = names(plan.experiments(report, several))
    assert [name for name in found if name.startswith("rank")] == [
        "rank 2: Net.forward +50%", "rank 1: Net.forward +50%",
    ]  # fmt: skip
