"""What a line of memory costs a step after it was last touched, as the C recorder looks at it."""

import threading
import time

import pytest
from recorders import Recorder, load, silence

from unstall.benchmark.reader import read_process
from unstall.records.vocabulary import Tick


@pytest.fixture
def recorder(tmp_path):
    api = load("native")
    silence(api)
    yield Recorder(api, tmp_path).open()
    silence(api)


def steps(recorder, number, seconds=0.0022, kind=Tick.OPTIMIZER):
    for _ in range(number):
        recorder.api.tick(int(kind), 1, None)
        time.sleep(seconds)


def test_steps_in_a_row_are_looked_at_once_the_caches_have_learned(recorder, tmp_path):
    steps(recorder, 1)  # nothing is before the first
    steps(recorder, 8)
    assert recorder.header()["refetches"] == 0
    assert read_process(tmp_path, 1).refetch_s is None
    steps(recorder, 4)
    header = recorder.header()
    assert header["refetches"] == 4
    assert (header["refetch_ns"][:4] > 0).all() and not header["refetch_ns"][4:].any()
    assert 0 < read_process(tmp_path, 1).refetch_s < 1e-4


def test_most_steps_are_not_looked_at(recorder):
    steps(recorder, 1 + 128)
    assert recorder.header()["refetches"] == 16
    steps(recorder, 12)
    assert recorder.header()["refetches"] == 20


def test_short_steps_are_left_alone(recorder):
    steps(recorder, 300, seconds=0.0)
    assert recorder.header()["refetches"] == 0


def test_a_program_without_an_optimizer_is_looked_at_by_its_models_calls(recorder):
    steps(recorder, 12, kind=Tick.FORWARD)
    assert recorder.header()["refetches"] == 3
    steps(recorder, 1)
    seen = recorder.header()["refetches"]
    steps(recorder, 12, kind=Tick.FORWARD)
    assert recorder.header()["refetches"] == seen


def test_other_threads_are_not_looked_at(recorder):
    thread = threading.Thread(target=steps, args=(recorder, 12))
    thread.start()
    thread.join()
    assert recorder.header()["refetches"] == 0
