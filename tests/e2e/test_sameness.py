"""What changes of a real little program are judged to be, in fresh processes in the sandbox."""

from __future__ import annotations

import textwrap
from functools import partial
from pathlib import Path

import pytest

from unstall.optimize import diagnosis, program
from unstall.optimize.equivalence import Reference, observe
from unstall.optimize.proposal import Attempt, Proposal
from unstall.optimize.remedies import all_remedies
from unstall.optimize.source.files import Sources
from unstall.optimize.trial_runner import TrialRunner, Variant
from unstall.sandbox import SandboxError, open_sandbox

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PROGRAM = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = torch.randn(512, 64), torch.randint(10, (512,))
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4, eps=1e-8, foreach=False)
    for epoch in range(100):
        for a, b in loader:
            out = model(a)
            loss = nn.functional.cross_entropy(out, b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
AUTOCAST = """\
        with torch.autocast("cpu", torch.bfloat16):
            out = model(a)
        out = out.float()"""


class Judged:
    """A program in a folder, and verdicts on changes of its text."""

    def __init__(self, text, folder, box, monkeypatch):
        (folder / "train.py").write_text(textwrap.dedent(text).lstrip())
        monkeypatch.chdir(folder)
        self.script = folder / "train.py"
        self.program = program.find(["train.py"])
        self.runner = TrialRunner(self.program.line, folder / "runs", box)
        self.reference = Reference(partial(observe, self.runner))
        self.reference.observe("optimizer")

    def verdict(self, old, new):
        text = self.script.read_text()
        assert old in text
        sources = Sources({self.script: text.replace(old, new).encode()})
        attempt = Attempt(all_remedies()["threads"], Proposal("a change", 1.5, "", sources=sources))
        return self.reference.judge(Variant(sources), [attempt])


@pytest.fixture
def judged(tmp_path, monkeypatch):
    folder = Path(tmp_path).resolve()
    runs = folder / "runs"
    runs.mkdir()
    try:
        with open_sandbox(folder, [runs]) as box:  # the program's own file is changed in the sandbox alone
            if box.force != "overlay":
                pytest.skip("no overlay can be had here")
            yield lambda text: Judged(text, folder, box, monkeypatch)
    except SandboxError:
        pytest.skip("no overlay can be had here")


def test_rounding_is_told_from_more_than_that(judged):
    trained = judged(PROGRAM)
    assert trained.reference.is_reproducible
    assert trained.verdict("foreach=False", "fused=True").sameness == "close"
    for old, new, why in (
        ("weight_decay=1e-4", "weight_decay=0.0", "all in one direction"),
        ("        out = model(a)", AUTOCAST, "times as far as rounding goes"),
    ):
        verdict = trained.verdict(old, new)
        assert verdict.sameness == "reduced" and why in verdict.reason, (new, verdict)


COMPILED = """model.compile(backend="aot_eager")
optimizer = torch"""


def test_a_compiled_model_computes_the_same(judged):
    verdict = judged(PROGRAM).verdict("optimizer = torch", COMPILED)
    assert verdict.sameness in ("exact", "close"), verdict


def test_a_program_that_compiles_its_model_is_diagnosed_to_the_end(judged):
    trained = judged(PROGRAM.replace("optimizer = torch", COMPILED.replace("\n", "\n    ")))
    found = diagnosis.diagnose(trained.runner, trained.program, Variant(), seconds=2.0)
    assert (found.kind, found.report.run.exit_code) == ("optimizer", 0)
    assert found.context.measurement.steps > 100


@pytest.mark.long
def test_of_a_program_without_a_seed_nothing_can_be_said(judged):
    text = PROGRAM.replace("manual_seed(0)", "manual_seed(int.from_bytes(__import__('os').urandom(3), 'big'))")
    trained = judged(text)
    assert not trained.reference.is_reproducible
    verdict = trained.verdict("foreach=False", "fused=True")
    assert verdict.sameness is None and "seed" in verdict.reason
