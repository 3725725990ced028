"""Pipelines from recordings: of simulated programs, so that the truth is known."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from changes import changed
from pipelines import pipeline

from unstall.benchmark.warm_caches import share_left
from unstall.model import Changes, build, predict
from unstall.model.machine import speed
from unstall.model.recorded import ModelInput, NotRecorded
from unstall.model.simulate import simulate
from unstall.records.measurements import LoaderMeasurement, Measurement, RankMeasurement
from unstall.records.model import ModelMeasurement
from unstall.records.observations import Frame, StackSample
from unstall.records.report import PhaseTime
from unstall.records.run import StepTime
from unstall.records.vocabulary import PHASE_NAMES

BATCHES = 1500


def record(truth):
    """What would be recorded of a program that runs exactly as the pipeline says."""
    work = truth.draw(BATCHES, seed=7)
    timeline = simulate(work, truth.layout)
    step = timeline.batch_s(50)
    body = timeline.done - timeline.got
    phase_s = {name: truth.phase_s(name) for name in truth.phases}
    total = sum(phase_s.values())
    steps = np.zeros((BATCHES, len(PHASE_NAMES)))
    for name, seconds in phase_s.items():
        steps[:, PHASE_NAMES.index(name)] = body * seconds / total
    steps[:, PHASE_NAMES.index("data_wait")] = step - body.mean()
    # The clock of a thread counts the time on a core, and says nothing of how much the others slow that down.
    service_cpu, service_wait = truth.service.T
    others = (total + (1 - 1 / truth.layout.workers) * service_cpu.mean()) / step if truth.layout.workers else 0.0
    service_cpu = service_cpu / speed(1 + others, truth.layout.cores, truth.layout.contention)
    wide_s = sum(phase_s[name] for name in truth.wide if name in phase_s)
    loader = LoaderMeasurement(
        workers=truth.layout.workers,
        prefetch_factor=truth.layout.prefetch,
        batch_size=8,
        batches_per_step=1.0,
        service_s=truth.service_s,
        service_cpu_s=float(service_cpu.mean()),
    )
    in_main = 0.0 if truth.layout.workers else float(service_cpu.mean())
    measurement = Measurement(
        kind="optimizer",
        steps=BATCHES,
        warmup=0,
        total_steps=BATCHES,
        step=StepTime(step, step, step),
        phases=[
            PhaseTime(name=name, share=0.1, mean_s=float(steps[:, index].mean()))
            for index, name in enumerate(PHASE_NAMES)
            if steps[:, index].any()
        ],
        cores=truth.layout.cores,
        main_pid=1,
        regular_s=step,
        worker_pids=frozenset({2, 3}),
        main_cpu_s=total - wide_s + wide_s * truth.layout.width + in_main,
        worker_cpu_s=float(service_cpu.mean()) - in_main,
        loader=loader,
        model=ModelMeasurement(device="cpu", threads=truth.threads),
    )
    fetches = np.stack([service_cpu + service_wait, service_cpu, service_wait], axis=1)
    return ModelInput(measurement, steps, fetches, gap_s=0.0)


def true_step(truth, **layout):
    work_of = replace(truth, layout=replace(truth.layout, **layout))
    return simulate(work_of.draw(BATCHES, seed=3), work_of.layout).batch_s(50)


def program(seed=0, **settings):
    made = pipeline(ship_s=5e-4, take_s=4e-4, **settings)
    random = np.random.default_rng(seed)
    made = replace(made, service=made.service * random.lognormal(-0.08, 0.4, (50, 1)))
    return replace(made, layout=replace(made.layout, contention=0.2))


@pytest.mark.parametrize("cores", [2.0, 4.0, 16.0])
@pytest.mark.parametrize("known, asked", [(0, 2), (0, 4), (1, 4), (2, 0), (2, 1), (4, 1)])
def test_what_was_recorded_with_some_workers_tells_what_others_would_give(cores, known, asked):
    truth = program(service=0.015, wait=0.005, workers=known, cores=cores)
    recorded = record(truth)
    found = predict(build(recorded), Changes(workers=asked))
    assert found.step_s == pytest.approx(true_step(truth, workers=asked), rel=0.12)
    assert found.low < true_step(truth, workers=asked) < found.high


def test_what_a_team_of_threads_takes_alone_is_found_under_contention():
    truth = program(
        service=0.02, workers=2, cores=2.0, threads=2, width=1.9, body={"forward": 0.008, "backward": 0.012}
    )
    recorded = record(truth)
    assert recorded.steps.sum(axis=1).mean() > 1.3 * 0.02, "the workers hold it up"
    found = build(recorded)
    assert found.phase_s("forward") + found.phase_s("backward") == pytest.approx(0.02, rel=0.15)
    assert found.layout.width == pytest.approx(1.9, abs=0.25)


@pytest.mark.parametrize("asked", [1, 2, 4])
def test_a_team_recorded_without_workers_tells_what_it_does_beside_some(asked):
    """On two cores the team alone fills them: what it takes without contention must be known to add the workers'."""
    truth = program(service=0.01, workers=0, cores=2.0, threads=2, width=1.9, body={"forward": 0.008, "backward": 0.01})
    recorded = record(truth)
    measured = recorded.measurement
    team_cpu_s = 0.018 * 1.9 / speed(1.9, 2.0, truth.layout.contention)  # its threads slow each other down
    measured = changed(measured, main_cpu_s=measured.loader.service_cpu_s + team_cpu_s)
    made = build(replace(recorded, measurement=measured))
    assert made.phase_s("forward") + made.phase_s("backward") == pytest.approx(0.018, rel=0.01)
    assert predict(made, Changes(workers=asked)).step_s == pytest.approx(true_step(truth, workers=asked), rel=0.02)


