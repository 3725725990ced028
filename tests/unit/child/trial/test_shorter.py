"""Epochs of fewer samples than the data, in a real process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

from unstall.benchmark.launcher import BOOTSTRAP

PROGRAM = """
    import torch
    from torch.utils.data import BatchSampler, DataLoader, RandomSampler, WeightedRandomSampler

    torch.manual_seed(0)
    data = torch.arange(8)
    loaders = [
        DataLoader(data, batch_size=4),
        DataLoader(data, batch_size=4, drop_last=True),
        DataLoader(data, batch_size=4, shuffle=True),
        DataLoader(data, sampler=BatchSampler(RandomSampler(data), 4, drop_last=False), batch_size=None),
        DataLoader(data, batch_size=4, sampler=WeightedRandomSampler([1.0] * 8, 8)),
        DataLoader([5]),
        DataLoader(data, batch_size=4, sampler=[0, 1, 2]),
    ]
    print([[len(loader), [len(batch) for batch in loader]] for loader in loaders])
"""


@pytest.mark.timeout(120)
def test_the_last_sample_of_each_epoch_is_left_out(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PROGRAM))
    env = {
        **os.environ,
        "PYTHONPATH": str(BOOTSTRAP),
        "UNSTALL_RUN_DIR": str(tmp_path),
        "UNSTALL_CHILD": "unstall.child.trial",
        "UNSTALL_PLAN": json.dumps({"shorter": {"samples": 1}, "account": {}}),
    }
    done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, check=True)
    assert not list(tmp_path.glob("complaints*"))
    assert json.loads(done.stdout) == [[2, [4, 3]], [1, [4]], [2, [4, 3]], [2, [4, 3]], [2, [4, 3]], [1, [1]], [1, [3]]]
    assert json.loads((tmp_path / "account.json").read_text())["shortened"] == 6
