"""The patterns of the model itself, of memory and of ranks."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from factory import (
    CALL,
    STEP,
    Source,
    measurement,
    stack,
    waiting,
)
from patterncase import TRAINING, check, host_findings, match, training_sites

from unstall.diagnose.ranks import late_ranks, notes
from unstall.records.measurements import (
    GradientExchange,
    GrowingObject,
    LoaderMeasurement,
    MemoryMeasurement,
    RankMeasurement,
    SeamSite,
)
from unstall.records.model import DroppedGradients, ModelMeasurement, ModuleMeasurement, OperatorLine, ZeroProducts

# ---------------------------------------------------------------- the model itself


def module(name, type_name, self_s, file="net.py"):
    return ModuleMeasurement(name, type_name, file, 1, 1.0, self_s, self_s, 0)


def test_compute_bound_by_double_precision(code):
    finding = check(
        match("compute-bound", model=ModelMeasurement(dtype="torch.float64", threads=4), sites=training_sites(code)),
        "compute-bound",
    )
    assert (finding.cause, finding.culprit.function) == ("precision", "main")


@pytest.mark.parametrize("of_gradients", [False, True])
def test_compute_bound_by_products_with_zeros(code, of_gradients):
    frames = (code.at("main", "# model"), code.at("suppress", "# suppress"))
    products = ZeroProducts(frames, 0.97, of_gradients, forward=0.5, backward=0.4)
    finding = check(match("compute-bound", model=ModelMeasurement(threads=4), zero_products=products), "compute-bound")
    assert (finding.cause, finding.culprit.function) == ("zeros", "suppress")
    assert any("97 % of the" in line for line in finding.evidence)
    assert ("loss depends on" in finding.advice[0]) == of_gradients


def test_few_products_with_zeros_are_no_matter(code):
    products = ZeroProducts((code.at("main", "# model"),), 0.97, False, forward=0.1, backward=0.05)
    assert match("compute-bound", model=ModelMeasurement(threads=4), zero_products=products) is None


def test_compute_bound_by_threads_that_are_not_used():
    finding = check(match("compute-bound", model=ModelMeasurement(threads=1), cores=8.0), "compute-bound", headroom=2)
    assert finding.cause == "threads"


@pytest.mark.parametrize(
    ("file", "cause"), [("/program/quant.py", "model"), ("/env/site-packages/torch/x.py", "threads")]
)
def test_a_layer_of_the_programs_own_is_blamed_before_threads_that_may_be_limited_on_purpose(file, cause):
    modules = [module("packed", "Packed", 0.9, file=file), module("a", "Norm", 0.05), module("b", "Norm", 0.05)]
    finding = match("compute-bound", modules=modules, model=ModelMeasurement(threads=1), cores=2.0)
    assert finding.cause == cause


def test_an_optimizer_of_the_programs_own_is_named_by_what_it_computes(tmp_path, code):
    text = "class Muon:\n    def step(self):\n        orthogonalize(1)  # step\n\n"
    text += "def orthogonalize(x):\n    return x @ x.mT  # square\n"
    muon = Source(tmp_path / "muon.py", text)
    line = stack(code.at("main", "# optimizer"), STEP, muon.at("step", "# step"), muon.at("orthogonalize", "# square"))
    finding = match(
        "compute-bound",
        {"forward": 0.02, "backward": 0.02, "optimizer": 0.06},
        model=ModelMeasurement(threads=4),
        sites=training_sites(code),
        samples=[line],
    )
    assert (finding.cause, finding.culprit.function) == ("optimizer", "orthogonalize")
    assert "the program's own update" in finding.advice[0]


def test_compute_bound_by_the_optimizer(code):
    finding = check(
        match(
            "compute-bound",
            {"forward": 0.02, "backward": 0.02, "optimizer": 0.06},
            model=ModelMeasurement(threads=4),
            sites=training_sites(code),
        ),
        "compute-bound",
    )
    assert (finding.cause, finding.culprit.line) == ("optimizer", code.line("# optimizer"))


def test_compute_bound_by_gradients_that_nothing_uses(tmp_path):
    net = Source(tmp_path / "net.py", "class Net:\n    def forward(self, x):  # forward\n        return x\n")
    model = ModelMeasurement(
        threads=4, file=net.file, line=net.line("# forward"), gradients=100, updated=5, idle_parts=("backbone", "neck")
    )
    found = match("compute-bound", {"forward": 0.03, "backward": 0.07}, model=model)
    finding = check(found, "compute-bound", headroom=1 / (1 - 0.7 * 0.95))
    assert (finding.cause, finding.culprit.function, finding.culprit.line) == ("gradients", "Net.forward", 2)
    assert (
        "95 % of the gradients that backward computes (`backbone`, `neck`) are used by no optimizer" in finding.evidence
    )


def test_compute_bound_by_gradients_that_are_dropped_blames_the_call_on_the_way(tmp_path):
    text = "def judge(real):\n    made = sample(len(real))  # made\n    return loss(made)\n"
    made = Source(tmp_path / "train.py", text)
    dropped = DroppedGradients((made.at("judge", "# made"),), "Generator", 0.5)
    found = match(
        "compute-bound", {"forward": 0.03, "backward": 0.07}, model=ModelMeasurement(threads=4, dropped=dropped)
    )
    finding = check(found, "compute-bound", headroom=1 / (1 - 0.7 * 0.5))
    assert (finding.cause, finding.culprit.function, finding.culprit.line) == ("gradients", "judge", 2)
    assert "50 % of backward computes gradients of Generator that are dropped before it learns" in finding.evidence
    never = ModelMeasurement(threads=4, dropped=msgspec.structs.replace(dropped, model="Teacher", never=True))
    finding = match("compute-bound", {"forward": 0.03, "backward": 0.07}, model=never)
    assert "50 % of backward computes gradients of Teacher that no optimizer uses" in finding.evidence


def test_compute_bound_by_padding_blames_what_makes_the_batch(tmp_path):
    text = "class Collator:\n    def __call__(self, rows):  # collate\n        return pad(rows)\n"
    made = Source(tmp_path / "data.py", text)
    loader = LoaderMeasurement(collate="Collator", collate_at=(made.file, made.line("# collate")))
    model = ModelMeasurement(threads=4, padding=0.6, spare=0.5)
    found = match("compute-bound", {"forward": 0.03, "backward": 0.07}, model=model, loader=loader)
    finding = check(found, "compute-bound", headroom=2.4)
    assert (finding.cause, finding.culprit.function) == ("padding", "Collator.__call__")
    assert "60 % of the positions in a batch are padding, 50 % in every row" in finding.evidence


def test_compute_bound_by_a_gradient_blames_the_line_that_it_is_of(tmp_path):
    text = "class Net:\n    def forward(self, x):\n        return [self.cell(x[:, t]) for t in range(99)]  # parts\n"
    made = Source(tmp_path / "net.py", text)
    operators = [OperatorLine((made.at("forward", "# parts"),), 0.1, 8.0, "SelectBackward0"), OperatorLine((), 0, 2.0)]
    model = ModelMeasurement(threads=4)
    found = match("compute-bound", {"forward": 0.02, "backward": 0.08}, model=model, operators=operators)
    finding = check(found, "compute-bound", headroom=2.7)
    assert (finding.cause, finding.culprit.function, finding.culprit.line) == ("backward", "Net.forward", 3)
    assert any("80× what its operators take in forward: SelectBackward0" in line for line in finding.evidence)
    assert any("unbind" in line for line in finding.advice)


@pytest.mark.parametrize("type_name, cause", [("Conv2d", "kernel"), ("Attention", "model")])
def test_compute_bound_by_a_layer_out_of_proportion(type_name, cause):
    modules = [module("big", type_name, 0.9), module("a", "Linear", 0.05), module("b", "Linear", 0.05)]
    finding = check(match("compute-bound", modules=modules, model=ModelMeasurement(threads=4)), "compute-bound")
    assert finding.cause == cause
    assert any("big" in line for line in finding.evidence)


def test_an_even_model_at_a_good_rate_is_not_compute_bound():
    modules = [module(f"layer{n}", "Linear", 0.1, file="/env/site-packages/torch/linear.py") for n in range(8)]
    model = ModelMeasurement(threads=4, dtype="torch.float32", flops=6e9, peak_flops=1e11, flops_coverage=1.0)
    assert match("compute-bound", modules=modules, model=model) is None


@pytest.mark.parametrize(("rate", "is_overhead"), [(0.15, True), (0.3, False)])
def test_operators_as_short_as_a_call_are_overhead_unless_they_compute_as_layers_do(rate, is_overhead):
    ops = sum(TRAINING[phase] for phase in ("forward", "backward", "optimizer") if phase in TRAINING) / 14e-6
    flops = rate * 1e11 * ops * 14e-6
    model = ModelMeasurement(ops=ops, forwards=32, batch_size=1, flops=flops, peak_flops=1e11, threads=4)
    found = match("overhead-bound", model=model)
    assert (found is not None and found.cause == "batching") == is_overhead


def test_overhead_bound_by_many_small_operators(code):
    model = ModelMeasurement(ops=8000, forwards=1, batch_size=32, flops=1e6, peak_flops=1e11, threads=4)
    samples = [stack(code.at("main", "# model"), CALL, code.at("suppress", "# suppress"))]
    finding = check(match("overhead-bound", model=model, samples=samples), "overhead-bound")
    assert (finding.cause, finding.culprit.function) == ("small-ops", "suppress")
    assert any(line.startswith("a step takes 32 samples, ") for line in finding.evidence)
    assert any("64 samples a step, for up to" in line for line in finding.advice)


@pytest.mark.parametrize(("device", "is_overhead"), [("cpu", False), ("cuda:0", True)])
def test_operators_whose_time_is_that_of_writing_their_results_are_not_small(device, is_overhead):
    model = ModelMeasurement(threads=4, ops=4000.0, batch_size=8, written_bytes=3e8, device=device)
    found = match("overhead-bound", model=model, samples=[stack(CALL, count=500)])
    assert (found is not None) == is_overhead


def test_operators_that_take_no_longer_than_a_call_are_small_whatever_some_of_them_write():
    """A loop over pairs of vectors, and an optimizer that writes millions of weights."""
    model = ModelMeasurement(threads=4, ops=15000.0, batch_size=8, written_bytes=3e8)
    assert match("overhead-bound", model=model, samples=[stack(CALL, count=500)]).cause == "small-ops"


def test_small_operators_that_wait_for_a_busy_machine_are_small_still(code):
    """Each takes 0.2 ms on average, and 10 µs in the steps in which the team's threads had their cores."""
    model = ModelMeasurement(ops=500, forwards=1, batch_size=32, flops=1e5, peak_flops=1e11, threads=4)
    samples = [stack(code.at("main", "# model"), CALL, code.at("suppress", "# suppress"))]
    assert match("overhead-bound", model=model, samples=samples) is None
    unhindered = {"forward": 0.003, "backward": 0.0015, "optimizer": 0.0005}
    check(match("overhead-bound", model=model, samples=samples, unhindered_s=unhindered), "overhead-bound")


