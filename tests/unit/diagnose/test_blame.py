"""Synthetic stacks: the phase of each sample, and the function that holds the time of many."""

from __future__ import annotations

import msgspec
import pytest
from blamecase import TEXT, blame_of, phase_of, sites
from factory import (
    BACKWARD,
    CALL,
    FETCH,
    LAYOUTS,
    MAIN_PID,
    NEXT,
    STEP,
    WORKER,
    WORKER_PID,
    Source,
    lib,
    stack,
    std,
)

from unstall.diagnose.blame import culprit, hotspots, line_culprit
from unstall.diagnose.placing import is_idle
from unstall.records.measurements import RankMeasurement
from unstall.records.observations import Frame
from unstall.records.report import CallbackTime
from unstall.records.vocabulary import Phase, Plugins, Seam, Tick


@pytest.fixture(params=LAYOUTS)
def code(tmp_path, request):
    return Source(tmp_path / "program.py", TEXT, request.param)


@pytest.fixture
def outer(code):
    """The frames above the loop's body, up to a line of it."""

    def frames(snippet):
        return code.at("<module>", "# start"), code.at("train", snippet)

    return frames


# ---------------------------------------------------------------- the phase of a sample


def test_a_seam_in_the_stack_is_the_phase(code, outer):
    item = code.at("Photos.__getitem__", "# item")
    assert phase_of(code, *outer("# ask"), NEXT, FETCH, item) == "data_wait"
    assert phase_of(code, *outer("# call model"), CALL, code.at("Net.forward", "# forward")) == "forward"
    assert phase_of(code, *outer("# call backward"), BACKWARD) == "backward"
    assert phase_of(code, *outer("# call optimizer"), STEP) == "optimizer"
    assert phase_of(code, *outer("# call model"), lib("torch/distributed/distributed_c10d.py", "all_reduce")) == "comm"
    assert phase_of(code, *outer("# call model"), lib("gymnasium/vector/sync_vector_env.py", "step")) == "env"


def test_the_innermost_of_nested_seams_counts(code, outer):
    hook = lib("torch/nn/parallel/distributed.py", "forward")
    reduce = lib("torch/distributed/distributed_c10d.py", "all_reduce")
    assert phase_of(code, *outer("# call model"), CALL, hook, reduce) == "comm"


def test_what_serves_the_loop_claims_all_that_happens_in_it(code, outer):
    assert phase_of(code, *outer("# ask"), NEXT, FETCH, CALL, code.at("Net.forward", "# forward")) == "data_wait"


def test_a_forward_that_backward_computes_again_is_backward(code, outer):
    checkpoint = lib("torch/utils/checkpoint.py", "backward")
    assert phase_of(code, *outer("# call backward"), BACKWARD, checkpoint, CALL) == "backward"


def test_a_plugins_seam_is_told_by_its_frames(code, outer):
    seam = Seam("~tokens.encode", "tokenize", frames=((r"toytokens", r"encode"),))
    added = {"plugins": Plugins((Phase("tokenize", "turning text into numbers"),), (seam,))}
    frames = (*outer("# call prepare"), code.at("prepare", "# prepare"), lib("toytokens/__init__.py", "encode"))
    assert phase_of(code, *frames, lib("toytokens/words.py", "split"), **added) == "tokenize"
    assert phase_of(code, *frames) != "tokenize"


def test_a_plugins_seam_without_frames_is_told_by_the_line_that_calls_it(code, outer):
    seam = Seam("~tokens.encode", "tokenize", Tick.OTHER)
    added = {
        "plugins": Plugins((Phase("tokenize", "turning text into numbers"),), (seam,)),
        "sites": [*sites(code), code.site("~tokens.encode", "prepare", "# prepare", ("train", "# call prepare"))],
    }
    line = (*outer("# call prepare"), code.at("prepare", "# prepare"))
    for frames in (line, (*line, code.at("compute_accuracy", "# accuracy"))):
        (placed,) = blame_of([stack(*frames)], **added).main
        assert (placed.phase, placed.in_seam) == ("tokenize", True)
    assert phase_of(code, *outer("# call model"), CALL, code.at("Net.forward", "# forward"), **added) == "forward"


