"""What goes wrong on purpose, in a real process."""

from __future__ import annotations

import pytest

from .test_account import run_under

PROGRAM = """
    import os
    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    for step in range(4):
        for mode in (True, False):
            model.train(mode)
            try:
                model(torch.ones(1, 4))
            except RuntimeError:
                print("failed", step, "train" if mode else "eval")
    try:
        torch.save(torch.zeros(4096), "model.pt")
    except (OSError, RuntimeError):
        print("not saved")
    file = os.open("raw", os.O_WRONLY | os.O_CREAT)
    try:
        print("wrote", os.write(file, bytes(4096)))
    except OSError:
        print("not written")
"""


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("fault", "printed"),
    [
        ({"kind": "error", "mode": "train", "call": 2}, ["failed 1 train", "wrote 4096"]),
        ({"kind": "error", "mode": "eval", "call": 3}, ["failed 2 eval", "wrote 4096"]),
        ({"kind": "full", "mode": "train", "call": 1}, ["not saved", "wrote 4096"]),
        ({"kind": "cut", "bytes": 1024}, ["not saved", "wrote 1024"]),
    ],
)
def test_each_kind_of_fault(tmp_path, monkeypatch, fault, printed):
    monkeypatch.chdir(tmp_path)
    done, _ = run_under({"fault": fault}, PROGRAM, tmp_path)
    assert done.stdout.splitlines() == printed, done.stderr


@pytest.mark.timeout(120)
def test_the_program_is_started_in_another_folder_and_its_helpers_where_it_is_then(tmp_path):
    program = """
        import os, subprocess, sys
        print(os.getcwd(), flush=True)
        os.chdir("/")
        subprocess.run([sys.executable, "-c", "import os; print(os.getcwd())"])
    """
    done, _ = run_under({"elsewhere": {"folder": str(tmp_path / "other")}}, program, tmp_path)
    assert done.stdout.split() == [str(tmp_path / "other"), "/"], done.stderr