@pytest.mark.parametrize(("forward_s", "function"), [(0.0005, "suppress"), (0.02, "main")])
def test_small_operators_are_called_by_the_loss_where_forward_has_no_time_for_them(code, forward_s, function):
    """8,000 operators a step, 2,000 of them in forward: in half a millisecond nobody calls so many."""
    model = ModelMeasurement(ops=8000, forwards=1, batch_size=32, flops=1e6, peak_flops=1e11, threads=4)
    samples = [
        stack(code.at("main", "# model"), CALL, count=20),
        stack(code.at("main", "# call suppress"), code.at("suppress", "# suppress"), count=60),
    ]
    phases = {"forward": forward_s, "backward": 0.05, "optimizer": 0.001, "other": 0.03}
    finding = check(
        match("overhead-bound", phases, model=model, samples=samples, unhindered_s={**phases}), "overhead-bound"
    )
    assert (finding.cause, finding.culprit.function) == ("small-ops", function)
    assert (finding.share > 0.9) == (function == "suppress")


def test_overhead_bound_by_one_sample_at_a_time(code):
    model = ModelMeasurement(ops=3000, forwards=32, batch_size=1, flops=1e6, peak_flops=1e11, threads=4)
    finding = check(match("overhead-bound", model=model, sites=training_sites(code)), "overhead-bound")
    assert (finding.cause, finding.culprit.line) == ("batching", code.line("# model"))


