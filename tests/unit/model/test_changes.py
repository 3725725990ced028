import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pipelines import DECODE, pipeline

from unstall.benchmark import thresholds
from unstall.model.changes import ChangeError, Changes, apply, parse


@pytest.mark.parametrize(
    "text, name, factor",
    [
        ("jitter=0.5x", "jitter", 0.5),
        ("jitter = 2×", "jitter", 2.0),
        ("Photos.decode=-20%", "Photos.decode", 0.8),
        ("forward=+50 %", "forward", 1.5),
        ("callbacks=0", "callback", 0.0),
        ("loader=free", "data", 0.0),
        ("collate=.25x", "collate", 0.25),
    ],
)
def test_reads_factors(text, name, factor):
    assert parse([text]).scales == {name: pytest.approx(factor)}


def test_reads_async_and_settings():
    changes = parse(["callbacks=async", "forward=1x"], workers=8, threads=1)
    assert changes.aside == {"callback"} and changes.workers == 8 and changes.threads == 1
    assert changes.describe() == "workers 8, threads 1, callback async, forward 1x"


@pytest.mark.parametrize("text", ["", "=", "a", "a=", "=0.5x", "a=quick", "a=-0.5x", "a=0.5", "a=-120%"])
def test_refuses_what_is_no_change(text):
    with pytest.raises(ChangeError, match="--set"):
        parse([text])


@given(st.text(max_size=30))
def test_never_fails_otherwise(text):
    with contextlib.suppress(ChangeError):
        parse([text])


def test_settings_reach_the_layout():
    changed = apply(pipeline(workers=2), Changes(workers=5, prefetch=7, in_order=False, cores=3))
    layout = changed.layout
    assert (layout.workers, layout.prefetch, layout.in_order, layout.cores) == (5, 7, False, 3)


def test_more_workers_take_longer_to_start_unless_they_persist():
    before = pipeline(workers=2, epoch=10, epoch_open_s=0.1)
    assert apply(before, Changes(workers=4)).layout.epoch_open_s == pytest.approx(0.2)
    assert apply(before, Changes(persistent=True)).layout.epoch_open_s == 0


@pytest.mark.parametrize("changes", [Changes(workers=-1), Changes(prefetch=0), Changes(threads=0), Changes(cores=0)])
def test_settings_have_a_least_value(changes):
    with pytest.raises(ChangeError, match="at least"):
        apply(pipeline(), changes)


def test_a_loop_without_loader_has_no_workers_to_change():
    with pytest.raises(ChangeError, match="no DataLoader"):
        apply(pipeline(has_loader=False, workers=0), Changes(workers=2))


def test_a_phase_by_name():
    changed = apply(pipeline(), Changes(scales={"forward": 0.5}))
    assert changed.phase_s("forward") == pytest.approx(0.002) and changed.phase_s("backward") == pytest.approx(0.006)


def test_a_function_by_its_share_of_the_samples():
    before = pipeline(service=0.02)
    assert apply(before, Changes(scales={"Photos.decode": 0.5})).service_s == pytest.approx(0.02 * 0.7)
    assert apply(before, Changes(scales={"photos.Photos.decode": 0.0})).service_s == pytest.approx(0.02 * 0.4)
    assert apply(before, Changes(scales={"__getitem__": 0.5})).service_s == pytest.approx(0.01)


def test_functions_inside_each_other_are_not_counted_twice():
    changed = apply(pipeline(service=0.02), Changes(scales={"decode": 0.5, "__getitem__": 0.5}))
    assert changed.service_s == pytest.approx(0.02 * (0.6 * 0.25 + 0.4 * 0.5))


def test_a_function_of_the_main_thread():
    changed = apply(pipeline(), Changes(scales={"log": 0.0}))
    warm = ((0.010 + 0.0002) / (0.010 + 0.002)) ** thresholds.WARMS
    assert changed.phase_s("callback") == pytest.approx(0.0002 * warm) and changed.service_s == pytest.approx(0.02)


def test_waiting_and_collate():
    before = pipeline(service=0.01, wait=0.03, collate_share=0.25)
    assert apply(before, Changes(scales={"io": 0.0})).service_s == pytest.approx(0.01)
    assert apply(before, Changes(scales={"collate": 0.0})).service_s == pytest.approx(0.03)


def test_an_unknown_name_is_told_what_there_is():
    with pytest.raises(
        ChangeError, match=r"no sampled function and no phase is called nothing.*forward.*Photos\.decode"
    ):
        apply(pipeline(), Changes(scales={"nothing": 0.5}))


def test_a_name_that_may_be_several_is_refused():
    before = pipeline()
    stacks = {**before.function_shares.stacks, "other": ((frozenset({("video", "Clips", "decode")}), 5),)}
    with pytest.raises(ChangeError, match="write more of the name"):
        apply(pipeline(function_shares=type(before.function_shares)(stacks)), Changes(scales={"decode": 0.5}))


def test_what_the_next_step_needs_cannot_wait():
    with pytest.raises(ChangeError, match="the next step needs"):
        apply(pipeline(), Changes(aside=frozenset({"backward"})))
    with pytest.raises(ChangeError, match="only a phase"):
        apply(pipeline(), Changes(aside=frozenset({"Photos.decode"})))


def test_threads_follow_amdahl():
    """Two threads that keep 1.6 cores busy: of one thread's work, 1/4 is serial."""
    two = pipeline(threads=2, width=1.6, cores=8)
    one = apply(two, Changes(threads=1))
    assert one.phase_s("forward") == pytest.approx(0.004 * 1.6)
    assert one.layout.width == pytest.approx(1.0)
    again = apply(one, Changes(threads=1))
    assert again.phase_s("forward") == pytest.approx(one.phase_s("forward"))


def test_no_more_threads_than_cores():
    two = pipeline(threads=1, cores=2.0)
    assert apply(two, Changes(threads=16)).phase_s("forward") == pytest.approx(
        apply(two, Changes(threads=2)).phase_s("forward")
    )


def test_keys_are_dotted_names():
    assert pipeline().function_shares.find("Photos.decode") == {DECODE}
    assert pipeline().function_shares.find("otos.decode") == set()
