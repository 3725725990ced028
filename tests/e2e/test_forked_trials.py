"""Trials that are forks of a process that has imported torch, in the sandbox: the same as those of their own."""

from __future__ import annotations

import textwrap
from pathlib import Path

import psutil
import pytest

from unstall.optimize import program
from unstall.optimize.comparison import TimedWindow
from unstall.optimize.equivalence import Reference, observe
from unstall.optimize.source.files import Sources
from unstall.optimize.trial_runner import TrialRunner, Variant
from unstall.sandbox import SandboxError, open_sandbox

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PROGRAM = """
    import numpy as np
    import torch
    from pathlib import Path
    from torch import nn
    from torch.utils.data import DataLoader, Dataset

    class Noisy(Dataset):
        def __len__(self):
            return 640

        def __getitem__(self, index):
            return torch.from_numpy(np.random.randn(8).astype(np.float32)), torch.rand(1)

    if __name__ == "__main__":
        Path("written.txt").write_text("by the program")
        model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.2), nn.Linear(16, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for epoch in range(100):
            for x, y in DataLoader(Noisy(), batch_size=32, shuffle=True, num_workers=1):
                loss = nn.functional.mse_loss(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
"""


class Place:
    """A program in a folder, and the runner of its trials."""

    def __init__(self, folder, runs, box):
        self.runs, self.box = runs, box
        self.script = folder / "train.py"

    def runner(self, text):
        self.script.write_text(textwrap.dedent(text).lstrip())
        runner = TrialRunner(program.find(["train.py"]).line, self.runs, self.box)
        if not runner.may_fork:
            pytest.skip("no program is forked here: there is a GPU's driver")
        return runner


@pytest.fixture
def place(tmp_path, monkeypatch):
    folder = Path(tmp_path).resolve()
    monkeypatch.chdir(folder)
    runs = folder / "runs"
    runs.mkdir()
    try:
        with open_sandbox(folder, [runs]) as box:
            if box.force != "overlay":
                pytest.skip("no overlay can be had here")
            yield Place(folder, runs, box)
    except SandboxError as error:
        pytest.skip(str(error))


def same(a, b):
    return len(a) == len(b) > 20 and all(x.equals(y) for x, y in zip(a, b))


def test_a_fork_computes_what_the_program_does_and_leaves_the_same_behind(place):
    runner = place.runner(PROGRAM)
    ordinary = observe(runner, Variant(), "optimizer", 12)
    runner.use_forks()
    server = psutil.Process(runner.forks.process.pid)
    assert same(observe(runner, Variant(), "optimizer", 12), ordinary)
    changed = Sources({place.script: place.script.read_bytes().replace(b"lr=1e-3", b"lr=2e-3")})
    other = observe(runner, Variant(changed), "optimizer", 12)
    assert len(other) == len(ordinary) and not same(other, ordinary)
    run = runner.run(Variant(), TimedWindow("optimizer", 2, 5).plan(), timeout=60)
    assert run.json("clock.json")["stopped"] and run.status == 0
    assert runner.forks is not None, "a run was not forked"
    assert server.is_running()
    runner.stop_forking()
    assert not server.is_running()
    assert b"lr=1e-3" in place.script.read_bytes() and not place.script.with_name("written.txt").exists()


PREPARING = "import os\nos.environ['OMP_NUM_THREADS'] = '1'\n"
LOOKING = "started_by = len(open('/proc/self/cmdline').read())\n"


@pytest.mark.parametrize(("first", "rate"), [(PREPARING, "1e-3"), (LOOKING, "1e-6 * started_by")])
def test_a_program_to_which_a_fork_is_something_else_is_started_as_ever(place, first, rate):
    runner = place.runner(first + textwrap.dedent(PROGRAM).lstrip().replace("lr=1e-3", f"lr={rate}"))
    reference = Reference(lambda *given, **options: observe(runner, *given, **options), runner.stop_forking)
    runner.use_forks()
    reference.observe("optimizer")
    assert reference.is_reproducible
    assert runner.forks is None


@pytest.mark.long
def test_a_fork_that_does_not_end_is_ended_and_the_next_one_runs(place):
    runner = place.runner("import torch, time\nprint('it waits', flush=True)\ntime.sleep(600)\n")
    runner.use_forks()
    plan = TimedWindow("optimizer", 2, 5).plan()
    first = runner.run(Variant(), plan, timeout=15)
    assert (first.timed_out, first.output, first.status) == (True, "it waits\n", -15)
    place.script.write_text("import torch\nprint('it ends')\nraise SystemExit(3)\n")
    second = runner.run(Variant(), plan, timeout=60)
    assert (second.timed_out, second.output, second.status) == (False, "it ends\n", 3)
    runner.stop_forking()