def test_of_the_lines_that_call_the_model_the_one_that_holds_the_time_is_named(code):
    """A program that plays first, and then values what it played one by one: the line of the play was seen first."""
    model = ModelMeasurement(ops=3000, forwards=32, batch_size=1, flops=1e6, peak_flops=1e11, threads=4)
    first, second = (
        SeamSite("~forward", code.file, "main", line) for line in (code.line("# model"), code.line("# call suppress"))
    )
    called = [
        stack(code.at("main", "# model"), CALL, count=9),
        stack(code.at("main", "# call suppress"), CALL, count=40),
    ]
    finding = match("overhead-bound", model=model, sites=[first, second], samples=called)
    assert finding.culprit.line == second.line


@pytest.mark.parametrize("loops_itself", [False, True])
def test_who_hands_a_library_one_sample_after_the_other_is_named(tmp_path, loops_itself):
    """Unless it is the library's own loop that calls the model on each."""
    packages = tmp_path / "site-packages"
    packages.mkdir()
    call = "for x in xs:\n        model(x)  # call" if loops_itself else "return model(xs)  # call"
    library = Source(packages / "pipes.py", f"def forward(xs):\n    {call}\n")
    program = Source(tmp_path / "serve.py", "def main():\n    for x in xs:\n        forward(x)  # item\n")
    above = (program.file, "main", program.line("# item"))
    site = SeamSite("~forward", library.file, "forward", library.line("# call"), callers=(above,))
    model = ModelMeasurement(ops=3000, forwards=32, batch_size=1, flops=1e6, peak_flops=1e11, threads=4)
    finding = check(match("overhead-bound", model=model, sites=[site]), "overhead-bound")
    assert (finding.cause, finding.culprit.function) == ("batching", "forward" if loops_itself else "main")