def test_zeroing_gradients_is_no_optimizer_step(code, outer):
    zero = lib("torch/optim/optimizer.py", "zero_grad")
    assert phase_of(code, *outer("# call tidy"), zero) != "optimizer"


def test_a_library_that_serves_the_person_makes_it_a_callback(code, outer):
    savefig = lib("matplotlib/figure.py", "savefig")
    assert phase_of(code, *outer("# call tidy"), code.at("tidy", "# tidy"), savefig) == "callback"


def test_what_a_framework_calls_on_an_event_is_a_callback_whatever_its_name(code, outer):
    figures = {"framework": "fastai", "calls": 3, "total_s": 1.0, "mean_s": 0.3, "share": 0.1}
    place = {"file": code.file, "line": code.line("# tidy")}
    method = CallbackTime(callback="Order", event="tidy", **place, **figures)
    given = CallbackTime(callback="Order.tidy", event="on_end", **place, **figures)
    a_lambda = CallbackTime(callback="main.<lambda>", event="on_end", **place, **figures)
    frames = (*outer("# call tidy"), code.at("tidy", "# tidy"), lib("torch/nn/modules/module.py", "_call_impl"))
    for callback in (method, given):
        (placed,) = blame_of([stack(*frames)], callbacks=[callback]).main
        assert (placed.phase, placed.in_seam) == ("callback", True)
    assert phase_of(code, *frames, callbacks=[a_lambda]) == phase_of(code, *frames) != "callback"


def test_an_environment_without_a_known_base_class_is_known_by_its_methods(code, outer):
    assert phase_of(code, *outer("# call model"), code.at("Maze.step", "# maze")) == "env"
    assert phase_of(code, *outer("# call model"), code.at("step", "# maze")) == "env"


@pytest.mark.parametrize(
    "snippet, function, inner, phase",
    [
        ("# call prepare", "prepare", "# prepare", "before"),
        ("# call penalty", "penalty", "# penalty", "between"),
        ("# call tidy", "tidy", "# tidy", "late"),
        ("# call accuracy", "compute_accuracy", "# accuracy", "callback"),
    ],
)
def test_host_code_is_placed_by_where_it_stands_to_the_models_calls(code, outer, snippet, function, inner, phase):
    assert phase_of(code, *outer(snippet), code.at(function, inner)) == phase


def test_without_training_what_follows_the_model_is_after_it(code, outer):
    inference = [site for site in sites(code) if site.seam in ("~data.next", "~forward")]
    assert phase_of(code, *outer("# call tidy"), code.at("tidy", "# tidy"), sites=inference) == "after"


def test_a_generator_that_feeds_the_loop_is_data_wait(code, outer):
    no_loader = [site for site in sites(code) if site.seam != "~data.next"]
    assert phase_of(code, *outer("# ask"), code.at("batches", "# yield"), sites=no_loader) == "data_wait"


def test_what_makes_the_models_batch_is_its_loader_whatever_it_is_called(tmp_path):
    text = """
    def fit():
        while True:
            rows = shuffle()  # makes
            tidy()  # tidies
            model(rows)  # model

    def shuffle():
        return 1  # shuffle

    def tidy():
        return 2  # tidy
    """
    loop = Source(tmp_path / "loop.py", text)
    called = [loop.site("~forward", "fit", "# model"), loop.site("~optimizer", "fit", "# model")]

    def phases(sites):
        makes = stack(loop.at("fit", "# makes"), loop.at("shuffle", "# shuffle"))
        tidies = stack(loop.at("fit", "# tidies"), loop.at("tidy", "# tidy"))
        return [placed.phase for placed in blame_of([makes, tidies], sites=sites).main]

    assert phases(called) == ["data_wait", "before"]
    assert phases([*called, loop.site("~env.step", "fit", "# model")]) == ["before", "before"]