@pytest.mark.parametrize("background", [0.0, 1.0])
def test_neighbours_and_teams_do_not_shift_the_shares_of_what_was_seen(background):
    """Four fifths of the recorded step are the callback's: without it the program is five times as fast."""
    truth = program(service=0.0, workers=0, cores=2.0, threads=2, width=1.9, body={"forward": 0.4, "callback": 1.6})
    recorded = record(replace(truth, layout=replace(truth.layout, background=background)))
    recorded = replace(recorded, measurement=changed(recorded.measurement, other_cores=background))
    found = predict(build(recorded), Changes(scales={"callback": 0.0}))
    assert found.speedup == pytest.approx(5.0, rel=0.02)


def test_as_recorded_is_as_recorded():
    recorded = record(program(service=0.02, workers=1, cores=2.0))
    found = predict(build(recorded))
    assert found.step_s == pytest.approx(recorded.measurement.step.mean)


def test_a_loop_without_loader_is_all_main_thread():
    recorded = record(program(service=0.02, workers=0))
    recorded = replace(recorded, measurement=changed(recorded.measurement, loader=None))
    found = build(recorded)
    assert not found.has_loader and "data_wait" in found.phases
    assert predict(found, Changes(scales={"data": 0.0})).step_s == pytest.approx(
        0.012 * share_left(0.032, 0.012, None), rel=0.1
    )


def test_validation_is_shared_out_over_the_steps():
    recorded = replace(record(program(service=0.001, workers=0)), gap_s=0.004)
    with_gap = predict(build(recorded), Changes(scales={"validation": 0.0}))
    assert with_gap.step_s < recorded.measurement.step.mean - 0.002


def test_a_function_between_epochs_is_taken_out_of_them(tmp_path):
    source = tmp_path / "train.py"
    source.write_text("def plot():\n    pass\n")
    recorded = record(program(service=0.001, workers=0))
    step_s = recorded.measurement.step.mean
    sample = StackSample(1, "MainThread", (Frame("plot", str(source), 2),), 90)
    measurement = changed(recorded.measurement, samples=[sample], step=StepTime(step_s + 0.03, step_s, step_s))
    gaps = {"callback": 0.9, "validation": 0.1}
    found = build(replace(recorded, measurement=measurement, gap_s=0.03, gap_shares=gaps))
    without = predict(found, Changes(scales={"plot": 0.0})).step_s
    assert without == pytest.approx(step_s + 0.003, rel=0.15)
    assert predict(found, Changes(scales={"validation": 0.0})).step_s > step_s + 0.02


def test_a_body_that_no_law_of_cores_explains_waited_as_long_as_the_scheduler_says():
    recorded = record(program(service=0.08, workers=2, cores=2.0, threads=2))
    steps = recorded.steps.copy()
    steps[:, PHASE_NAMES.index("forward")] += 0.06
    told = changed(recorded.measurement, team_delay_s=0.06)
    told, silent = (build(replace(recorded, steps=steps, measurement=one)) for one in (told, recorded.measurement))
    assert told.phase_s("forward") < 0.4 * silent.phase_s("forward")
    free = Changes(scales={"data": 0.0})
    assert predict(told, free).speedup > 2 * predict(silent, free).speedup


def test_samples_name_functions_in_the_workers_and_in_the_main_thread(tmp_path):
    source = tmp_path / "train.py"
    source.write_text(
        "class Photos:\n"
        "    def __getitem__(self, index):\n"
        "        return self.decode(index)\n"
        "    def decode(self, index):\n"
        "        return index\n"
    )
    frames = (Frame("Photos.__getitem__", str(source), 3), Frame("Photos.decode", str(source), 5))
    recorded = record(program(service=0.02, workers=2))
    samples = [StackSample(2, "MainThread", frames, 30), StackSample(3, "MainThread", frames[:1], 10)]
    measurement = changed(recorded.measurement, samples=samples)
    found = build(replace(recorded, measurement=measurement))
    (key,) = found.function_shares.find("Photos.decode")
    assert found.function_shares.share("data", key) == pytest.approx(0.75)
    assert key in found.function_shares.own


def with_ranks(recorded, *, main_waits_s, other_waits_s):
    """The same of two ranks that wait so long in backward."""
    step_s = recorded.measurement.step.mean
    ranks = [
        RankMeasurement(number, pid, step_s, {"backward": wait_s}, {"backward": wait_s})
        for number, pid, wait_s in ((0, 1, main_waits_s), (1, 2, other_waits_s))
    ]
    return replace(recorded, measurement=msgspec.structs.replace(recorded.measurement, ranks=ranks))


def test_a_rank_that_waits_for_another_tells_nothing_of_what_could_be_gained():
    recorded = record(program(service=0.015, workers=2, cores=4.0))
    wait_s = recorded.measurement.step.mean / 2
    with pytest.raises(NotRecorded, match="the other ranks wait for rank 1, and a prediction knows one rank"):
        build(with_ranks(recorded, main_waits_s=wait_s, other_waits_s=0.0))
    for waits in ((0.0, wait_s), (wait_s, wait_s)):
        main_waits_s, other_waits_s = waits
        late = build(with_ranks(recorded, main_waits_s=main_waits_s, other_waits_s=other_waits_s))
        assert late.measured_s == recorded.measurement.step.mean
