"""`unstall optimize` as a person types it: a patch that git applies, whose program computes the same and is faster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import jsonschema
import pytest
from harness import can_overlay

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


@pytest.mark.serial
@pytest.mark.parametrize("until", ["--quick", pytest.param("--worth=40%", marks=pytest.mark.long)])
def test_from_a_slow_script_to_a_patch(tmp_path, until):
    if not can_overlay(tmp_path):
        pytest.skip("an overlay is not possible here")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(PROGRAM).lstrip())
    before = script.read_bytes()
    done = unstall(tmp_path, "--budget", "160s", until, "--patch", "fast.patch", "--json", "report.json", "train.py")
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
    assert all(remedy["sameness"] in ("exact", "close") and remedy["predicted_speedup"] > 1.05 for remedy in kept)
    assert report["total_speedup"] > 1.2 and report["patch"] == (tmp_path / "fast.patch").read_text()
    assert "faster" in done.stderr and "fast.patch" in done.stderr

    subprocess.run(["git", "-C", str(tmp_path), "apply", "fast.patch"], check=True)
    changed = script.read_text()
    assert "unstall" not in changed and "# the line" in changed and "# the loader" in changed
    compile(changed, "train.py", "exec")


IN_MEMORY = """
    import numpy as np
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset, random_split


    class Windows(Dataset):
        \"\"\"Windows of a signal, and what comes after each.\"\"\"

        def __init__(self, count=100_000, length=16, transform=None):
            self.signal = torch.from_numpy(np.random.default_rng(0).normal(size=(count, 4))).float()
            self.labels = np.arange(count) % 3
            self.length, self.transform = length, transform

        def __len__(self):
            return len(self.signal) - self.length

        def __getitem__(self, index):
            window = (self.signal[index : index + self.length] - 0.5) / 2
            if self.transform is not None:
                window = self.transform(window)
            return {"window": window, "label": self.labels[index + self.length]}


    def main():
        torch.manual_seed(0)
        train, held_out = random_split(Windows(), [0.9, 0.1])
        loader = DataLoader(train, batch_size=4096, shuffle=True)
        held_out_loader = DataLoader(held_out, batch_size=4096)
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for epoch in range(EPOCHS):
            for batch in loader:
                loss = nn.functional.cross_entropy(model(batch["window"]), batch["label"])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        with torch.no_grad():
            right = sum(int((model(batch["window"]).argmax(1) == batch["label"]).sum()) for batch in held_out_loader)
        print(right, [float(parameter.detach().sum()) for parameter in model.parameters()])


    if __name__ == "__main__":
        main()