@pytest.mark.parametrize("model", [{"ops": 20}, {"ops": 8000, "flops": 4e9, "peak_flops": 1e11}, {}])
def test_large_or_efficient_operators_are_no_overhead(model):
    assert match("overhead-bound", model=ModelMeasurement(forwards=1, batch_size=32, **model)) is None


# ---------------------------------------------------------------- memory and ranks


def growing(rate, steps=200, start=5e8):
    return [(float(step), start + rate * step) for step in range(0, steps, 4)]


def test_memory_growth_is_told_by_its_rate():
    memory = MemoryMeasurement(rss_by_step=growing(2e6), rss_peak=900_000_000, available=8_000_000_000)
    finding = check(match("memory-growth", memory=memory), "memory-growth", headroom=1.0)
    assert any("2 MB a step" in line for line in finding.evidence)
    assert any("memory is full in" in line for line in finding.evidence)


def test_device_memory_counts_as_well():
    finding = match("memory-growth", memory=MemoryMeasurement(device_by_step=growing(2e6)))
    assert "device memory" in finding.evidence[0]


def kept(path, file, function, **more):
    rates = {"len_per_step": 1.0, "bytes_per_step": 2e6, "graph_per_step": 0.0}
    return GrowingObject(path=path, kind="list", file=file, function=function, **{**rates, **more})


def test_the_line_that_adds_to_what_grows_is_the_culprit(tmp_path):
    code = Source(
        tmp_path / "train.py",
        "def train(loader):\n    losses = []\n    for x in loader:\n        losses.append(x)  # kept\n",
    )
    memory = MemoryMeasurement(
        rss_by_step=growing(2e6), growing=[kept("losses", code.file, "train", graph_per_step=3.0)]
    )
    finding = match("memory-growth", memory=memory)
    assert (finding.cause, finding.culprit.line, finding.confidence) == ("graph", code.line("# kept"), "high")
    assert any("losses (list) keeps growing: its autograd graph by 3 nodes a step" in line for line in finding.evidence)


def test_what_the_loop_keeps_in_another_function_is_looked_for_in_the_loop(tmp_path):
    code = Source(
        tmp_path / "train.py", "def train(loader, losses):\n    for x in loader:\n        losses.append(x)  # kept\n"
    )
    held = kept("losses", str(tmp_path / "gone.py"), "main")
    memory = MemoryMeasurement(rss_by_step=growing(2e6), growing=[held], loop=(code.file, "train"))
    assert match("memory-growth", memory=memory).culprit.line == code.line("# kept")


def test_a_cache_around_a_function_is_that_functions():
    wrapped = ("/home/me/train.py", "encode", 12)
    memory = MemoryMeasurement(
        rss_by_step=growing(2e6), growing=[kept("encode.cache_info", "/home/me/train.py", "encode", wrapped=wrapped)]
    )
    finding = match("memory-growth", memory=memory)
    assert (finding.culprit.function, finding.culprit.line, finding.cause) == ("encode", 12, "cache")


@pytest.mark.parametrize("series", [growing(0), growing(-1e6), growing(2e6)[:3], []])
def test_memory_that_does_not_grow_is_none(series):
    assert match("memory-growth", memory=MemoryMeasurement(rss_by_step=series)) is None


def rank(number, *, own, waited, phase="forward"):
    return RankMeasurement(number, 100 + number, own + waited, {phase: own, "comm": waited}, {})


