"""From synthetic recordings and looks at the machine to one measurement."""

from __future__ import annotations

import json

import numpy as np
import pytest
from spanfactory import Recording, train, train_step

from unstall.benchmark.measure import measure
from unstall.child.layout import MODULE, NOGRAD
from unstall.records.observations import Frame, MachinePoint, Observation, ResourcePoint, StackSample, StackWindow


def seen(recording, *, cpu=None, rss=None, delay=0.0, busy=1.0, pids=None, gpu=(), **more):
    """Looks ten times a second while the recording lasts; ``cpu``: cores by process."""
    begin, end = 999.0, recording.t + 1
    cpu = cpu or {recording.pid: 1.0}
    points, machine = [], []
    for t in np.arange(begin, end, 0.1):
        for pid, cores in cpu.items():
            points.append(
                ResourcePoint(
                    t=float(t),
                    pid=pid,
                    cpu_s=cores * (t - begin),
                    run_delay_s=delay * (t - begin),
                    rss_bytes=int(rss(t - begin)) if rss else 1000,
                    read_bytes=int(5000 * (t - begin)),
                )
            )
        machine.append(MachinePoint(t=float(t), busy_cpu_s=busy * (t - begin), gpu_utilization=gpu))
    return Observation(begin, end, points=points, machine=machine, **more)


def training(steps=40, **more):
    r = Recording()
    r.emit_fact("process", pid=r.pid, parent=1)
    train(r, steps, **more)
    return r


def run(r, *others, wanted=None, peak_flops=None, **looks):
    return measure(
        [r.process(), *(other.process() for other in others)], seen(r, **looks), wanted=wanted, peak_flops=peak_flops
    )


def test_a_program_without_a_loop_is_not_measured():
    r = Recording()
    r.do("mine", 1.0)
    assert run(r) is None
    assert measure([], Observation(0.0, 1.0)) is None


def test_a_training_loop_is_measured():
    found = run(training(40), busy=1.5)
    m = found.measurement
    assert (m.kind, m.main_pid, m.total_steps) == ("optimizer", 100, 40)
    assert m.steps + m.warmup == 40
    assert m.step.mean == pytest.approx(0.065)
    assert m.step.p50 == pytest.approx(0.065)
    for name, seconds in [("data_wait", 0.010), ("forward", 0.020), ("backward", 0.030), ("optimizer", 0.005)]:
        assert m.phase_s(name) == pytest.approx(seconds)
    assert sum(phase.share for phase in m.phases) == pytest.approx(1.0)
    assert m.main_cpu_s == pytest.approx(0.065, rel=0.05)
    assert m.worker_cpu_s == pytest.approx(0.0, abs=1e-3)
    assert m.other_cores == pytest.approx(0.5, rel=0.1)
    assert m.disk_read == pytest.approx(5000 * 0.065, rel=0.3)
    assert m.cores > 0
    assert m.rank_pids == {100}
    assert not m.disturbed and not m.nan_loss
    assert m.phase_s("forward", "backward") == pytest.approx(0.05)
    assert m.share("forward") == pytest.approx(0.02 / 0.065)
    assert m.phase("env") is None


def test_time_ready_but_without_a_core_is_a_share_of_the_step():
    assert run(training(), delay=0.3).measurement.run_delay == pytest.approx(0.3, rel=0.1)
    assert run(training()).measurement.run_delay is None  # a machine that does not tell


def test_only_the_steps_asked_for_are_measured():
    assert run(training(40), wanted=10).measurement.steps == 10


def test_disturbed_steps_are_left_out():
    r = training(40)
    whole = run(r).measurement
    some = run(r, disturbed=[(1001.0, 1002.0)]).measurement
    assert some.steps < whole.steps
    assert not some.disturbed
    assert run(r, disturbed=[(0.0, 2000.0)]).measurement.disturbed


@pytest.mark.parametrize("what", ["flops", "probe"])
def test_the_step_in_which_the_program_was_looked_at_from_within_is_left_out(what):
    r = training(40)
    whole = run(r).measurement.steps
    r.emit_fact("window", what=what, began=1001.0, ended=1001.05)
    assert whole - 3 <= run(r).measurement.steps < whole


