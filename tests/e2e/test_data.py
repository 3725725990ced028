"""`unstall data`: the program's own data pipeline, measured without its model."""

import json
import signal
import sys
import time

import pytest

PROGRAM = '''
"""A training loop over the dataset that is asked for; its model is never reached by `unstall data`."""

import signal
import sys
import time
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, value):
        for transform in self.transforms:
            value = transform(value)
        return value


class Blur:
    def __call__(self, value):
        return [sum(value[i : i + 5]) for i in range(len(value) - 5)]


class ToTensor:
    def __call__(self, value):
        return torch.tensor(value, dtype=torch.float32)


class Signals(Dataset):
    def __init__(self, items=200):
        self.items = items
        self.transform = Compose([Blur(), ToTensor()])

    def __len__(self):
        return self.items

    def __getitem__(self, index):
        return self.transform(self.read(index))

    def read(self, index):
        time.sleep(0.004)
        return np.random.default_rng(index).random(300).tolist()


class Stream(IterableDataset):
    def __iter__(self):
        for index in range(500):
            yield self.parse(str(index))

    def parse(self, text):
        return torch.tensor([float(digit) for digit in text.zfill(200)])


def local(workers):
    class Here(Signals):
        pass

    return DataLoader(Here(), batch_size=8, num_workers=workers, multiprocessing_context="spawn")


def main(kind):
    print("program output")
    Path("log.txt").write_text("overwritten")
    if kind == "raises":
        raise ValueError("no such data set")
    model = torch.nn.Linear(295, 2)
    loaders = {
        "signals": lambda: DataLoader(Signals(), batch_size=8, num_workers=1),
        "stream": lambda: DataLoader(Stream(), batch_size=8),
        "empty": lambda: DataLoader(Signals(0), batch_size=8),
        "local": lambda: local(1),
        "generator": lambda: (torch.randn(8, 295) for _ in range(100_000)),
        "nothing": lambda: (),
    }
    for inputs in loaders[kind]():
        model(inputs).sum().backward()
    print("the end")


if __name__ == "__main__":
    main(sys.argv[1])
'''


@pytest.fixture
def data(workspace):
    """Runs ``unstall data`` on the program: its result, and what it wrote as JSON, if anything."""
    workspace.write("program.py", PROGRAM)
    workspace.write("log.txt", "mine")

    def run(kind, *options):
        path = workspace.beside / f"{kind}.json"
        command = [sys.executable, "-m", "unstall", "data", "--budget", "4", "--json", path, *options]
        result = workspace.start([*command, "program.py", kind]).result()
        return result, json.loads(path.read_bytes()) if path.exists() else None

    return run


def test_stages_and_workers(data, workspace):
    result, report = data("signals")
    assert result.status == 0, result.err
    stages = {stage["name"]: stage for stage in report["stages"]}
    assert {"one item", "Signals.read", "Compose.__call__", "Blur", "ToTensor", "collate"} <= set(stages)
    assert stages["Blur"]["known_by"] == "replayed" and stages["Blur"]["file"].endswith("program.py")
    assert stages["Signals.read"]["blocked_s"] > 0.003, "it sleeps"
    assert stages["Blur"]["blocked_s"] < 0.003, "it computes"
    rates = {rate["workers"]: rate for rate in report["rates"]}
    assert {0, 1, 2} < set(rates) and all(rate["items_per_s"] > 0 for rate in rates.values())
    assert rates[max(rates)]["items_per_s"] > 1.5 * rates[0]["items_per_s"], "what sleeps can be done in parallel"
    assert report["model_items_per_s"] is None and "not known" in report["conclusion"]
    assert "program output" not in result.out + result.err
    assert (workspace.folder / "log.txt").read_text().strip() == "mine"


def test_an_iterable_dataset(data):
    result, report = data("stream")
    assert result.status == 0, result.err
    assert "Stream.parse" in {stage["name"] for stage in report["stages"]}
    assert any("iterable" in note for note in report["notes"])
    assert "Stream.parse" in result.out


def test_a_dataset_that_cannot_be_spawned(data):
    result, report = data("local")
    assert result.status == 0, result.err
    errors = {rate["workers"]: rate.get("error", "") for rate in report["rates"]}
    assert not errors[0] and "at module level" in errors[1]
    assert "at module level" in result.out


@pytest.mark.parametrize(
    "kind, message",
    [
        ("empty", "the loader is empty"),
        ("nothing", "ended without iterating a DataLoader"),
        ("generator", "no DataLoader was iterated in the first"),
        ("raises", "no such data set"),
    ],
)
def test_says_why_there_is_nothing_to_measure(data, kind, message):
    result, report = data(kind)
    assert result.status == 2 and report is None
    assert message in result.err and "Traceback" not in result.err.splitlines()[0]


def test_a_program_that_is_not_there(workspace):
    result = workspace.start([sys.executable, "-m", "unstall", "data", "gone.py"]).result()
    assert result.status == 2 and "no such file: gone.py" in result.err


def test_interrupted_it_ends_and_says_so(workspace):
    workspace.write("program.py", PROGRAM.replace("time.sleep(0.004)", "time.sleep(0.3)"))
    command = [sys.executable, "-m", "unstall", "data", "--no-sandbox", "--budget", "60", "program.py", "signals"]
    running = workspace.start(command)
    deadline = time.monotonic() + 60
    while not _measuring(workspace.beside / "state") and time.monotonic() < deadline:
        time.sleep(0.05)
    running.signal(signal.SIGINT, group=True)
    result = running.result()
    assert result.status == 130 and result.err == "unstall: interrupted\n"


def _measuring(folder):
    """Whether the program has begun to iterate its loader, in the sandbox or not."""
    return any(b'"data"' in path.read_bytes() for path in folder.glob("unstall/*/runs/*/info-*.jsonl"))