def test_who_waits_for_ranks_that_were_not_seen_is_unsure():
    ranks = [rank(0, own=0.04, waited=0.06), rank(1, own=0.041, waited=0.059)]
    phases = {"forward": 0.04, "comm": 0.06}
    for seen in (ranks, ranks[:1]):
        others = tuple(range(len(seen), 4))
        finding = match("communication-bound", phases, ranks=seen, world_size=4, unseen_ranks=others)
        assert (finding.cause, finding.confidence, finding.headroom) == (
            "unseen-rank",
            "low",
            pytest.approx(2.5, rel=0.05),
        )
        assert any(f"ranks {others[0]}-3 of 4 not seen" in line for line in finding.evidence)


def test_a_straggler_among_others_that_were_not_seen_is_unsure():
    ranks = [rank(0, own=0.04, waited=0.06), rank(1, own=0.1, waited=0.0)]
    phases = {"forward": 0.04, "comm": 0.06}
    assert match("straggler", phases, ranks=ranks).confidence == "high"
    finding = match("straggler", phases, ranks=ranks, world_size=3, unseen_ranks=(2,))
    assert finding.confidence == "low"
    assert any("rank 2 of 3 not seen" in line for line in finding.evidence)


def test_a_rank_alone_waits_in_backward_for_those_that_were_not_seen():
    phases = {"forward": 0.02, "backward": waiting("backward", 0.08, blocked=0.07)}
    alone = [RankMeasurement(0, 100, 0.1, {"forward": 0.02, "backward": 0.08}, {"backward": 0.07})]
    slow = ModelMeasurement(threads=1)
    finding = match("communication-bound", phases, ranks=alone, world_size=2, unseen_ranks=(1,), model=slow)
    assert finding.share == pytest.approx(0.7)
    assert match("compute-bound", phases, ranks=alone, world_size=2, unseen_ranks=(1,), model=slow) is None


def test_mathematics_is_not_blamed_surely_where_forward_is_blocked_and_no_collective_was_seen():
    phases = {"forward": waiting("forward", 0.08, blocked=0.06), "backward": 0.02}
    ranks = [rank(0, own=0.1, waited=0.0), rank(1, own=0.1, waited=0.0)]
    slow = ModelMeasurement(threads=1)
    measured = measurement(phases, ranks=ranks, world_size=2, model=slow)
    assert "no collective was recorded" in notes(measured)[0]
    assert match("compute-bound", phases, ranks=ranks, world_size=2, model=slow).confidence == "low"
    alone = match("compute-bound", phases, model=slow)
    assert alone.confidence == "medium"


def test_communication_bound_where_all_wait_alike():
    ranks = [rank(0, own=0.04, waited=0.06), rank(1, own=0.041, waited=0.059)]
    finding = check(
        match(
            "communication-bound",
            {"forward": 0.04, "comm": 0.06},
            ranks=ranks,
            model=ModelMeasurement(parameters=10_000_000),
        ),
        "communication-bound",
        headroom=2,
    )
    assert finding.cause == "bandwidth"
    assert match("straggler", {"forward": 0.04, "comm": 0.06}, ranks=ranks) is None


def exchanging(**more):
    values = {"took_s": 0.06, "hidden_s": 0.015, "backward_s": 0.05, "buckets": (16_000_000, 4_000_000)}
    exchange = GradientExchange(**{**values, **more})
    return [msgspec.structs.replace(rank(n, own=0.04, waited=0.06), exchange=exchange) for n in range(2)]


def test_communication_bound_says_what_ddp_exchanges_and_how_much_of_it_is_hidden():
    phases = {"forward": 0.04, "backward": waiting("backward", 0.06, blocked=0.06)}
    finding = match("communication-bound", phases, ranks=exchanging())
    assert "DDP exchanges 20 MB a step in 2 buckets, the largest 16 MB" in finding.evidence
    assert any("60 ms of a step, 25 % of it hidden behind 50 ms of backward" in line for line in finding.evidence)
    assert not any("find_unused_parameters" in line or "bucket_view" in line for line in finding.advice)


def test_communication_bound_by_small_buckets_though_there_are_many_parameters():
    phases = {"forward": 0.04, "backward": waiting("backward", 0.06, blocked=0.06)}
    many = ModelMeasurement(parameters=50_000_000)
    small = exchanging(buckets=(1_000_000,) * 8)
    assert match("communication-bound", phases, ranks=small, model=many).cause == "bucketing"
    assert (
        match("communication-bound", phases, ranks=exchanging(buckets=(200_000_000,)), model=many).cause == "bandwidth"
    )


