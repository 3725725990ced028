"""What a run claims: ceilings and gains with their intervals, health by evidence, and no verdict where no step was."""

import sqlite3
import sys

import pytest
from programs import SLOW_DATASET

ROLLOUTS = """
    import torch
    from torch import nn

    torch.set_num_threads(1)
    policy = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(policy.parameters())


    def act(observation):
        with torch.no_grad():
            return policy(observation).argmax().item()


    def rollout(length=200):
        observation, observations = torch.zeros(6), []
        for turn in range(length):
            action = act(observation)
            observation = (observation + 0.1 * action - 0.05).clamp(-1, 1)
            observations.append(observation)
        return torch.stack(observations)


    for iteration in range(40):
        batch = rollout()
        for epoch in range(4):
            loss = policy(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""

HEADS = """
    import torch
    from torch import nn

    torch.set_num_threads(1)
    heads = nn.ModuleList(nn.Linear(24, 24) for _ in range(48))
    optimizer = torch.optim.SGD(heads.parameters(), lr=0.01)
    inputs = torch.randn(8, 24)
    for step in range(150):
        loss = sum(head(inputs).square().mean() for head in heads)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

UNUSED_GRADIENTS = """
    import torch
    from torch import nn


    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone = nn.Sequential(*(nn.Linear(256, 256) for _ in range(6)))
            self.head = nn.Linear(256, 4)

        def forward(self, x):
            return self.head(self.backbone(x))


    torch.set_num_threads(1)
    model = Classifier()
    optimizer = torch.optim.SGD(model.head.parameters(), lr=0.01)
    inputs, labels = torch.randn(256, 256), torch.randint(4, (256,))
    for step in range(400):
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

PADDED = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)


    class Collator:
        def __call__(self, rows):
            padded = torch.zeros(len(rows), 128, dtype=torch.long)
            for row, tokens in zip(padded, rows):
                row[: len(tokens)] = torch.tensor(tokens)
            return padded


    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(100, 64)
            self.layers = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))

        def forward(self, tokens):
            return self.layers(self.embed(tokens)).mean()


    rows = [[1 + (7 * n + place) % 99 for place in range(4 + n % 20)] for n in range(512)]
    model = Reader()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(8):
        for tokens in DataLoader(rows, batch_size=16, collate_fn=Collator()):
            loss = model(tokens)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""

SLICES = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)


    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.project = nn.Linear(16, 256)
            self.head = nn.Linear(256, 1)

        def forward(self, x):
            features = self.project(x)
            state = 0.0
            for t in range(features.shape[1]):
                state = 0.9 * state + features[:, t]
            return self.head(state).mean()


    model = Recurrent()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(60):
        loss = model(torch.randn(16, 120, 16))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

FAILS_EARLY = """
    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = model(torch.randn(3, 5)).sum()
    loss.backward()
    optimizer.step()
"""

NOTHING_KNOWN = """
    total = 0.0
    for step in range(200):
        total += sum(number * 0.5 for number in range(2000))
    print(total)
"""


@pytest.mark.parametrize("source", [ROLLOUTS, HEADS], ids=["rollouts", "heads"])
def test_work_that_batching_would_make_cheaper_is_not_healthy(workspace, source):
    workspace.write("program.py", source)
    result = workspace.watched("program.py")
    assert result.steps >= 1
    verdict = result.report["verdict"]
    assert verdict["pattern"] not in ("healthy", "no-verdict")
    assert "healthy" not in [finding["pattern"] for finding in result.report["findings"]]
    assert not any("nothing to fix" in line for line in verdict["advice"])


def test_a_ceiling_and_a_gain_are_named_and_have_their_intervals(workspace):
    workspace.write("program.py", SLOW_DATASET)
    result = workspace.watched("program.py", options=["--markdown", "report.md", "--html", "report.html"])
    verdict = result.report["verdict"]
    ceiling, gain = verdict["ceiling"], verdict["expected_gain"]
    assert verdict["headroom"] == ceiling["value"]
    assert 1 <= ceiling["low"] <= ceiling["value"] <= ceiling["high"]
    assert 1 <= gain["low"] <= gain["value"] <= gain["high"]
    assert gain["remedy"]
    screen = " ".join(result.err.split())  # lines are wrapped
    assert "; ceiling " in screen and "Ceiling " in screen
    assert f"expected gain of {gain['remedy']}" in screen
    assert "at most" not in screen
    assert "**Ceiling**: " in (workspace.folder / "report.md").read_text()
    assert "Expected gain" in (workspace.folder / "report.html").read_text()


@pytest.mark.parametrize("source", [FAILS_EARLY, NOTHING_KNOWN], ids=["fails early", "nothing known"])
def test_what_saw_no_step_has_no_verdict_anywhere(workspace, source):
    workspace.write("program.py", source)
    result = workspace.watched("program.py", options=["--markdown", "report.md"])
    assert result.steps == 0
    verdict = result.report["verdict"]
    assert verdict["pattern"] == "no-verdict"
    assert verdict.get("ceiling") is None and verdict.get("expected_gain") is None
    assert "no verdict: " in result.err
    markdown = (workspace.folder / "report.md").read_text()
    assert "no verdict: " in markdown
    assert "healthy" not in result.err + markdown
    assert "Ceiling" not in result.err + markdown
    (ledger,) = workspace.state.rglob("ledger.sqlite")
    with sqlite3.connect(ledger) as database:
        rows = database.execute("SELECT pattern, headroom, gap FROM runs").fetchall()
    assert rows == [("no-verdict", None, None)]
    history = workspace.start([sys.executable, "-m", "unstall", "history"]).result()
    assert "no-verdict" in history.out and "healthy" not in history.out


@pytest.mark.parametrize(
    ("program", "cause", "function", "evidence"),
    [
        (UNUSED_GRADIENTS, "gradients", "Classifier.forward", "(`backbone`) are used by no optimizer"),
        (PADDED, "padding", "Collator.__call__", "of the positions in a batch are padding, "),
        (SLICES, "backward", "Recurrent.forward", "what its operators take in forward: SelectBackward0"),
    ],
)
def test_what_the_model_computes_for_nothing_is_found(workspace, program, cause, function, evidence):
    workspace.write("program.py", program)
    finding = workspace.watched("program.py").report["findings"][0]
    assert (finding["pattern"], finding["cause"], finding["culprit"]["function"]) == ("compute-bound", cause, function)
    assert any(evidence in line for line in finding["evidence"])