def test_what_an_optimizer_calls_to_compute_the_loss_is_no_update(tmp_path):
    text = """
    def training_step(batch):
        loss = model(batch)  # model
        scores.update(loss)  # update
        return loss

    def update(loss):
        return sorted(loss)  # scores

    def fit():
        trainer.fit()  # fit
    """
    program = Source(tmp_path / "program.py", text)
    sites = [
        program.site("~forward", "training_step", "# model", ("fit", "# fit")),
        program.site("~optimizer", "fit", "# fit"),
    ]
    above = (program.at("fit", "# fit"), lib("lightning/pytorch/trainer/trainer.py", "fit"), STEP)
    closure = lib("lightning/pytorch/loops/optimization/closure.py", "__call__")
    inside = (*above, closure, program.at("training_step", "# update"), program.at("update", "# scores"))
    forward = (*above, closure, program.at("training_step", "# model"), CALL)
    of_its_own = (
        program.at("fit", "# fit"), lib("torch/optim/optimizer.py", "wrapper"), lib("lion/lion.py", "step"),
        lib("lion/lion.py", "update_fn"),
    )  # fmt: skip
    placed = blame_of([stack(*frames) for frames in (above, inside, forward, of_its_own)], sites=sites).main
    assert [each.phase for each in placed] == ["optimizer", "other", "forward", "optimizer"]


@pytest.mark.parametrize(("name", "phase"), [("sample", "data_wait"), ("log", "callback"), ("work", "other")])
def test_what_a_function_is_for_is_said_by_the_outermost_that_is_named_for_it(tmp_path, name, phase):
    text = f"""
    def fit():
        while True:
            play()  # play
            learn()  # learn

    def play():
        act(model(1))  # act

    def learn():
        rows = {name}()  # rows
        loss = model(rows)  # model

    def {name}():
        return _history()  # history

    def _history():
        return 1  # made
    """
    loop = Source(tmp_path / "loop.py", text)
    sites = [
        loop.site("~forward", "learn", "# model", ("fit", "# learn")),
        msgspec.structs.replace(loop.site("~forward", "play", "# act", ("fit", "# play")), grad=False),
        loop.site("~optimizer", "learn", "# model", ("fit", "# learn")),
    ]
    makes = stack(loop.at("fit", "# learn"), loop.at("learn", "# rows"), loop.at(name, "# history"))
    deep = stack(*makes.frames, loop.at("_history", "# made"))
    assert [placed.phase for placed in blame_of([makes, deep], sites=sites).main] == [
        phase,
        phase if phase != "other" else "callback",
    ]


def test_what_a_request_brings_to_a_server_is_no_batch_of_data(tmp_path):
    text = """
    def handle(request):
        rows = decode(request)  # makes
        model(rows)  # model

    def decode(request):
        return 1  # decode
    """
    loop = Source(tmp_path / "loop.py", text)
    at = loop.site("~forward", "handle", "# model")
    makes = (loop.at("handle", "# makes"), loop.at("decode", "# decode"))
    server = lib("uvicorn/protocols/http/h11_impl.py", "run_asgi")
    asks = lib("urllib3/connectionpool.py", "urlopen")

    def phase(*frames, callers=((server.file, server.function, server.line),)):
        called = [msgspec.structs.replace(at, callers=callers)]
        return blame_of([stack(*frames)], sites=called).main[0].phase

    assert phase(*makes, callers=()) == "data_wait"
    assert phase(server, *makes) == "before"
    assert phase(server, *makes, asks) == "data_wait"


def test_a_loader_of_validation_alone_loads_no_batches_of_training(code, outer):
    validating = [
        msgspec.structs.replace(site, grad=False) if site.seam == "~data.next" else site for site in sites(code)
    ]
    assert phase_of(code, *outer("# ask"), code.at("batches", "# yield"), sites=validating) == "data_wait"


