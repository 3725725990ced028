"""Set-up: which function holds the time before the first step."""

from __future__ import annotations

import pytest
from factory import Source, lib, measurement, stack

from unstall.diagnose.set_up import set_up_holder, startup
from unstall.records.observations import Frame, StackWindow
from unstall.records.report import Startup

PHASES = {"forward": 0.02, "backward": 0.04}
IMPORTING = Frame("_find_and_load", "<frozen importlib._bootstrap>", 1)


TEXT = """
    import torch  # import

    def samples(frames):
        return [cut(frame) for frame in frames]  # cut

    samples(frames)  # call
"""


def stacks_of(tmp_path, *, preparing=60, importing=20, **more):
    """Of a program that is seen so often at either."""
    code = Source(tmp_path / "train.py", TEXT)
    return [
        stack(code.at("<module>", "# import"), IMPORTING, lib("torch/__init__.py", "<module>"), count=importing),
        stack(code.at("<module>", "# call"), code.at("samples", "# cut"), count=preparing, **more),
    ]


def seen(tmp_path, *, pid=None, **counts):
    """The set-up that a report names."""
    stacks = stacks_of(tmp_path, **counts, **({"pid": pid} if pid is not None else {}))
    measured = measurement(PHASES, windows_before=[StackWindow(1.0, stacks)])
    return startup(measured, set_up_holder(measured)).set_up


def test_the_function_that_holds_the_set_up_is_named_with_its_share_of_all(tmp_path):
    line = seen(tmp_path)
    assert (line.function, line.share) == ("samples", 0.75)


def test_a_set_up_that_is_mostly_imports_names_nobody(tmp_path):
    assert seen(tmp_path, preparing=20, importing=60) is None


def test_few_stacks_and_those_of_other_processes_say_nothing(tmp_path):
    assert seen(tmp_path, preparing=9, importing=3) is None
    assert seen(tmp_path, pid=7) is None


def test_a_window_stands_for_the_time_around_it_however_far_apart_they_are(tmp_path):
    importing = StackWindow(12.0, stacks_of(tmp_path, preparing=0, importing=100))
    preparing = [StackWindow(when, stacks_of(tmp_path, preparing=90, importing=10)) for when in (14.0, 18.0)]
    before = Startup(
        before_first_batch_s=20.0, worker_start_s=0.0, warmup_s=0.0, epoch_gaps_s=0.0, after_last_step_s=0.0
    )
    windows = [preparing[1], importing, preparing[0]]
    holder = set_up_holder(measurement(PHASES, windows_before=windows, startup=before, began=5.0))
    assert holder.culprit.function == "samples" and holder.seconds == pytest.approx(0.9 * (25.0 - 13.0))
