"""Reading py-spy's raw stacks: every form seen in the wild, and a round trip of invented ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from unstall.benchmark.stacks import divided, lost_samples, merge, parse_raw, program_leaf, relevant, with_main_threads
from unstall.records.observations import Frame, Observation, StackSample, StackWindow

BOOTSTRAP = Frame("BaseProcess._bootstrap", "/py/lib/python3.11/multiprocessing/process.py", 314)
THREAD = Frame("Thread._bootstrap", "/py/lib/python3.11/threading.py", 1002)
TRAIN = Frame("<module>", "/home/me/train.py", 19)


def sample(*frames: Frame, pid: int = 7, thread: str = "MainThread", main: bool = True, n: int = 1, tid: int = 0):
    return StackSample(pid, thread, frames, n, main_thread=main, tid=tid)


@pytest.mark.parametrize(
    ("said", "lost"),
    [
        (
            "py-spy> Stopped\npy-spy> Wrote raw flamegraph data to '/tmp/Errors: 3'. Samples: 494 Errors: 305\npy-spy> You",
            305,
        ),
        ("py-spy> Sampling process 100 times a second", 0),
        ("", 0),
    ],
)
def test_what_could_not_be_read_is_in_the_last_words(said, lost):
    assert lost_samples(said) == lost


def test_a_main_thread():
    text = (
        'process 7:"python train.py";thread (7): MainThread;'
        "<module> (/home/me/train.py:19);K.m (/home/me/model.py:8);<lambda> (/home/me/a.py:5) 99\n"
    )
    frames = (TRAIN, Frame("K.m", "/home/me/model.py", 8), Frame("<lambda>", "/home/me/a.py", 5))
    assert parse_raw(text) == [sample(*frames, n=99, tid=7)]


def test_a_stack_belongs_to_the_last_process_of_the_chain():
    text = (
        'process 7:"python a.py";process 8:"python a.py";process 9:"python -c from x import y; '
        'y(fd=6, h=11) --multiprocessing-fork";thread (9): MainThread;f (/a.py:1) 2'
    )
    assert [(s.pid, s.main_thread) for s in parse_raw(text)] == [(9, True)]


def test_names_and_files_may_hold_separators_and_quotes():
    file = "/tmp/dir (a; b) é/my tëst; (x).py"
    text = (
        f'process 7:"python {file}";thread (9): sleepy;(1) "q";Thread.run (/p/threading.py:982);sleeper ({file}:10) 3'
    )
    (parsed,) = parse_raw(text)
    assert parsed.thread == 'sleepy;(1) "q"'
    assert parsed.frames == (
        Frame("Thread.run", "/p/threading.py", 982),
        Frame("sleeper", file, 10),
    )


def test_a_command_line_may_hold_newlines_and_look_like_a_header():
    text = (
        'process 7:"python -c import time\nwhile 1: pass\n# "x";thread (3);f (a.py:1) 4\n'
        '";thread (7);<module> (<string>:3) 99\n'
        'process 7:"python x.py";thread (7): MainThread;g (/x.py:1) 1\n'
    )
    assert [(s.frames[-1].function, s.count) for s in parse_raw(text)] == [
        ("<module>", 99),
        ("g", 1),
    ]


def test_the_main_thread_is_told_by_id_by_name_or_by_being_alone():
    one = 'process 7:"p";thread (0x7F): MainThread;f (/a.py:1) 1\n'
    two = 'process 7:"p";thread (8): Thread-1 (w);f (/a.py:1) 1\n'
    alone = 'process 9:"p";thread (0x7F);f (/a.py:1) 1\n'
    assert [(s.thread, s.main_thread) for s in parse_raw(one + two + alone)] == [
        ("MainThread", True),
        ("Thread-1 (w)", False),
        ("thread 0x7F", True),
    ]


def test_a_frame_without_a_line():
    text = 'process 7:"p";thread (7): MainThread;f (<generated>);g (/a.py:3) 1'
    assert parse_raw(text)[0].frames == (Frame("f", "<generated>", 0), Frame("g", "/a.py", 3))


@pytest.mark.parametrize(
    "line",
    [
        "",
        "nonsense",
        'process 7:"p"',
        'process 7:"p" 3',
        'process 7:"p";thread (7): MainThread 3',
        'process 7:"p";thread (7): MainThread;f (/a.py:1)',
        'process 7:"p";thread (7): MainThread;f (/a.py:1) many',
        'process 7:"p";thread (7): MainThread;f (/a.p',
    ],
)
def test_unreadable_lines_are_skipped(line: str):
    good = 'process 7:"p";thread (7): MainThread;f (/a.py:1) 5\n'
    assert [s.count for s in parse_raw(good + line + "\n" + good)] in ([5], [10])


@given(st.text())
def test_no_text_makes_it_raise(text: str):
    parse_raw(text)
    parse_raw('process 7:"p";thread (7): MainThread;' + text + " 3")


def test_a_stack_that_was_read_while_it_changed_is_left_out():
    whole = 'process 7:"p";thread (7): MainThread;f (/a.py:3) 3\n'
    torn = 'process 7:"p";thread (7): MainThread;f (/a.py:3);g (/b\0.py:1) 2\n'
    assert parse_raw(whole + torn) == parse_raw(whole) != []


words = st.text(st.characters(exclude_characters=";\n():", exclude_categories=("C",)), min_size=1)
frames = st.builds(
    Frame,
    function=words.map(lambda name: name.strip() or "f"),
    file=st.text(st.characters(exclude_characters="\n)", exclude_categories=("C",))).map(lambda path: "/" + path),
    line=st.integers(1, 10**6),
)
samples = st.builds(
    StackSample,
    pid=st.integers(1, 2**22),
    thread=words.map(lambda name: name.strip() or "t"),
    frames=st.lists(frames, min_size=1, max_size=6).map(tuple),
    count=st.integers(1, 10**6),
    main_thread=st.booleans(),
)


def as_raw(stacks: list[StackSample]) -> str:
    """The stacks as py-spy writes them; the watched process is number 1."""
    lines = []
    for stack in stacks:
        chain = "".join(f'process {pid}:"python a.py";' for pid in dict.fromkeys((1, stack.pid)))
        shown = ";".join(f"{f.function} ({f.file}:{f.line})" for f in stack.frames)
        lines.append(f"{chain}thread ({stack.tid}): {stack.thread};{shown} {stack.count}\n")
    return "".join(lines)


@given(st.lists(samples))
def test_round_trip(stacks: list[StackSample]):
    stacks = [replace(s, main_thread=s.main_thread or s.thread == "MainThread") for s in stacks]
    stacks = [replace(s, tid=s.pid if s.main_thread else s.pid + 1) for s in stacks]
    # With its main thread shown, a process has no thread that is taken for it.
    mains = [sample(TRAIN, pid=pid, tid=pid) for pid in sorted({s.pid for s in stacks})]
    assert parse_raw(as_raw(mains + stacks)) == merge(mains + stacks)


@given(st.lists(samples))
def test_merge_keeps_every_count(stacks: list[StackSample]):
    merged = merge(stacks)
    assert sum(s.count for s in merged) == sum(s.count for s in stacks)
    assert merge(merged) == merged


def test_merge_sums_equal_stacks_only():
    assert merge([sample(TRAIN, n=2), sample(TRAIN, n=3), sample(TRAIN, pid=8)]) == [
        sample(TRAIN, n=5),
        sample(TRAIN, pid=8),
    ]


def test_library_threads_are_dropped_and_user_threads_kept():
    feeder = sample(THREAD, Frame("Queue._feed", "/py/lib/python3.11/multiprocessing/queues.py", 231),
                    thread="QueueFeederThread", main=False)  # fmt: skip
    prefetch = sample(THREAD, Frame("fill", "/home/me/data.py", 3), thread="prefetch", main=False)
    assert relevant([feeder, prefetch, sample(TRAIN)]) == [prefetch, sample(TRAIN)]


def test_frames_inherited_over_a_fork_are_cut():
    fetch = Frame("Photos.__getitem__", "/home/me/train.py", 7)
    assert relevant([sample(TRAIN, BOOTSTRAP, fetch, pid=9)]) == [sample(BOOTSTRAP, fetch, pid=9)]


def test_multiprocessing_helpers_are_dropped():
    tracker = Frame("main", "/py/lib/python3.11/multiprocessing/resource_tracker.py", 227)
    assert relevant([sample(Frame("<module>", "<string>", 1), tracker)]) == []


def test_the_deepest_user_frame():
    step = Frame("step", "/home/me/train.py", 30)
    linear = Frame("Linear.forward", "/v/site-packages/torch/nn/modules/linear.py", 134)
    assert program_leaf((TRAIN, step, linear)) == step
    assert program_leaf((linear,)) is None


def test_the_thread_that_trains_is_the_main_one_of_its_process():
    idle, trains, other = (sample(TRAIN, tid=tid, main=tid == 7, thread=f"t{tid}") for tid in (7, 8, 9))
    worker = sample(TRAIN, pid=20, tid=20)
    seen = Observation(0.0, samples=[idle, trains, other, worker], windows=[StackWindow(1.0, [idle, trains])])
    moved = with_main_threads(seen, {7: {8}})
    assert [(one.tid, one.main_thread) for one in moved.samples] == [(7, False), (8, True), (9, False), (20, True)]
    assert [one.main_thread for one in moved.windows[0].samples] == [False, True]
    assert with_main_threads(seen, {}) is seen


@given(total=st.integers(0, 10_000), weights=st.lists(st.floats(0, 1e6), min_size=1, max_size=40))
def test_samples_are_divided_in_whole_ones_that_sum_up(total, weights):
    whole = sum(weights)
    shares = [weight / whole for weight in weights] if whole else [1 / len(weights)] * len(weights)
    parts = divided(total, shares)
    assert sum(parts) == total
    assert all(abs(part - total * share) < 1 + 1e-6 * total for part, share in zip(parts, shares))