def test_what_a_framework_iterates_over_loads_batches(code):
    fetcher = lib("lightning/pytorch/loops/fetchers.py", "__next__")
    fit, step = code.at("<module>", "# start"), lib("lightning/pytorch/trainer/call.py", "_call_strategy_hook")
    called = [code.site("~forward", "Net.forward", "# forward", ("<module>", "# start"))]
    assert phase_of(code, fit, fetcher, code.at("crop", "# crop"), sites=called) == "data_wait"
    assert phase_of(code, fit, step, code.at("crop", "# crop"), sites=called) != "data_wait"


def test_a_progress_bar_is_no_callback_of_what_is_made_inside_it(code, outer):
    bar = lib("tqdm/std.py", "__iter__")
    no_loader = [site for site in sites(code) if site.seam != "~data.next"]
    inside = (*outer("# ask"), bar, code.at("batches", "# yield"))
    assert phase_of(code, *inside, sites=no_loader) == "data_wait"
    assert phase_of(code, *outer("# ask"), bar) == "callback"


def test_a_program_of_no_known_calls_is_other(code):
    assert phase_of(code, code.at("<module>", "# start"), sites=[]) == "other"


# ---------------------------------------------------------------- processes and threads


def test_samples_are_sorted_by_process(code, outer):
    samples = [
        stack(*outer("# call tidy"), count=3),
        stack(*outer("# call tidy"), count=50, main=False),
        stack(WORKER, FETCH, code.at("Photos.__getitem__", "# item"), pid=WORKER_PID, count=7),
        stack(*outer("# call tidy"), pid=300, count=9),
    ]
    ranks = [RankMeasurement(0, MAIN_PID, 0.1, {}, {}), RankMeasurement(1, 300, 0.1, {}, {})]
    blame = blame_of(samples, ranks=ranks, worker_pids=frozenset({WORKER_PID}))
    assert blame.total == 3
    assert [placed.count for placed in blame.workers] == [7]
    assert {rank: [placed.count for placed in group] for rank, group in blame.ranks.items()}[1] == [9]


def test_imports_are_in_no_step(code, outer):
    loading = Frame("_find_and_load", "<frozen importlib._bootstrap>", 1)
    samples = [
        stack(code.at("<module>", "# start"), loading, lib("torch/__init__.py", "<module>"), count=90),
        stack(loading, *outer("# call tidy"), count=10),
    ]
    assert blame_of(samples).total == 10  # a program may well train while it is imported


def test_every_other_process_of_a_program_of_one_rank_serves_it(code):
    blame = blame_of([stack(WORKER, FETCH, pid=WORKER_PID)])
    assert [placed.phase for placed in blame.workers] == ["data_wait"]


def test_a_worker_that_waits_for_an_index_is_idle_and_one_that_works_is_not(code):
    queue = std("multiprocessing/queues.py", "get")
    poll = std("multiprocessing/connection.py", "poll")
    item = code.at("Photos.__getitem__", "# item")
    samples = [stack(WORKER, queue, poll, pid=WORKER_PID), stack(WORKER, FETCH, item, poll, pid=WORKER_PID)]
    assert [is_idle(placed) for placed in blame_of(samples).workers] == [True, False]


# ---------------------------------------------------------------- the culprit


def through_compose(code, function, snippet, *deeper, count=50):
    return stack(
        NEXT,
        FETCH,
        code.at("Photos.__getitem__", "# item"),
        code.at("Compose.__call__", "# apply"),
        code.at(function, snippet),
        *deeper,
        count=count,
    )


def test_the_deepest_function_that_holds_the_time_is_blamed(code):
    samples = [
        through_compose(code, "blur", "# blur", lib("PIL/Image.py", "filter"), count=70),
        through_compose(code, "turn", "# turn", count=30),
    ]
    blame = blame_of(samples)
    found = culprit(blame.main, blame.total, "main")
    assert (found.function, found.file, found.line) == ("blur", code.file, code.line("# blur"))
    assert found.share == pytest.approx(0.7)
    assert found.code == "return image.filter(3)  # blur"
    assert found.via == "PIL.Image.filter"
    assert found.where == "main"