def test_warm_up_covers_what_the_workers_made_ahead():
    r = Recording()
    r.emit_fact("loader", id=7, num_workers=4, prefetch_factor=2, batch_size=8)
    r.do("~data.iter", 0.1, arg=7)
    for _ in range(100):
        train_step(r)
    assert run(r).measurement.warmup == 8


def test_loader_workers_are_not_the_main_process():
    r = training(40)
    worker = Recording(pid=200, parent=100, begin=990.0)
    worker.emit_fact("process", pid=200, parent=100)
    for _ in range(1000):
        with worker.span("~data.fetch"):
            worker.do("~forward", 0.01)
    m = run(r, worker, cpu={100: 1.0, 200: 0.5}).measurement
    assert m.main_pid == 100
    assert m.worker_pids == {200}
    assert m.worker_cpu_s == pytest.approx(0.5 * 0.065, rel=0.1)


def test_ranks_are_measured_each():
    ranks = []
    for rank, forward in [(0, 0.02), (1, 0.06)]:
        r = Recording(pid=100 + rank, parent=50)
        r.emit_fact("process", pid=r.pid, parent=50, rank=str(rank), world_size="2")
        for _ in range(30):
            r.do("~forward", forward)
            r.do("~backward", 0.10 - forward, cpu=0.01)
            r.do("~optimizer", 0.01)
        ranks.append(r)
    m = run(ranks[1], ranks[0], cpu={50: 0.0, 100: 1.0, 101: 1.0}).measurement
    assert m.main_pid == 100
    assert [rank.rank for rank in m.ranks] == [0, 1]
    assert [rank.phases["forward"] for rank in m.ranks] == pytest.approx([0.02, 0.06])
    assert m.ranks[0].blocked["backward"] == pytest.approx(0.07)
    assert m.rank_pids == {100, 101}


def test_the_model_is_described_by_what_the_watcher_told():
    r = Recording()
    r.emit_fact("process", pid=100)
    r.emit_fact("torch", version="2.4", threads=2)
    r.emit_fact("root", id=1, type="Net", dtype="torch.float64", device="cpu", file="net.py", line=7, parameters=1000)
    r.emit_fact("root", id=5, type="Loss", file="loss.py", line=1)
    for size in (8, 8, 4):
        r.emit_fact("batch", root=1, size=size, sample=[3, 32, 32] if size else None)
    r.emit_fact("flops", per="~optimizer", flops=6000, ops=30, known=9, unknown=1)
    for _ in range(30):
        r.do("~data.next", 0.01)
        for _ in range(2):
            r.do("~forward", 0.02, arg=1)
        r.do("~forward", 0.001, arg=5)
        r.do("~backward", 0.03)
        r.do("~optimizer", 0.01, arg=2)
    model = run(r, peak_flops=1e9).measurement.model
    assert (model.root, model.dtype, model.file, model.line, model.parameters) == (
        "Net",
        "torch.float64",
        "net.py",
        7,
        1000,
    )
    assert (model.threads, model.batch_size, model.peak_flops) == (2, 8, 1e9)
    assert model.sample == "3×32×32"
    assert model.forwards == pytest.approx(2.0)
    assert (model.flops, model.ops) == (pytest.approx(6000), pytest.approx(30))
    assert model.flops_coverage == pytest.approx(0.9)
    assert not model.compiled


def test_flops_of_one_model_call_are_scaled_to_the_step():
    r = Recording()
    r.emit_fact("flops", per="~forward", flops=100, ops=3, known=0, unknown=0)
    for _ in range(30):
        r.do("~data.next", 0.01)
        for _ in range(4):
            r.do("~forward", 0.02, arg=1, flags=NOGRAD)
    model = run(r).measurement.model
    assert model.flops == pytest.approx(400)
    assert model.flops_coverage is None


