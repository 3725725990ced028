"""``unstall attach`` on programs that run already, in real processes."""

import json
import os
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.slow

SLOW_LOADER = """
    import time
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset


    class Photos(Dataset):
        def __len__(self):
            return 1_000_000

        def __getitem__(self, index):
            time.sleep(0.05)
            return torch.randn(8)


    if __name__ == "__main__":
        model = nn.Linear(8, 1)
        loader = iter(DataLoader(Photos(), batch_size=4))
        next(loader)
        open("ready", "w").close()
        for batch in loader:
            model(batch).sum().backward()
"""

HANGS = """
    import os
    import time
    import torch
    import torch.distributed as dist


    def forgets_to_join():
        open("ready", "w").close()
        time.sleep(600)


    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(4))
    if dist.get_rank() == 1:
        forgets_to_join()
    dist.all_reduce(torch.ones(4))
"""


def attached(workspace, pid, *options):
    command = [sys.executable, "-m", "unstall", "attach", "--json", "-", *options, str(pid)]
    return subprocess.run(command, capture_output=True, text=True, cwd=workspace.folder, timeout=120, check=False)


def started(workspace, *command):
    """A program that has come to what it is looked at for."""
    running = workspace.start(command)
    deadline = time.monotonic() + 120
    while not (workspace.folder / "ready").exists():
        assert running.process.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)
    return running


def test_a_slow_loader_is_named_from_outside(workspace):
    workspace.write("train.py", SLOW_LOADER)
    running = started(workspace, sys.executable, "train.py")
    result = attached(workspace, running.process.pid)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert (report["pattern"], report["culprit"]["function"]) == ("input-bound", "Photos.__getitem__")
    assert running.process.poll() is None  # it goes on


@pytest.mark.skipif(not hasattr(sys, "remote_exec"), reason="Python 3.14 and later run a script in another process")
def test_a_slow_loader_is_recorded_from_inside(workspace):
    workspace.write("train.py", SLOW_LOADER)
    running = started(workspace, sys.executable, "train.py")
    for _ in range(2):  # it may be asked again
        result = attached(workspace, running.process.pid, "--record", "--duration", "8s")
        assert result.returncode == 0, result.stderr
        report = json.loads(result.stdout)
        verdict = report["verdict"]
        assert (verdict["pattern"], verdict["culprit"]["function"]) == ("input-bound", "Photos.__getitem__")
        assert (report["run"]["attached"], report["run"]["exit_code"]) == (True, None)
        assert report["run"]["steps"] > 10
        assert verdict["ceiling"]["value"] > 2
        assert running.process.poll() is None  # it goes on
    running.process.terminate()
    assert running.process.communicate() in [("", ""), (None, None), (b"", b"")]


@pytest.mark.skipif(hasattr(sys, "remote_exec"), reason="this Python can run a script in another process")
def test_a_python_that_cannot_be_recorded_is_one_line(workspace):
    running = workspace.start([sys.executable, "-c", "import time; time.sleep(100)"])
    result = attached(workspace, running.process.pid, "--record")
    said = f"unstall: process {running.process.pid} has a Python before 3.14: look at it from outside, without --record"
    assert (result.returncode, result.stdout, result.stderr.strip()) == (2, "", said)


def test_a_page_is_made_of_a_recording_alone(workspace):
    result = subprocess.run(
        [sys.executable, "-m", "unstall", "attach", "--html", "page.html", "1"],
        capture_output=True, text=True, cwd=workspace.folder, timeout=60, check=False,
    )  # fmt: skip
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "--html is for --record" in result.stderr


def test_where_the_ranks_of_a_hung_program_stand(workspace):
    workspace.write("train.py", HANGS)
    running = started(
        workspace, sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py"
    )
    result = attached(workspace, running.process.pid)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["pattern"] == "hung"
    assert (report["culprit"]["function"], report["culprit"]["where"]) == ("forgets_to_join", "rank 1")
    collectives = {process["role"]: process["collective"] for process in report["processes"]}
    assert collectives["rank 0"] == "all_reduce"


def test_a_process_that_is_not_there_is_one_line(workspace):
    result = attached(workspace, 2**22 - 1)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.strip() == f"unstall: there is no process {2**22 - 1}"


def test_a_process_without_python_is_one_line(workspace):
    running = workspace.start(["sleep", "100"])
    result = attached(workspace, running.process.pid, "--duration", "10s")
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can drop its own rights")
def test_without_leave_to_read_it_says_so_in_a_line(workspace):
    running = workspace.start([sys.executable, "-c", "import time; time.sleep(100)"])
    words = ["setpriv", "--reuid=65534", "--clear-groups", sys.executable, "-m", "unstall", "attach"]
    environment = os.environ | {"XDG_STATE_HOME": str(workspace.beside)}
    command = [*words, str(running.process.pid)]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    if "Permission denied" in result.stderr or result.returncode == 126:
        pytest.skip("another user cannot start Python here")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "another user" in result.stderr
