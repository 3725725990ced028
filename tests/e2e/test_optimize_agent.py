"""`unstall optimize --agent` with a scripted agent, whose changes are good, bad and hacked: only the good ones stay."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from harness import marked

from unstall.sandbox import SandboxError, open_sandbox

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1000)]  # four minutes

TRAIN = """
    import torch
    from torch import nn

    import metrics

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(100_000):
        x = torch.randn(16, 8)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        metrics.record(loss.item())
"""
METRICS = """
    import time

    values = []


    def record(value):
        values.append(value)
        time.sleep(0.005)  # a slow line
"""
AGENT = """
    import os
    import pathlib
    import re

    brief = pathlib.Path(os.environ["UNSTALL_BRIEF"]).read_text()
    pathlib.Path("notes.txt").write_text(brief)  # in the copy, and gone with it
    (pathlib.Path.home() / "trace-of-the-agent").touch()
    train, metrics = pathlib.Path("train.py"), pathlib.Path("metrics.py")
    quick = metrics.read_text().replace("time.sleep(0.005)", "pass")
    turn = len(re.findall("^- agent: change", brief, re.MULTILINE))
    if turn == 0:  # less work, once nobody looks any more
        metrics.write_text(quick)
        train.write_text(train.read_text().replace("randn(16, 8)", "randn(16 if step < 60 else 4, 8)"))
    elif turn == 1:  # other results
        metrics.write_text(quick)
        train.write_text(train.read_text().replace("0.05", "0.04"))
    elif turn == 2:  # in two files, one of them new
        pathlib.Path("line.py").write_text("def send(value):\\n    return value\\n")
        metrics.write_text(quick.replace("import time", "import line").replace("pass ", "line.send(value) "))
"""


def can_overlay(tmp_path):
    try:
        with open_sandbox(tmp_path, [tmp_path]) as sandbox:
            return sandbox.force == "overlay"
    except SandboxError:
        return False


def test_only_the_good_changes_stay(workspace, tmp_path):
    if not can_overlay(tmp_path):
        pytest.skip("an overlay is not possible here")
    workspace.write("train.py", TRAIN)
    workspace.write("metrics.py", METRICS)
    agent = workspace.beside / "agent.py"
    workspace.write("agent.py", AGENT).rename(agent)
    home = workspace.beside / "home"
    home.mkdir()
    before = {path: path.read_bytes() for path in workspace.folder.iterdir()}
    running = workspace.start(
        [
            sys.executable, "-m", "unstall", "optimize", "--agent", f"{sys.executable} {agent}", "--budget", "30m", "--worth", "90%",
            "--json", workspace.beside / "report.json", "--patch", workspace.beside / "fast.patch", "train.py",
        ],
        env={"HOME": os.fspath(home)},
    )  # fmt: skip
    running.process.wait(900)
    done = running.result()
    assert done.status == 0, done.err
    assert not marked(running.mark)
    assert {path: path.read_bytes() for path in workspace.folder.iterdir()} == before
    assert not (home / "trace-of-the-agent").exists()

    report = json.loads((workspace.beside / "report.json").read_text())
    tried = [remedy for remedy in report["remedies"] if remedy["name"].startswith("agent: ")]
    assert [remedy["name"].partition(": ")[2] for remedy in tried] == [
        "change 1: metrics.py, train.py", "change 2: metrics.py, train.py", "change 3: line.py, metrics.py",
    ], done.err  # fmt: skip
    assert [remedy["status"] for remedy in tried] == ["not_equivalent", "not_equivalent", "kept"], done.err
    assert tried[2]["sameness"] == "exact" and report["total_speedup"] > 1

    subprocess.run(["git", "init", "-q", str(workspace.folder)], check=True)
    subprocess.run(["git", "-C", workspace.folder, "apply", workspace.beside / "fast.patch"], check=True)
    assert (workspace.folder / "line.py").read_text() == "def send(value):\n    return value\n"
    assert "line.send(value)" in (workspace.folder / "metrics.py").read_text()