@pytest.mark.parametrize(("within", "flops"), [(0, 7400), (3, 7100), (8, 6600)])
def test_flops_of_rollouts_and_of_training_are_those_of_a_step_together(within, flops):
    """``within``: calls of rollouts that the training's cycle held, which others hold four of."""
    r = Recording()
    r.emit_fact("flops", per="~forward", flops=100, ops=3, known=1, unknown=0, lines=[line("act")])
    r.emit_fact(
        "flops",
        per="~optimizer",
        flops=7000,
        ops=30,
        known=9,
        unknown=0,
        lines=[line("learn")],
        without_gradients=within,
    )
    for _ in range(30):
        for _ in range(4):
            r.do("~forward", 0.02, arg=1, flags=NOGRAD)
        train_step(r)
    measured = run(r).measurement
    assert measured.model.flops == pytest.approx(flops, rel=0.01)
    assert measured.model.flops_coverage == 1
    assert [each.frames[0].function for each in measured.operators] == ["learn"]


@pytest.mark.parametrize(("longer", "own"), [(0, "teach"), (1, "learn")])
def test_of_two_trainings_it_is_the_main_loops_operators_that_count(longer, own):
    r = Recording()
    for number, function in enumerate(("teach", "learn")):
        look = {"per": "~optimizer", "look": number + 1, "subject": 20 + number, "ops": 9, "known": 1, "unknown": 0}
        r.emit_fact("flops", flops=100 * (number + 1), lines=[line(function)], **look)
        r.emit_fact("modules", per="~optimizer", root=10 + number, look=number + 1, modules=[])
        steps, seconds = 200 if number == longer else 20, 0.02 + 0.1 * number  # at paces of their own
        train(r, steps, model=10 + number, optimizer_id=20 + number, forward=seconds)
    measured = run(r).measurement
    assert [each.frames[0].function for each in measured.operators] == [own]
    assert measured.model.flops == pytest.approx(100 * (longer + 1))


def line(function, forward=0.001, backward=0.002, **more):
    return {"path": [("train.py", function, 3)], "forward": forward, "backward": backward, "node": "", **more}


def test_products_with_zeros_are_told_of_the_line_with_most():
    r = training()
    lines = [
        line("head", 0.1, 0.2, zeros=(0.0, 0.16)),  # rows that no loss depends on: in forward neither
        line("body", 0.3, 0.6),
        line("kernel", 0.1, 0.2, zeros=(0.09, 0.0)),
        line("update", 0.7, 0.0),
    ]
    more = {"flops": 1, "ops": 1, "known": 1, "unknown": 0}
    r.emit_fact("flops", per="~optimizer", seconds=(1.2, 1.0), lines=lines, **more)
    found = run(r).measurement.zero_products
    assert (found.frames[-1].function, found.of_gradients, found.zeros) == ("head", True, pytest.approx(0.8))
    assert found.forward == pytest.approx((0.08 + 0.09) / 0.5)  # the optimizer's operators are no forward
    assert found.backward == pytest.approx(0.16)


def test_where_no_product_has_zeros_nothing_is_told():
    r = training()
    r.emit_fact("flops", per="~optimizer", flops=1, ops=1, known=1, unknown=0, lines=[line("body")])
    assert run(r).measurement.zero_products is None


def test_a_compiled_model_is_said_to_be():
    r = training()
    r.emit_fact("flops", compiled=True)
    model = run(r).measurement.model
    assert model.compiled and model.flops is None


