"""The steps of loops of many shapes, and their split into phases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spanfactory import Recording, check_loop, loop_of, mean, train, train_step

from unstall.benchmark.boundaries import other_loops
from unstall.benchmark.steps import driving_threads, find_loop, main_spans
from unstall.child.layout import ERROR, NETWORK, NOGRAD
from unstall.records.vocabulary import PHASE_NAMES

# ---------------------------------------------------------------- training


def test_a_training_loop_is_counted_by_its_optimizer_from_batch_to_batch():
    r = Recording()
    train(r, 10, data=0.010, forward=0.020, backward=0.030, optimizer=0.005, other=0.002)
    loop = loop_of(r)
    check_loop(loop)
    assert (loop.kind, len(loop)) == ("optimizer", 10)
    for name, seconds in [("data_wait", 0.010), ("forward", 0.020), ("backward", 0.030), ("optimizer", 0.005)]:
        assert mean(loop, name) == pytest.approx(seconds)
    # The last step ends with its optimizer: nothing is asked for after it.
    assert mean(loop, "other", slice(0, 9)) == pytest.approx(0.002)
    assert not loop.at_boundary.any()


def test_accumulation_makes_one_step_of_several_batches():
    r = Recording()
    for _ in range(6):
        train_step(r, batches=4, data=0.01, forward=0.02, backward=0.03, optimizer=0.04)
    loop = loop_of(r)
    check_loop(loop)
    assert (loop.kind, len(loop)) == ("optimizer", 6)
    assert mean(loop, "data_wait", slice(1, None)) == pytest.approx(4 * 0.01)
    assert mean(loop, "forward", slice(1, None)) == pytest.approx(4 * 0.02)
    assert mean(loop, "optimizer") == pytest.approx(0.04)


def test_of_two_optimizers_in_turn_one_counts_the_steps():
    r = Recording()
    for _ in range(8):
        r.do("~data.next", 0.01)
        for model, optimizer_id, seconds in [(11, 21, 0.02), (12, 22, 0.05)]:
            r.do("~forward", seconds, arg=model)
            r.do("~backward", seconds)
            r.do("~optimizer", seconds, arg=optimizer_id)
    loop = loop_of(r)
    check_loop(loop)
    assert len(loop) == 8
    assert mean(loop, "optimizer") == pytest.approx(0.07)


def test_training_without_a_loader_is_counted_by_its_optimizer():
    r = Recording()
    for _ in range(5):
        r.spend(0.1)
        r.do("~forward", 0.02)
        r.do("~backward", 0.03)
        r.do("~optimizer", 0.01)
    loop = loop_of(r)
    check_loop(loop)
    assert (loop.kind, len(loop)) == ("optimizer", 4)
    assert loop.durations == pytest.approx([0.16] * 4)
    assert mean(loop, "other") == pytest.approx(0.1)
    assert mean(loop, "data_wait") == 0


def by_hand(recording, times):
    """Steps of a training that updates its weights without an optimizer."""
    for _ in range(times):
        recording.do("~forward", 0.02)
        recording.do("~backward", 0.03)
        recording.spend(0.01)


def test_training_without_an_optimizer_is_counted_by_backward():
    r = Recording()
    for _ in range(2):
        by_hand(r, 10)
        for _ in range(30):
            r.do("~forward", 0.01, flags=NOGRAD)
    loop = loop_of(r)
    check_loop(loop)
    assert (loop.kind, len(loop)) == ("backward", 19)
    assert loop.durations[:8] == pytest.approx([0.06] * 8)
    assert mean(loop, "validation") * 19 == pytest.approx(0.6), "of the last epoch, too"
    assert find_loop(r.process(), only="backward").kind == "backward"


def test_training_of_bare_tensors_is_counted_by_backward():
    r = Recording()
    for _ in range(10):
        r.spend(0.02)
        r.do("~backward", 0.03)
    loop = loop_of(r)
    check_loop(loop)
    assert (loop.kind, len(loop)) == ("backward", 9)
    assert mean(loop, "backward") == pytest.approx(0.03) and mean(loop, "other") == pytest.approx(0.02)


@pytest.mark.parametrize("batches", [1, 100])
def test_gradients_that_are_taken_now_and_then_or_several_times_a_call_count_no_steps(batches):
    """As those of an attribution, or of several losses of one output."""
    r = Recording()
    by_hand(r, 2)
    for _ in range(batches):
        for _ in range(2):
            r.do("~forward", 0.02)
        for _ in range(3):
            r.do("~backward", 0.01) if batches == 1 else r.spend(0.01)
    assert loop_of(r).kind == "forward"


def test_an_optimizer_that_runs_seldom_is_not_the_main_loop():
    """A warm-up fit of a head, then a long inference run."""
    r = Recording()
    train(r, 3)
    for _ in range(200):
        r.do("~data.next", 0.01)
        r.do("~forward", 0.02, arg=99, flags=NOGRAD)
    loop = loop_of(r)
    check_loop(loop)
    assert loop.kind == "batch"
    assert len(loop) >= 199


def test_a_training_whose_test_at_the_end_takes_three_times_as_long_is_counted_by_its_optimizer():
    r = Recording()
    for batches in (4, 290):
        train(r, 40)
        r.do("~data.iter", 0.001)
        for _ in range(batches):
            r.do("~data.next", 0.01)
            r.do("~forward", 0.05, flags=NOGRAD)
    loop = loop_of(r)
    check_loop(loop)
    assert (loop.kind, len(loop)) == ("optimizer", 80)
    assert mean(loop, "validation") * 80 == pytest.approx(294 * 0.06, rel=0.02)


def test_a_teacher_without_gradients_in_every_step_is_no_validation():
    r = Recording()
    for _ in range(6):
        r.do("~data.next", 0.01)
        r.do("~forward", 0.02, arg=8, flags=NOGRAD)
        r.do("~forward", 0.03, arg=9)
        r.do("~backward", 0.03)
        r.do("~optimizer", 0.01)
    loop = loop_of(r)
    check_loop(loop)
    assert not loop.at_boundary.any()
    assert mean(loop, "validation") == 0
    assert mean(loop, "forward") == pytest.approx(0.05)


@pytest.mark.parametrize("with_loader", [True, False])
def test_validation_between_epochs_is_told_from_the_steps(with_loader):
    r = Recording()
    for _ in range(3):
        train(r, 6)
        with r.span("validate"):
            if with_loader:
                r.do("~data.iter", 0.001)
            for _ in range(4):
                if with_loader:
                    r.do("~data.next", 0.01)
                r.do("~forward", 0.02, flags=NOGRAD)
            r.spend(0.01)
    loop = loop_of(r)
    check_loop(loop)
    assert len(loop) == 18
    held = np.flatnonzero(loop.validation_calls)
    assert loop.validation_calls[held].tolist() == [4] * len(held)
    assert (len(held), held[-1]) == (3, 17)  # that of the last epoch is in the last step: there is no next
    per_epoch = 4 * 0.02 + (4 * 0.01 if with_loader else 0)
    assert loop.phases[held, PHASE_NAMES.index("validation")] == pytest.approx(per_epoch, abs=0.002)
    assert loop.phases[held, PHASE_NAMES.index("backward")] == pytest.approx(0.03)
    assert loop.at_boundary[held].all()
    rest = np.setdiff1d(np.arange(18), held)
    assert mean(loop, "validation", rest) == 0
    assert mean(loop, "forward", rest) == pytest.approx(0.02)


def test_the_gap_between_epochs_is_marked_and_its_time_kept():
    r = Recording()
    for _ in range(3):
        train(r, 5)
        r.spend(1.0)
    loop = loop_of(r)
    check_loop(loop)
    assert len(loop) == 15
    assert loop.at_boundary.sum() == 2
    assert loop.durations.sum() == pytest.approx(15 * 0.065 + 2 * 1.001)


# ---------------------------------------------------------------- other loops


def test_inference_over_a_loader_is_counted_by_batches_that_reach_the_model():
    r = Recording()
    r.do("~data.iter", 0.001)
    for _ in range(7):
        r.do("~data.next", 0.01)
        r.do("~forward", 0.02, flags=NOGRAD)
        r.spend(0.005)
    r.do("~data.next", 0.001, flags=ERROR)  # StopIteration
    loop = loop_of(r)
    check_loop(loop)
    assert (loop.kind, len(loop)) == ("batch", 6)
    assert loop.durations == pytest.approx([0.035] * 6)
    assert mean(loop, "data_wait") == pytest.approx(0.01)
    assert mean(loop, "other") == pytest.approx(0.005)


def test_several_model_calls_a_batch_are_one_step():
    r = Recording()
    for _ in range(5):
        r.do("~data.next", 0.01)
        for _ in range(3):
            r.do("~forward", 0.02)
    loop = loop_of(r)
    check_loop(loop)
    assert (loop.kind, len(loop)) == ("batch", 4)
    assert mean(loop, "forward") == pytest.approx(0.06)


def test_inference_without_a_loader_is_counted_by_model_calls():
    r = Recording()
    for _ in range(6):
        r.do("~forward", 0.02)
        r.spend(0.03)
    loop = loop_of(r)
    check_loop(loop)
    assert (loop.kind, len(loop)) == ("forward", 5)
    assert mean(loop, "other") == pytest.approx(0.03)


def test_a_loop_that_only_reads_is_counted_by_its_batches():
    r = Recording()
    for _ in range(5):
        r.do("~data.next", 0.01)
        r.spend(0.02)
    loop = loop_of(r)
    check_loop(loop)
    assert (loop.kind, len(loop)) == ("batch", 4)


def test_environment_steps_count_where_there_are_many_of_them():
    r = Recording()
    for index in range(40):
        r.do("~forward", 0.001, flags=NOGRAD)
        r.do("~env.step", 0.002)
        if index % 8 == 7:
            r.do("~env.reset", 0.001)
            r.do("~forward", 0.001)
            r.do("~backward", 0.001)
            r.do("~optimizer", 0.001)
    loop = loop_of(r)
    check_loop(loop)
    assert (loop.kind, len(loop)) == ("env", 39)
    assert mean(loop, "env") >= 0.002


def test_filling_a_replay_buffer_comes_before_the_loop():
    r = Recording()
    for _ in range(500):
        r.do("~env.step", 0.0001, arg=1)
    learn(r, 40, env=1)
    loop = loop_of(r)
    check_loop(loop)
    assert (loop.kind, len(loop)) == ("env", 39)
    assert mean(loop, "env") == pytest.approx(0.002)


def test_an_agent_that_plays_more_than_it_learns_is_counted_from_the_beginning():
    r = Recording()
    for _ in range(500):
        r.do("~env.step", 0.02, arg=1)
    learn(r, 40, env=1)
    assert (loop_of(r).kind, len(loop_of(r))) == ("env", 539)


def test_a_few_environment_steps_do_not_count():
    r = Recording()
    train(r, 40)
    for _ in range(4):
        r.do("~env.step", 0.002)
    assert loop_of(r).kind == "optimizer"


def test_explicit_steps_come_before_any_guess():
    r = Recording()
    for _ in range(6):
        r.do("~step.next", 0.004)
        for _ in range(2):
            train_step(r, data=0.01)
    loop = loop_of(r)
    check_loop(loop)
    assert (loop.kind, len(loop)) == ("explicit", 5)
    assert mean(loop, "data_wait") == pytest.approx(0.004 + 2 * 0.01)


def test_a_program_in_which_nothing_repeats_has_no_loop():
    r = Recording()
    r.do("~forward", 0.1)
    r.do("mine", 0.1)
    assert loop_of(r) is None
    assert find_loop(empty_process()) is None


def empty_process():
    r = Recording()
    r.do("~forward", 0.1)
    process = r.process()
    process = replace(process, spans=process.spans[:0])
    return process


# ---------------------------------------------------------------- any program at all

LEAVES = ["~data.next", "~forward", "~backward", "~optimizer", "~env.step", "~data.iter", "~step.next", "~gc", "mine"]
ACTS = st.tuples(
    st.sampled_from([*LEAVES, "~callback.torch.save", "~net.recv", ""]),
    st.integers(0, 50),  # ms
    st.sampled_from([0, NOGRAD, ERROR]),
    st.lists(st.tuples(st.sampled_from(LEAVES), st.integers(0, 20)), max_size=3),
)


@settings(max_examples=150)
@given(st.lists(st.lists(ACTS, min_size=1, max_size=6), min_size=1, max_size=3), st.integers(1, 12))
def test_whatever_a_program_does_its_steps_fill_its_loop(bodies, turns):
    r = Recording()
    for turn in range(turns):
        for name, ms, flags, inner in bodies[turn % len(bodies)]:
            if not name:
                r.spend(ms / 1e3)
                continue
            with r.span(name, flags=flags | (NETWORK if name == "~net.recv" else 0), cpu=ms / 2e3):
                r.spend(ms / 1e3)
                for inner_name, inner_ms in inner:
                    r.do(inner_name, inner_ms / 1e3)
    if not r.rows:
        return
    loop = loop_of(r)
    if loop is not None:
        check_loop(loop)


def test_calls_whose_cpu_time_was_not_measured_are_taken_to_be_like_the_others():
    r = Recording()
    for step in range(40):
        r.do("~data.next", 0.010, cpu=0.004 if step % 4 == 0 else None)  # 6 ms of it blocked
        r.do("~forward", 0.020)
        r.do("~optimizer", 0.005)
    loop = loop_of(r)
    check_loop(loop)
    blocked = loop.blocked.mean(axis=0)
    assert blocked[PHASE_NAMES.index("data_wait")] == pytest.approx(0.006, rel=0.01)
    assert blocked[PHASE_NAMES.index("forward")] == 0


def test_a_policy_that_acts_without_gradients_is_no_validation():
    """Many optimizer steps to a few of the environment: the updates are the steps."""
    r = Recording()
    for _ in range(5):
        for _ in range(4):
            r.do("~forward", 0.004, flags=NOGRAD)
            r.do("~env.step", 0.01)
        for _ in range(40):
            train_step(r)
    loop = loop_of(r)
    assert loop.kind == "optimizer"
    assert mean(loop, "validation") == 0
    assert mean(loop, "env") > 0


def test_the_environment_in_which_a_callback_evaluates_is_not_that_of_the_loop():
    r = Recording()
    for step in range(40):
        r.do("~env.step", 0.01)
        if step % 10 == 0:
            with r.span("~event.stable_baselines3.EvalCallback._on_step"):
                for _ in range(20):
                    r.do("~env.step", 0.01)
        train_step(r)
    loop = loop_of(r)
    assert (loop.kind, len(loop)) == ("env", 39)
    assert mean(loop, "callback") == pytest.approx(4 * 0.2 / 39)
    assert mean(loop, "env") == pytest.approx(0.01)


def learn(recording, steps, *, env, every=1):
    """Steps of an agent that acts and learns, from each step or from those of a rollout."""
    for step in range(1, steps + 1):
        recording.do("~forward", 0.001, flags=NOGRAD)
        recording.do("~env.step", 0.002, arg=env)
        if step % every == 0:
            for _ in range(every):
                train_step(recording, data=0)


def evaluate(recording, *, env, episodes=2, steps=50):
    for _ in range(episodes):
        recording.do("~env.reset", 0.001, arg=env)
        for _ in range(steps):
            recording.do("~forward", 0.001, flags=NOGRAD)
            recording.do("~env.step", 0.001, arg=env)


@pytest.mark.parametrize("every", [1, 20], ids=["learns from each step", "learns from rollouts"])
def test_episodes_in_which_the_policy_is_evaluated_are_no_steps_but_validation(every):
    r = Recording()
    for round_ in range(4):
        learn(r, 40, env=1, every=every)
        evaluate(r, env=100 + round_)  # made anew for each
    loop = loop_of(r)
    check_loop(loop)
    assert (loop.kind, len(loop)) == ("env", 159)
    assert np.flatnonzero(loop.at_boundary).tolist() == [39, 79, 119]
    assert mean(loop, "validation", loop.at_boundary) == pytest.approx(2 * (0.001 + 50 * 0.002))
    assert mean(loop, "env") == pytest.approx(0.002)


def test_environments_that_are_all_learned_from_are_the_loop():
    after_each_other, in_turn = Recording(), Recording()
    for env in (1, 2, 3):
        learn(after_each_other, 40, env=env)
    for _ in range(40):
        in_turn.do("~forward", 0.001, flags=NOGRAD)
        for env in (1, 2, 3):
            in_turn.do("~env.step", 0.002, arg=env)
        train_step(in_turn, data=0)
    for recording in (after_each_other, in_turn):
        loop = loop_of(recording)
        assert (loop.kind, len(loop)) == ("env", 119)
        assert mean(loop, "validation") == 0


def test_of_a_policy_that_never_learns_every_environment_is_the_loop():
    r = Recording()
    for env in (1, 2):
        evaluate(r, env=env)
    assert len(loop_of(r)) == 199


# ---------------------------------------------------------------- servers


def serve(r, *, idle, before, forward, after):
    """A request that is marked at its end."""
    r.spend(idle)
    began = r.now
    r.spend(before)
    r.do("~forward", forward)
    r.spend(after)
    r.do("~request", arg=r.now - began)


def test_what_lies_between_the_requests_of_a_server_is_idle():
    r = Recording()
    for _ in range(10):
        serve(r, idle=0.05, before=0.02, forward=0.01, after=0.02)
    loop = loop_of(r)
    check_loop(loop)
    assert (loop.kind, len(loop)) == ("forward", 9)
    assert mean(loop, "idle") == pytest.approx(0.05)
    assert mean(loop, "other") == pytest.approx(0.04)


def test_a_program_that_serves_nothing_is_never_idle():
    r = Recording()
    train(r, 10)
    assert mean(loop_of(r), "idle") == 0


def in_threads(*, marked):
    """Requests that each have a thread of their own; ``marked``: whether anybody knows that they are requests."""
    main, handlers = Recording(), []
    for number in range(10):
        r = Recording(thread=200 + number, flags=0)
        r.ids, r.now = main.ids, main.now
        if marked:
            serve(r, idle=0.05, before=0.02, forward=0.01, after=0.02)
        else:
            r.do("~forward", 0.01)
        main.now = r.now
        handlers += r.rows
    main.rows += handlers
    return main


def test_the_requests_of_a_server_are_one_loop_though_each_has_a_thread():
    r = in_threads(marked=True)
    loop = loop_of(r)
    check_loop(loop)
    assert (loop.kind, len(loop)) == ("forward", 9)
    assert mean(loop, "idle") == pytest.approx(0.05)
    assert driving_threads(r.process()) == {*range(200, 210)}


def test_threads_that_serve_nothing_are_no_loop_together():
    r = in_threads(marked=False)
    assert find_loop(r.process()) is None and len(driving_threads(r.process())) == 1


def fold(r, model, optimizer, steps=30, seconds=0.01):
    for _ in range(steps):
        r.do("~data.next", 0.001)
        r.do("~forward", seconds, arg=model)
        r.do("~backward", seconds)
        r.do("~optimizer", seconds, arg=optimizer)


@pytest.mark.parametrize("numbers", [range(5), (0, 1, 0, 1, 2)], ids=["addresses", "addresses used again"])
def test_a_training_for_each_fold_is_one_loop(numbers):
    r = Recording()
    for number in numbers:
        fold(r, 10 + number, 20 + number)
        r.do("~forward", 0.2, arg=10 + number, flags=NOGRAD)
    loop = loop_of(r)
    check_loop(loop)
    assert (loop.kind, len(loop)) == ("optimizer", 150)


@pytest.mark.parametrize("seconds", [0.002, 0.03])
def test_a_training_of_another_pace_is_another_loop(seconds):
    r = Recording()
    fold(r, 11, 21)
    fold(r, 12, 22, seconds=seconds)
    assert len(loop_of(r)) == 30


def test_what_a_second_training_asks_its_teacher_is_no_validation_of_the_first():
    r = Recording()
    for _ in range(2):
        fold(r, 11, 21, seconds=0.05)
        r.do("~forward", 0.2, arg=11, flags=NOGRAD)
    for _ in range(60):
        r.do("~forward", 0.01, arg=11, flags=NOGRAD)  # the teacher, which the first loop has trained
        fold(r, 12, 22, steps=1, seconds=0.005)
    loop = loop_of(r)
    check_loop(loop)
    assert len(loop) == 60
    assert mean(loop, "validation") * 60 == pytest.approx(2 * 0.2, rel=0.1)


def test_optimizers_in_turn_within_a_fold_count_once():
    r = Recording()
    for number in range(3):
        for _ in range(20):
            r.do("~data.next", 0.001)
            for player in (0, 100):
                r.do("~forward", 0.01, arg=10 + number + player)
                r.do("~backward", 0.01)
                r.do("~optimizer", 0.01, arg=50 + number + player)
    assert len(loop_of(r)) == 60


@pytest.mark.parametrize(("clients", "steps"), [(4, 120), (2, 60)], ids=["a relay", "a critic and a generator"])
def test_trainings_that_take_turns_are_one_loop_where_they_are_several(clients, steps):
    """As of federated learning: each client makes a few steps with an optimizer of its own, round after round."""
    r = Recording()
    for _ in range(10):
        for client in range(clients):
            fold(r, 10 + client, 20 + client, steps=3)
        r.do("~forward", 0.2, arg=5, flags=NOGRAD)
    process = r.process()
    assert len(find_loop(process)) == steps - (clients == 2) * 30
    assert other_loops(process, main_spans(process)) == []


def test_other_loops_of_a_sweep_are_told_with_the_time_they_take():
    """Of models of two sizes in turn: those of the other size are not the main loop's, nor of any of its steps."""
    r = Recording()
    for number, seconds in enumerate((0.05, 0.01, 0.05, 0.01)):
        fold(r, 10 + number, 20 + number, seconds=seconds)
    process = r.process()
    first, second = other_loops(process, main_spans(process))
    assert len(find_loop(process)) == 60
    assert second[0] - first[1] > 30 * 0.05
    assert first[1] - first[0] == pytest.approx(30 * 0.03, rel=0.1)


def test_an_optimizer_that_comes_after_each_rollout_is_of_the_main_loop():
    r = Recording()
    for _ in range(4):
        for player in (0, 1):
            fold(r, 10 + player, 20 + player, steps=10, seconds=0.01 * (player + 1))
    process = r.process()
    assert other_loops(process, main_spans(process)) == []
