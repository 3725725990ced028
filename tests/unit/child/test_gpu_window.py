"""The GPU window with a stand-in for torch: when it starts, what it counts, that it never outlives its steps."""

from __future__ import annotations

import os
import sys
import types

import pytest

from unstall.child import gpu_window, seams
from unstall.child.gpu_window import EVENT_STEPS, WindowRecorder


class Child:
    def __init__(self, directory, steps=3):
        self.directory = str(directory)
        self.options = {"settings": {"gpu_window": steps}}
        self.on_control = None
        self.told = []

    def emit_fact(self, kind, **facts):
        self.told.append((kind, facts))

    def facts(self, kind):
        return [facts for one, facts in self.told if one == kind]


class Event:
    made = 0

    def __init__(self, enable_timing):
        assert enable_timing
        Event.made += 1
        self.at = Event.made

    def record(self):
        pass

    def query(self):
        return True

    def elapsed_time(self, other):
        return 2.0 * (other.at - self.at)


class Profile:
    """As torch.profiler.profile: start, step, stop."""

    running = None
    exported = None

    def __init__(self, **options):
        self.options, self.steps = options, 0

    def start(self):
        assert Profile.running is None
        Profile.running = self

    def step(self):
        self.steps += 1

    def stop(self):
        assert Profile.running is self
        Profile.running = None

    def export_chrome_trace(self, path):
        Profile.exported = path


class Legacy:
    def __enter__(self):
        return self


@pytest.fixture
def torch(monkeypatch):
    Profile.running = Profile.exported = None
    Event.made = 0
    module = types.SimpleNamespace(
        cuda=types.SimpleNamespace(is_initialized=lambda: True, is_current_stream_capturing=lambda: False, Event=Event),
        version=types.SimpleNamespace(cuda="13.0"),
        autograd=types.SimpleNamespace(
            _profiler_enabled=lambda: False, profiler=types.SimpleNamespace(profile=type("profile", (Legacy,), {}))
        ),
        profiler=types.SimpleNamespace(
            profile=type("profile", (Profile,), {}),
            schedule=lambda **options: options,
            ProfilerActivity=types.SimpleNamespace(CPU="cpu", CUDA="cuda"),
        ),
    )
    monkeypatch.setitem(sys.modules, "torch", module)
    words = []
    seams.all_seams()  # imported with the recorder, before another stands in for it
    monkeypatch.setattr(gpu_window.recording, "native", types.SimpleNamespace(control=words.append))
    module.control_words = words
    return module


def _steps(window, count, seams=("~forward", "~backward", "~optimizer")):
    for _ in range(count):
        for seam in seams:
            window.on_seam(seam)


def test_it_profiles_its_steps_and_falls_silent(torch, tmp_path):
    child = Child(tmp_path)
    gpu_window.install(child)
    window = child.on_control.__self__
    _steps(window, EVENT_STEPS + 2)
    assert Profile.running is None
    _steps(window, 2)
    assert Profile.running is not None
    assert Profile.running.options["schedule"] == {"wait": 0, "warmup": 1, "active": 3, "repeat": 1}
    _steps(window, 8)
    assert Profile.running is None
    assert Profile.exported.startswith(str(tmp_path))
    assert [facts["what"] for facts in child.facts("window")] == ["gpu"]
    assert child.facts("gpu_steps")[0]["step_s"] == [0.002] * EVENT_STEPS
    assert torch.control_words[-1] == 0
    assert not child.facts("error")
    made = Event.made
    _steps(window, 3)
    assert Event.made == made


def test_without_an_optimizer_forwards_count(torch, tmp_path):
    window = WindowRecorder(Child(tmp_path), 2)
    _steps(window, 80, ("~forward",))
    assert Profile.exported is not None


def test_without_cuda_it_declines_at_once(torch, tmp_path):
    torch.cuda.is_initialized = lambda: False
    child = Child(tmp_path)
    _steps(WindowRecorder(child, 3), 5)
    assert torch.control_words[0] == 0
    assert not child.told


def test_a_program_that_profiles_itself_is_left_alone(torch, tmp_path):
    torch.autograd._profiler_enabled = lambda: True
    child = Child(tmp_path)
    _steps(WindowRecorder(child, 3), 40)
    assert Profile.exported is None
    assert "profiles itself" in child.facts("error")[0]["error"]


def test_another_profilers_recording_is_not_spoilt(torch, tmp_path, monkeypatch):
    monkeypatch.setenv("NSYS_PROFILING_SESSION_ID", "12")
    child = Child(tmp_path)
    _steps(WindowRecorder(child, 3), 40)
    assert Profile.exported is None
    assert "NSYS_PROFILING_SESSION_ID" in child.facts("error")[0]["error"]
    assert torch.control_words[-1] == 0


def test_nothing_begins_while_the_program_records_a_cuda_graph(torch, tmp_path):
    child = Child(tmp_path)
    window = WindowRecorder(child, 3)
    torch.cuda.is_current_stream_capturing = lambda: True
    _steps(window, 60)
    assert Event.made == 0 and Profile.running is None
    torch.cuda.is_current_stream_capturing = lambda: False
    _steps(window, 60)
    assert Profile.exported is not None
    assert not child.facts("error")


@pytest.mark.parametrize("how", ["new", "legacy"])
def test_a_profiler_that_the_program_starts_meanwhile_has_the_right_of_way(torch, tmp_path, how):
    child = Child(tmp_path, steps=100)
    window = WindowRecorder(child, 100)
    _steps(window, 20)
    assert Profile.running is not None
    if how == "new":
        theirs = torch.profiler.profile()
        theirs.start()
        assert Profile.running is theirs
        theirs.stop()
    else:
        torch.autograd.profiler.profile().__enter__()
        assert Profile.running is None
    assert Profile.exported is None
    assert "start" not in torch.profiler.profile.__dict__
    assert "__enter__" not in torch.autograd.profiler.profile.__dict__
    assert child.facts("window")


def test_an_error_ends_it_and_is_told(torch, tmp_path, monkeypatch):
    def fail(self):
        raise RuntimeError("CUPTI is in use")

    monkeypatch.setattr(Profile, "start", fail)
    child = Child(tmp_path)
    _steps(WindowRecorder(child, 3), 40)
    assert "CUPTI" in child.facts("error")[0]["error"]
    assert torch.control_words[-1] == 0


def test_it_can_be_turned_off(tmp_path):
    child = Child(tmp_path, steps=0)
    gpu_window.install(child)
    assert child.on_control is None


@pytest.mark.parametrize(
    ("cuda", "own", "while_it_runs"),
    [("13.0", None, "1"), ("12.6", None, "1"), ("12.4", None, None), (None, None, None), ("13.0", "0", "0")],
)
def test_the_profiler_lets_go_of_the_driver_where_that_is_safe(torch, tmp_path, monkeypatch, cuda, own, while_it_runs):
    monkeypatch.delenv("TEARDOWN_CUPTI", raising=False)
    if own is not None:
        monkeypatch.setenv("TEARDOWN_CUPTI", own)
    torch.version.cuda = cuda
    child = Child(tmp_path)
    gpu_window.install(child)
    window = child.on_control.__self__
    _steps(window, EVENT_STEPS + 4)
    assert Profile.running is not None and os.environ.get("TEARDOWN_CUPTI") == while_it_runs
    _steps(window, 8)
    assert Profile.running is None and os.environ.get("TEARDOWN_CUPTI") == own