@pytest.mark.parametrize("rolls_out", [False, True])
def test_modules_are_those_of_the_early_look_at_training(rolls_out):
    r = Recording()
    if rolls_out:  # which is looked at before it trains
        r.emit_fact("window", what="modules", marks=[r.t, r.t + 0.05], per="~forward")
        r.emit_fact("modules", per="~forward", root=1, modules=[{**ROWS[2], "type": "Acting"}])
        with r.span("~forward", arg=1, flags=NOGRAD):
            r.do("~forward", 0.05, arg=12, flags=MODULE)
    marks = [r.t]
    for _ in range(2):
        r.do("~data.next", 0.01)
        with r.span("~forward", arg=1):
            r.do("~forward", 0.02, arg=11, flags=MODULE)
            r.do("~forward", 0.03, arg=12, flags=MODULE)
            r.spend(0.001)
        r.do("~backward", 0.03)
        r.do("~optimizer", 0.01)
        marks.append(r.t)
    r.emit_fact("window", what="modules", marks=marks, per="~optimizer")
    r.emit_fact("modules", per="~optimizer", root=1, modules=ROWS)
    train(r, 20)
    modules = run(r).measurement.modules
    assert [(m.name, m.type) for m in modules] == [("head", "Conv2d"), ("body", "Linear"), ("", "Net")]
    assert modules[0].self_s == pytest.approx(0.03)
    root = modules[-1]
    assert (root.calls, root.children) == (1.0, 3)
    assert root.forward_s == pytest.approx(0.051)
    assert root.self_s == pytest.approx(0.001)
    assert modules[1].detail == "in=1"


ROWS = [
    {"id": 1, "name": "", "type": "Net", "file": "net.py", "line": 1},
    {"id": 11, "name": "body", "type": "Linear", "file": "linear.py", "line": 1, "repr": "in=1"},
    {"id": 12, "name": "head", "type": "Conv2d", "file": "conv.py", "line": 1},
    {"id": 13, "name": "unused", "type": "Linear", "file": "linear.py", "line": 1},
]


def test_callbacks_and_collections_are_counted_by_the_step():
    r = Recording()
    for index in range(40):
        train_step(r)
        if index % 4 == 0:
            r.do("~callback.torch.save", 0.4)
        r.do("~gc", 0.02)
    m = run(r).measurement
    assert m.library_calls["torch.save"] == pytest.approx(0.1, rel=0.2)
    assert m.gc_s == pytest.approx(0.02, rel=0.1)


def test_memory_is_told_by_step():
    r = training(100)
    m = run(r, rss=lambda t: 1e6 + 1e5 * t).measurement.memory
    steps, sizes = zip(*m.rss_by_step)
    assert list(steps) == sorted(steps)
    assert steps[0] >= 0 and steps[-1] <= 100
    rate = (sizes[-1] - sizes[0]) / (steps[-1] - steps[0])
    assert rate == pytest.approx(1e5 * 0.065, rel=0.1)
    assert m.rss_peak >= sizes[-1]
    assert m.device_peak is None


def test_memory_that_a_look_at_the_gpu_takes_is_none_of_the_programs():
    r = training(100)
    began, ended = r.t - 4.0, r.t
    r.facts["window"] = [{"what": "gpu", "began": began, "ended": ended}]
    memory = run(r, rss=lambda t: 1e6 + (1e9 * (t - began) if t > began else 0)).measurement.memory
    assert memory.rss_by_step
    assert {size for _, size in memory.rss_by_step} == {1e6}


def test_what_the_program_keeps_is_told_with_its_rate():
    r = training(20)
    loop = {"file": "/home/me/train.py", "function": "train"}

    def look(steps_ago, length):
        entry = {"kind": "list", "len": length, "bytes": 8 * length, "bounded": False, "graph": None, **loop}
        return {"t": r.t - 0.065 * steps_ago, "found": {"loop": loop, "entries": {"losses": entry}}}

    r.facts["probe"] = [look(15, 100), look(10, 200), look(5, 300)]
    memory = run(r).measurement.memory
    (growing,) = memory.growing
    assert (growing.path, growing.file, memory.loop) == ("losses", "/home/me/train.py", ("/home/me/train.py", "train"))
    assert growing.len_per_step == pytest.approx(20, rel=0.1)


def test_devices_are_looked_at_while_the_loop_runs():
    assert run(training(20)).measurement.gpu is None
    assert run(training(20), gpu=(0.5, 0.25)).measurement.gpu == pytest.approx([0.5, 0.25])


