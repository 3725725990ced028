"""The account of a whole run, and what is observed of one, in a real process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

from unstall.benchmark.launcher import BOOTSTRAP
from unstall.optimize.equivalence import read

PROGRAM = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    def main():
        torch.manual_seed(0)
        data = TensorDataset(torch.randn(12, 4), torch.randint(0, 2, (12,)))
        model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
        optimizer = torch.optim.Adam(model.parameters())
        for x, y in DataLoader(data, batch_size=4):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            model(data.tensors[0])

    main()
"""


@pytest.mark.timeout(240)
def test_steps_calls_batches_and_the_state_at_the_end_are_written_down(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PROGRAM))
    folder = tmp_path / "run"
    folder.mkdir()
    plan = {
        "seed": {"seed": 7},
        "clock": {"kind": "optimizer", "warmup": 0, "steps": None, "seconds": None},
        "observe": {"whole": True},
        "account": {},
    }
    env = {
        **os.environ,
        "PYTHONPATH": str(BOOTSTRAP),
        "UNSTALL_RUN_DIR": str(folder),
        "UNSTALL_CHILD": "unstall.child.trial",
        "UNSTALL_PLAN": json.dumps(plan),
    }
    subprocess.run([sys.executable, str(script)], env=env, check=True, timeout=120)
    assert not list(folder.glob("*error*")) and not list(folder.glob("complaints*")), list(folder.iterdir())
    account = json.loads((folder / "account.json").read_text())
    assert account["steps"] == 3
    assert [call[:3] for call in account["calls"]] == [["train", 4, "float32"]] * 3 + [["eval", 12, "float32"]]
    assert [samples for samples, _ in account["batches"]] == [4, 4, 4]
    assert set(account["random"]) == {"python", "numpy", "torch"}
    observed = list(read(folder / "observed.bin"))
    assert {tensor.what.split(".")[0] for tensor in observed} == {"input", "output", "loss", "weights", "state"}
    assert any(tensor.what.startswith("state.0.0.exp_avg") for tensor in observed)