"""


@pytest.mark.long
def test_a_quick_search_indexes_whole_batches_and_the_results_stay_to_the_bit(tmp_path):
    if not can_overlay(tmp_path):
        pytest.skip("no overlay can be had here")
    program = textwrap.dedent(IN_MEMORY).lstrip()
    (tmp_path / "train.py").write_text(program.replace("EPOCHS", "400"))
    done = unstall(tmp_path, "--quick", "--patch", "fast.patch", "--json", "report.json", "train.py")
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    (first, *others) = report["remedies"]
    assert first["name"].startswith("batch-index") and first["kept"] and first["equivalent"], done.stderr
    assert not any(other["kept"] for other in others)
    assert report["total_speedup"] == first["speedup"] and "the first change that pays is kept" in done.stderr

    subprocess.run(["git", "apply", "fast.patch"], cwd=tmp_path, check=True)
    (tmp_path / "fast.py").write_text((tmp_path / "train.py").read_text().replace("range(400)", "range(1)"))
    (tmp_path / "slow.py").write_text(program.replace("EPOCHS", "1"))
    printed = [
        subprocess.run([sys.executable, name], cwd=tmp_path, check=True, capture_output=True).stdout
        for name in ("slow.py", "fast.py")
    ]
    assert printed[0] == printed[1] and printed[0]


READ_AGAIN = """
    import json
    import pathlib

    import numpy as np
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset


    class Clips(Dataset):
        \"\"\"Features of clips; their labels stand in one annotation file.\"\"\"

        def __init__(self, annotations, count=2048):
            self.annotations, self.count = annotations, count
            self.features = np.random.default_rng(0).normal(size=(count, 16)).astype(np.float32)

        def __len__(self):
            return self.count

        def __getitem__(self, index):
            with open(self.annotations, encoding="utf-8") as file:
                annotations = json.load(file)
            clip = annotations["clips"][index]
            return torch.from_numpy(self.features[index]) * clip["gain"], clip["label"]


    def main():
        torch.manual_seed(0)
        annotations = pathlib.Path(__file__).with_name("clips.json")
        loader = DataLoader(Clips(annotations), batch_size=8, shuffle=True, num_workers=WORKERS)
        model = nn.Linear(16, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for epoch in range(EPOCHS):
            for x, y in loader:
                loss = nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        print([float(parameter.detach().sum()) for parameter in model.parameters()])


    if __name__ == "__main__":
        main()
"""


@pytest.mark.serial
@pytest.mark.long
@pytest.mark.parametrize(("workers", "package"), [(0, "clips"), (0, None), (2, None)])
def test_a_file_parsed_for_each_sample_is_parsed_once(tmp_path, workers, package):
    if not can_overlay(tmp_path):
        pytest.skip("no overlay can be had here")
    source = tmp_path / "train.py"
    if package is not None:
        source.write_text(f"from {package}.train import main\n\nmain()\n")
        source = tmp_path / "env" / "site-packages" / package / "train.py"
        source.parent.mkdir(parents=True)
        (source.parent / "__init__.py").touch()
    clips = [{"name": f"clip {number}", "gain": 0.5 + number % 5, "label": number % 4} for number in range(2048)]
    source.with_name("clips.json").write_text(json.dumps({"clips": clips}))
    program = textwrap.dedent(READ_AGAIN).lstrip().replace("WORKERS", str(workers)).replace("EPOCHS", "1_000")
    source.write_text(program)
    words = ["--quick", "--patch", "fast.patch", "--json", "report.json", "train.py"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "env" / "site-packages")}
    done = unstall(tmp_path, *(["--package", package] if package else []), *words, env=environment)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    (first, *others) = report["remedies"]
    assert first["name"].startswith("read-once") and first["kept"] and first["sameness"] == "exact", done.stderr
    assert not any(other["kept"] for other in others)
    assert source.read_text() == program
    assert any("--apply changes this copy" in note for note in report["run"]["notes"]) is bool(package)

    folder = source.parent.parent if package else tmp_path
    subprocess.run(["git", "apply", str(tmp_path / "fast.patch")], cwd=folder, check=True)
    changed = source.read_text()
    assert "_ReadOnce.opened(json.load, self.annotations" in changed
    for name, text in (("slow.py", program), ("fast.py", changed)):
        source.with_name(name).write_text(text.replace("1_000", "1"))
    printed = [
        subprocess.run([sys.executable, source.with_name(name)], check=True, capture_output=True).stdout
        for name in ("slow.py", "fast.py")
    ]
    assert printed[0] == printed[1] and printed[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to run"),
        (["absent.py"], "no such file: absent.py"),
        (["--budget", "soon", "x.py"], "is not a duration"),
        (["--worth", "5x", "x.py"], "is not a share"),
        (["--patch", "no/such/folder/f.patch", "train.py"], "cannot write"),
    ],
)
def test_bad_input_is_told_in_a_line(tmp_path, words, message):
    (tmp_path / "train.py").write_text("print(1)\n")
    done = unstall(tmp_path, *words)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr


def test_a_program_without_steps_has_nothing_to_optimize(tmp_path):
    if not can_overlay(tmp_path):
        pytest.skip("an overlay is not possible here")
    (tmp_path / "train.py").write_text("print(1)\n")
    done = unstall(tmp_path, "train.py")
    assert done.returncode == 1 and "nothing to optimize" in done.stderr and "Traceback" not in done.stderr