def test_sites_are_the_users_frames():
    r = training()
    stack = [
        ["/env/lib/python3.11/site-packages/torch/optim/adam.py", "step", 5, 1],
        ["/home/me/train.py", "train_one", 30, 20],
        ["/env/lib/python3.11/contextlib.py", "inner", 81, 80],
        ["/home/me/train.py", "<module>", 90, 1],
    ]
    r.emit_fact("site", name="~optimizer", stack=stack)
    r.emit_fact("site", name="~forward", stack=stack[:1])
    (site,) = run(r).measurement.sites
    assert (site.seam, site.file, site.function, site.line) == ("~optimizer", "/home/me/train.py", "train_one", 30)
    assert site.callers == (("/home/me/train.py", "<module>", 90),)


def test_the_users_own_spans_are_totalled_over_all_processes():
    r = training()
    r.do("mine", 0.5)
    other = Recording(pid=300, parent=1)
    for _ in range(2):
        other.do("mine", 0.25)
    other.do("yours", 2.0)
    first, second = run(r, other).measurement.spans
    assert (first.name, first.count, first.total_s) == ("yours", 1, pytest.approx(2.0))
    assert (second.name, second.count, second.mean_s) == ("mine", 3, pytest.approx(1 / 3))


def test_stacks_that_the_program_sampled_itself_stand_in_for_none():
    r = training()
    r.emit_fact("samples", began=1000.5, ended=1000.6, stacks=[[[["f", "a.py", 3]], 5]])
    own = json.loads(json.dumps(r.facts["samples"]))
    r.facts["samples"] = own
    (sample,) = run(r).measurement.samples
    assert sample == StackSample(100, "MainThread", (Frame("f", "a.py", 3),), 5)
    outside = [StackSample(100, "MainThread", (Frame("g", "b.py", 1),), 9)]
    assert run(r, samples=outside).measurement.samples == outside


def test_a_loss_that_is_not_a_number_is_noted():
    r = training()
    r.emit_fact("nan", call=1)
    assert run(r).measurement.nan_loss


def test_start_up_accounts_for_what_lies_outside_the_measured_steps():
    r = training(40)
    startup = run(r).measurement.startup
    assert startup.before_first_batch_s == pytest.approx(1.0, abs=0.01)
    assert startup.after_last_step_s == pytest.approx(1.0, abs=0.01)
    assert startup.warmup_s == pytest.approx(0.065)
    assert startup.worker_start_s == pytest.approx(0.001)
    assert startup.epoch_gaps_s >= 0


def test_a_step_that_grows_shows_a_trend_and_a_noisy_one_its_spread():
    growing, steady, noisy = Recording(), Recording(), Recording()
    rng = np.random.default_rng(0)
    for index in range(90):
        train_step(growing, forward=0.02 * (1 + index / 30))
        train_step(steady)
        train_step(noisy, forward=float(rng.exponential(0.5)))
    slowing = run(growing).measurement.slowing
    assert slowing.phase == "forward" and slowing.low <= slowing.per_1000 <= slowing.high
    assert run(steady).measurement.slowing is None and run(noisy).measurement.slowing is None
    assert run(steady).measurement.spread < 0.01 < run(noisy).measurement.spread


@pytest.mark.parametrize("envs", [1, 8])
def test_environment_loops_know_how_many_environments_a_step_has(envs):
    r = Recording()
    r.emit_fact("env", id=3, type="Vector", num_envs=envs)
    for _ in range(40):
        r.do("~forward", 0.001, flags=NOGRAD)
        r.do("~env.step", 0.004)
    m = run(r).measurement
    assert (m.kind, m.envs) == ("env", envs)


def test_stacks_of_the_set_up_are_those_of_windows_before_the_first_step():
    seen = [StackWindow(when, [StackSample(100, "MainThread", (), count)]) for when, count in ((990.0, 7), (1001.0, 9))]
    assert run(training(40), before_loop=seen).measurement.windows_before == seen[:1]


def test_how_long_a_run_took_is_known_where_it_ended_by_itself():
    whole, cut = run(training(40)), run(training(40), stopped=True)
    assert whole.measurement.run_s > whole.measurement.total_steps * whole.measurement.step.mean
    assert cut.measurement.run_s is None