def test_settings_of_ddp_that_cost_something_are_named():
    phases = {"forward": 0.04, "backward": waiting("backward", 0.06, blocked=0.06)}
    ranks = exchanging(looks_for_unused=True, copies_buckets=True)
    advice = match("communication-bound", phases, ranks=ranks).advice
    assert ["find_unused_parameters" in advice[0], "gradient_as_bucket_view=True" in advice[1]] == [True, True]


@pytest.mark.parametrize("phase, cause", [("data_wait", "transform"), ("callback", "logging")])
def test_a_straggler_where_one_makes_the_others_wait(phase, cause):
    ranks = [rank(0, own=0.04, waited=0.06, phase=phase), rank(1, own=0.1, waited=0.0, phase=phase)]
    phases = {phase: 0.04, "comm": 0.06}
    finding = check(match("straggler", phases, ranks=ranks), "straggler", headroom=2)
    assert finding.cause == cause
    assert "rank 1" in finding.evidence[0]
    assert match("communication-bound", phases, ranks=ranks) is None


def test_a_stragglers_culprit_is_in_its_own_rank(code):
    ranks = [rank(0, own=0.04, waited=0.06, phase="other"), rank(1, own=0.1, waited=0.0, phase="other")]
    samples = [stack(code.at("main", "# call suppress"), code.at("suppress", "# suppress"), pid=101), stack(CALL)]
    finding = match("straggler", {"other": 0.04, "comm": 0.06}, ranks=ranks, samples=samples)
    assert (finding.culprit.function, finding.culprit.where) == ("suppress", "rank 1")


def test_a_straggler_of_which_only_backward_is_known():
    ranks = [rank(0, own=0.04, waited=0.06, phase="backward"), rank(1, own=0.1, waited=0.0, phase="backward")]
    finding = match("straggler", {"backward": 0.04, "comm": 0.06}, ranks=ranks)
    assert (finding.cause, len(finding.evidence)) == ("python", 2)


def test_a_program_of_one_process_has_no_ranks_to_wait_for():
    assert match("straggler") is None
    assert match("communication-bound", {"forward": 0.04, "comm": 0.06}) is None


def test_blocked_time_in_backward_is_waiting_for_other_ranks():
    ranks = [
        RankMeasurement(n, 100 + n, 0.1, {"forward": 0.03, "backward": 0.07}, {"backward": 0.06}) for n in range(2)
    ]
    phases = {"forward": 0.03, "backward": waiting("backward", 0.07, blocked=0.06)}
    check(match("communication-bound", phases, ranks=ranks), "communication-bound", headroom=2)


def test_all_ranks_of_a_slow_node_are_late():
    ranks = [rank(i, own=0.1 if i in (4, 5) else 0.04, waited=0.0 if i in (4, 5) else 0.06) for i in range(8)]
    ranks = [msgspec.structs.replace(each, host=f"node{each.rank // 2}") for each in ranks]
    assert [late.rank for late in late_ranks(ranks)] == [4, 5]
    finding = check(match("straggler", {"forward": 0.04, "comm": 0.06}, ranks=ranks), "straggler", headroom=2)
    assert any("late are ranks 4-5, all on node2" in line for line in finding.evidence)


@pytest.mark.parametrize("count", [2, 8, 1024])
def test_ranks_of_nearly_the_same_pace_are_not_late(count):
    pace = np.random.default_rng(count).normal(0.1, 0.001, count)
    ranks = [rank(i, own=float(own), waited=0.01) for i, own in enumerate(pace)]
    assert late_ranks(ranks) == []


def test_ranks_that_ended_early_are_named():
    ranks = [msgspec.structs.replace(rank(i, own=0.1, waited=0), steps=40 if i == 1 else 400) for i in range(3)]
    (note,) = notes(measurement({"forward": 0.1}, ranks=ranks, world_size=3))
    assert note == "rank 1 ended early: the others made up to 400 steps"


def test_tiny_operators_say_more_than_the_layer_that_they_are_in(code):
    """Both leave a step next to nothing: which comes first is no matter of the letters of their names."""
    layer = [module("gru", "MinimalGRU", 0.095, file=code.file)]
    tiny = ModelMeasurement(threads=4, ops=6000.0, batch_size=16, flops=5e7, peak_flops=1e11, flops_coverage=1.0)
    found = host_findings(measurement(TRAINING, model=tiny, modules=layer, samples=[stack(CALL, count=500)]))
    assert [finding.pattern for finding in found][:2] == ["overhead-bound", "compute-bound"]
    assert min(finding.headroom for finding in found[:2]) > 10
