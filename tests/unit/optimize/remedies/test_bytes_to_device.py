"""Images sent as bytes: the changed program computes the same, and is only written where all that take them are known."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from unstall.optimize.batches import NotClear
from unstall.optimize.case import Call, Made, Unfit
from unstall.optimize.late_floats import find
from unstall.optimize.remedies import bytes_to_device, device_prefetch
from unstall.optimize.sources import SourceError, Sources
from unstall.records.observations import Frame, StackSample

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

gpu = pytest.mark.gpu
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

PROGRAM = '''"""Trains a little."""

import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, random_split

MEAN = torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1)


class Images(Dataset):
    def __init__(self, count):
        self.images = np.random.default_rng(1).integers(0, 256, (count, 8, 8, 3), dtype=np.uint8)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        x = torch.from_numpy(self.images[index]).permute(2, 0, 1)
        x = x.float() / 255  # to [0, 1]
        y = index % 2
        # centred
        x = (x - MEAN) / 0.25
        return x, y


def evaluate(model, loader):
    for x, y in loader:
        # not learned from
        print(torch.float32 == x.dtype, model(x).double().sum().item())


device = torch.device("cuda" if torch.cuda.is_available() and "gpu" in sys.argv else "cpu")
torch.manual_seed(0)
train, val = random_split(Images(40), [32, 8])
loader = DataLoader(train, batch_size=8, num_workers=int(sys.argv[1]), shuffle=True)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 2)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for step, (x, y) in enumerate(loader):
        x, y = x.to(device, non_blocking=True), y.to(device)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex())
evaluate(model.cpu(), DataLoader(val, batch_size=4))
print(len(train))
'''
LINE = 19
assert PROGRAM.splitlines()[LINE - 1].strip().startswith("def __getitem__")


def changed(path, text=None):
    """The changed text of a program."""
    path.write_bytes((text or PROGRAM).encode())
    sources = Sources()
    return bytes_to_device.with_late_floats(sources, path, find(sources.text(path), LINE)).bytes_of(path).decode()


def run(path, *words):
    done = subprocess.run([sys.executable, str(path), *words], capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, done.stderr


def test_only_what_must_change_does(tmp_path):
    text = changed(tmp_path / "train.py")
    before = set((tmp_path / "train.py").read_text().splitlines())
    definition = bytes_to_device.DEFINITION.replace(
        "{EXPRESSION}", "(batch.float() / 255 - torch.as_tensor(MEAN).to(batch.device, non_blocking=True)) / 0.25"
    )
    assert definition in text
    new = [line for line in text.replace(definition, "").splitlines() if line not in before]
    assert new == [
        "        x = _floats(x)",
        "        x, y = _floats(x.to(device, non_blocking=True)), y.to(device)",
    ]
    gone = [line for line in before if line not in text.splitlines()]
    assert sorted(gone) == [
        "        x = (x - MEAN) / 0.25",
        "        x = x.float() / 255  # to [0, 1]",
        "        x, y = x.to(device, non_blocking=True), y.to(device)",
    ]
    assert "    for x, y in loader:\n        x = _floats(x)\n        # not learned from\n" in text


def test_line_endings_and_tabs_stay(tmp_path):
    program = PROGRAM.replace("    ", "\t").replace("\n", "\r\n")
    text = changed(tmp_path / "train.py", program)
    assert "\tfor x, y in loader:\r\n\t\tx = _floats(x)\r\n\t\t# not" in text
    assert text.count("\n") == text.count("\r\n")


def test_the_losses_are_the_same_to_the_bit(tmp_path):
    after = changed(tmp_path / "train.py")
    wanted = run(tmp_path / "train.py", "2")
    (tmp_path / "train.py").write_text(after)
    assert run(tmp_path / "train.py", "2") == wanted
    assert wanted[0].count("0x") == 8 and wanted[0].count("True") == 2


@gpu
@needs_gpu
def test_on_a_gpu_the_losses_are_close(tmp_path):
    after = changed(tmp_path / "train.py")
    wanted, _ = run(tmp_path / "train.py", "2", "gpu")
    (tmp_path / "train.py").write_text(after)
    got, _ = run(tmp_path / "train.py", "2", "gpu")
    losses = [[float.fromhex(line.split()[1]) for line in text.splitlines() if "0x" in line] for text in (wanted, got)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_with_batches_copied_ahead(tmp_path):
    """Both remedies in one program, in either order."""
    path = tmp_path / "train.py"
    first = changed(path)
    wanted, _ = run(path, "1")
    results = []
    for text, over in ((path.read_text(), "first"), (first, "last")):
        path.write_text(text)
        lines = text.splitlines()
        header = 1 + next(n for n, line in enumerate(lines) if "enumerate(loader)" in line)
        loop = device_prefetch.loop_at(text, path, header + 1, {header})
        ahead = device_prefetch.with_ahead(Sources(), [loop]).bytes_of(path).decode()
        if over == "first":
            path.write_text(ahead)
            line = 1 + next(n for n, one in enumerate(ahead.splitlines()) if "def __getitem__" in one)
            ahead = bytes_to_device.with_late_floats(Sources(), path, find(ahead, line)).bytes_of(path).decode()
        assert "enumerate(_ahead(loader, device, (0, 1)))" in ahead and "_floats(x.to(device" in ahead
        path.write_text(ahead)
        results.append(run(path, "1")[0])
    assert results == [wanted, wanted]


@pytest.mark.parametrize(
    ("loop", "written"),
    [
        ("for x, y in loader:\n    use(x, y)\n", "for x, y in loader:\n    x = _floats(x)\n    use(x, y)\n"),
        ("for b in loader:\n    use(b)\n", "for b in loader:\n    b[0] = _floats(b[0])\n    use(b)\n"),
        (
            "for b in loader:\n    x, y = b[0].cuda(), b[1].cuda()\n",
            "for b in loader:\n    x, y = _floats(b[0].cuda()), b[1].cuda()\n",
        ),
        (
            "for b in loader:\n    x, y = [v.to(device) for v in b]\n    use(x)\n",
            "for b in loader:\n    x, y = [v.to(device) for v in b]\n    x = _floats(x)\n    use(x)\n",
        ),
        (
            "for b in loader:\n    b = [v.to(device) for v in b]  # over\n    use(b)",
            "for b in loader:\n    b = [v.to(device) for v in b]  # over\n    b[0] = _floats(b[0])\n    use(b)",
        ),
        (
            "for x, y in loader:  # all\n\n    if y:\n        x = x.to(device)\n",
            "for x, y in loader:  # all\n    x = _floats(x)\n\n    if y:\n        x = x.to(device)\n",
        ),
        (
            "for x, y in loader:\n    z = x.to(device)",
            "for x, y in loader:\n    z = _floats(x.to(device))",
        ),
    ],
)
def test_where_the_floats_are_made(tmp_path, loop, written):
    head = PROGRAM.partition("def evaluate")[0] + "loader = DataLoader(Images(3))\n"
    assert changed(tmp_path / "train.py", head + loop).endswith("loader = DataLoader(Images(3))\n" + written)


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ("for x, y in loader: use(x)\n", "beside it"),
        ("for *x, y in loader:\n    use(x)\n", "in another way"),
        ("for x, y, z in loader:\n    use(x)\n", "in another way"),
        ("for x, y in loader:\n    use(x)\nuse(loader)\n", "in another way"),
        ("for b in loader:\n    c = [v.to(device) for v in b]\n", "in another way"),
        ("", "no loop"),
    ],
)
def test_where_it_is_not_clear_nothing_is_written(tmp_path, rest, why):
    head = PROGRAM.partition("def evaluate")[0] + "loader = DataLoader(Images(3))\n"
    with pytest.raises(NotClear, match=why):
        changed(tmp_path / "train.py", head + rest)


def test_a_name_of_the_programs_is_not_taken(tmp_path):
    with pytest.raises(SourceError, match="_floats"):
        changed(tmp_path / "train.py", PROGRAM.replace("import sys\n\n", "import sys\n_floats = 1\n"))


# ------------------------------------------------------------------ when it is proposed


def case_of(path, *, device="cpu", workers=2, collate_s=0.3, transfer=0.0, collate="default_collate", transforms=None):
    measured = SimpleNamespace(
        workers=workers, batch_size=8, dataset="Subset", collate=collate, service_s=1.0, collate_s=collate_s,
        batches_per_step=1.0,
    )  # fmt: skip
    facts = {
        "num_workers": workers, "batch_size": 8, "map_style": True, "dataset": "Images", "getitem_file": str(path),
        "getitem_line": LINE, "transforms": transforms,
    }  # fmt: skip
    measurement = SimpleNamespace(
        model=SimpleNamespace(device=device), loader=measured, samples=[], worker_pids={7}, main_pid=6,
        step=SimpleNamespace(mean=0.5),
    )  # fmt: skip
    return SimpleNamespace(
        measurement=measurement, sources=Sources(), report=SimpleNamespace(trace=None, phases=[]),
        probe=SimpleNamespace(loaders=(Made(Call(path, 1, ""), facts),)), program=SimpleNamespace(root=path.parent),
        share=lambda *phases: transfer if phases == ("transfer",) else 0.5, user_file=lambda name: Path(name),
    )  # fmt: skip


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    return path


def test_workers_that_put_batches_together_send_bytes(script):
    (proposal,) = bytes_to_device.propose(case_of(script))
    assert proposal.exactness == "close" and not proposal.advice
    assert proposal.predicted == pytest.approx(1 / (1 - 0.75 * 0.3))
    assert b"_floats(x.to(device" in proposal.sources.bytes_of(script)


def test_what_makes_the_floats_is_counted(script):
    case = case_of(script)
    fetch = Frame("fetch", "/lib/torch/utils/data/_utils/fetch.py", 52)
    make = Frame("Images.__getitem__", str(script), 22)
    case.measurement.samples = [StackSample(7, "main", (fetch, make), 3), StackSample(7, "main", (fetch,), 7)]
    (proposal,) = bytes_to_device.propose(case)
    assert proposal.predicted == pytest.approx(1 / (1 - 0.75 * 0.3 - 0.5 * 0.3))


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"workers": 0}, "sent nowhere"),
        ({"collate_s": 0.01}, "takes 1 % of the step"),
        ({"collate": "padded"}, "padded puts its batches together"),
    ],
)
def test_where_it_does_not_pay(script, facts, why):
    found = bytes_to_device.propose(case_of(script, **facts))
    assert isinstance(found, Unfit) and why in found.reason


def test_copies_to_a_gpu_count_without_workers_as_well(script):
    (proposal,) = bytes_to_device.propose(case_of(script, device="cuda:0", workers=0, collate_s=0.0, transfer=0.4))
    assert proposal.predicted == pytest.approx(1 / (1 - 0.75 * 0.4)) and proposal.sources is not None


@pytest.mark.parametrize(
    "mention", ["from train import Images", "import train", "from .train import make", "Images(3)"]
)
def test_where_another_file_may_take_samples_it_is_told(script, mention):
    (script.parent / ".venv").mkdir()
    (script.parent / ".venv" / "hidden.py").write_text("import train\n")
    (script.parent / "trained.py").write_text("import trained, other\n")
    assert not bytes_to_device.propose(case_of(script))[0].advice
    (script.parent / "other.py").write_text(f"{mention}\n")
    (proposal,) = bytes_to_device.propose(case_of(script))
    assert proposal.advice and proposal.sources is None and "other.py may take samples" in proposal.because
    assert "Images (train.py:21)" in proposal.title


def test_to_tensor_at_the_end_of_a_chain_is_told(script):
    def chain(*names):
        return {"transform": [{"type": name, "module": "torchvision.transforms.transforms"} for name in names]}

    (proposal,) = bytes_to_device.propose(case_of(script, transforms=chain("Resize", "ToTensor", "Normalize")))
    assert proposal.advice and "PILToTensor() for ToTensor and Normalize in self.transform" in proposal.title
    (proposal,) = bytes_to_device.propose(case_of(script, transforms=chain("ToTensor", "RandomErasing")))
    assert not proposal.advice
