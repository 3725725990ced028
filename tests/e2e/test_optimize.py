"""`unstall optimize` as a person types it: a patch that git applies, whose program computes the same and is faster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import jsonschema
import pytest

from unstall.report.schema import schema

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

PROGRAM = """
    import random
    import time

    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset


    class Readings(Dataset):
        \"\"\"Sensor readings behind a slow line.\"\"\"

        def __init__(self, count=64):
            self.count = count

        def __len__(self):
            return self.count

        def fetch(self, index):
            time.sleep(0.02)  # the line
            return [float((index * k) % 7) for k in range(8)]

        def __getitem__(self, index):
            values = self.fetch(index)
            noise = random.random() * 0.1
            return torch.tensor(values) + noise, index % 2


    def main():
        torch.manual_seed(0)
        loader = DataLoader(Readings(), batch_size=4, shuffle=True)  # the loader
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for epoch in range(400):
            for x, y in loader:
                loss = nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            with open("log.txt", "a") as log:
                log.write(f"{epoch} {loss.item()}\\n")


    if __name__ == "__main__":
        main()
"""


def unstall(folder, *words, **options):
    command = [sys.executable, "-m", "unstall", "optimize", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=380, **options)


def can_overlay(tmp_path):
    from unstall.sandbox import SandboxError, open_sandbox

    try:
        with open_sandbox(tmp_path, [tmp_path]):
            return True
    except SandboxError:
        return False


@pytest.mark.serial
def test_from_a_slow_script_to_a_patch(tmp_path):
    if not can_overlay(tmp_path):
        pytest.skip("no overlay can be had here")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(PROGRAM).lstrip())
    before = script.read_bytes()
    done = unstall(
        tmp_path, "--budget", "160s", "--worth", "40%", "--patch", "fast.patch", "--json", "report.json", "train.py"
    )
    assert done.returncode == 0, done.stderr
    assert script.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == [".git", "fast.patch", "report.json", "train.py"], done.stderr
    history = [sys.executable, "-m", "unstall", "history", "--json", "-"]
    (entry,) = json.loads(subprocess.run(history, cwd=tmp_path, check=True, capture_output=True).stdout)
    assert entry["kind"] == "optimize" and entry["speedup"] > 1.2

    report = json.loads((tmp_path / "report.json").read_text())
    jsonschema.validate(report, schema(), jsonschema.Draft202012Validator)
    kept = [remedy for remedy in report["remedies"] if remedy["kept"]]
    assert report["kind"] == "optimize" and kept, done.stderr
    assert all(remedy["equivalent"] and remedy["predicted_speedup"] > 1.05 for remedy in kept)
    assert report["total_speedup"] > 1.2 and report["patch"] == (tmp_path / "fast.patch").read_text()
    assert "faster" in done.stderr and "fast.patch" in done.stderr

    subprocess.run(["git", "-C", str(tmp_path), "apply", "fast.patch"], check=True)
    changed = script.read_text()
    assert "unstall" not in changed and "# the line" in changed and "# the loader" in changed
    compile(changed, "train.py", "exec")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to run"),
        (["absent.py"], "no such file: absent.py"),
        (["--budget", "soon", "x.py"], "no duration"),
        (["--worth", "5x", "x.py"], "no share"),
        (["--patch", "no/such/folder/f.patch", "train.py"], "cannot write"),
    ],
)
def test_bad_input_is_told_in_a_line(tmp_path, words, message):
    (tmp_path / "train.py").write_text("print(1)\n")
    done = unstall(tmp_path, *words)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr


def test_a_program_without_steps_has_nothing_to_optimize(tmp_path):
    if not can_overlay(tmp_path):
        pytest.skip("no overlay can be had here")
    (tmp_path / "train.py").write_text("print(1)\n")
    done = unstall(tmp_path, "train.py")
    assert done.returncode == 1 and "nothing to optimize" in done.stderr and "Traceback" not in done.stderr