def test_where_no_part_holds_half_of_it_the_one_that_calls_them_is_blamed(code):
    samples = [
        through_compose(code, "blur", "# blur", count=34),
        through_compose(code, "turn", "# turn", count=33),
        through_compose(code, "crop", "# crop", count=33),
    ]
    found = culprit(blame_of(samples).main, 100, "main")
    assert found.function == "Compose.__call__"
    assert found.line == code.line("# apply")
    assert found.share == pytest.approx(1.0)


def test_the_line_is_the_hottest_of_the_function(code, outer):
    samples = [stack(*outer("# call tidy"), count=30), stack(*outer("# call accuracy"), count=70)]
    found = culprit(blame_of(samples).main, 200, "main")
    assert (found.function, found.line) == ("train", code.line("# call accuracy"))
    assert found.share == pytest.approx(0.5)
    assert found.via == ""


def test_recursion_counts_a_sample_once(code):
    deep = [code.at("tidy", "# tidy")] * 10
    blame = blame_of([stack(*deep, count=10)])
    assert culprit(blame.main, 10, "main").share == pytest.approx(1.0)


def test_a_comprehension_belongs_to_its_function(code):
    samples = [stack(code.at("crop", "# crop"), code.at("<listcomp>", "# crop"))]
    assert culprit(blame_of(samples).main, 50, "main").function == "crop"


def test_samples_without_user_code_blame_nobody(code):
    assert culprit(blame_of([stack(NEXT, FETCH)]).main, 50, "main") is None
    assert culprit([], 0, "main") is None


def test_a_library_in_a_package_is_named_by_module_and_the_standard_library_by_file(code):
    deeper = lib("pandas/core/frame.py", "apply")
    (one,) = blame_of([stack(code.at("tidy", "# tidy"), deeper)]).main
    assert culprit([one], 50, "main").via == "pandas.core.frame.apply"
    closure = lib("pandas/util/_decorators.py", "deprecate.<locals>.wrapper")
    (around,) = blame_of([stack(code.at("tidy", "# tidy"), closure, deeper)]).main
    assert culprit([around], 50, "main").via == "pandas.core.frame.apply"
    (two,) = blame_of([stack(code.at("tidy", "# tidy"), std("json/decoder.py", "decode"))]).main
    assert culprit([two], 50, "main").via == "decoder.decode"
    (three,) = blame_of([stack(code.at("tidy", "# tidy"), Frame("made_up", "<string>", 1))]).main
    assert culprit([three], 50, "main").via == "made_up"


def test_a_culprit_known_from_a_call_has_its_function_and_code(code):
    found = line_culprit(sites(code)[1], share=0.4)
    assert (found.function, found.line, found.share) == ("train", code.line("# call model"), 0.4)
    assert found.code == "out = model(batch)  # call model"


# ---------------------------------------------------------------- hotspots


def test_hotspots_are_lines_by_share_of_their_process(code, outer):
    samples = [
        stack(*outer("# call tidy"), code.at("tidy", "# tidy"), count=60),
        stack(*outer("# call tidy"), count=20),
        stack(NEXT, count=20),
        stack(WORKER, FETCH, code.at("Photos.__getitem__", "# item"), pid=WORKER_PID, count=5),
    ]
    spots = hotspots(blame_of(samples, sites=sites(code), worker_pids=frozenset({WORKER_PID})))
    assert [(spot.function, spot.where, spot.share) for spot in spots] == [
        ("Photos.__getitem__", "worker", 1.0),
        ("tidy", "main", 0.6),
        ("train", "main", 0.2),
    ]
    assert spots[0].phase == "data_wait"
    assert spots[1].line == code.line("# tidy")


def test_hotspots_are_few(code):
    samples = [stack(Frame("f", f"/home/me/many{n}.py", n + 1), count=n + 1) for n in range(40)]
    assert len(hotspots(blame_of(samples))) == 10
    assert hotspots(blame_of([])) == []
