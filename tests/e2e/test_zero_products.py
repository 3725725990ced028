"""A model that computes what no loss depends on, and one that multiplies by zeros: which line, and how much."""

from __future__ import annotations

import pytest

PROGRAM = """
    import sys

    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.manual_seed(0)
    torch.set_num_threads(1)  # threads that wait for a core in which a neighbour computes are on the clock as well


    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            width = 64 if "smooth" in sys.argv else 256  # the head is to take more time than its loss, by far
            self.embed = nn.Embedding(500, 64)
            self.mix = nn.Linear(64, width)
            self.head = nn.Linear(width, 3000)
            self.register_buffer("smooth", torch.eye(64).unsqueeze(-1).repeat(1, 1, 25) / 25)

        def forward(self, tokens):
            x = torch.tanh(self.mix(self.embed(tokens)))
            if "smooth" in sys.argv:
                return F.conv1d(x.transpose(1, 2), self.smooth, padding=12).transpose(1, 2)  # smooth
            return self.head(x)  # head


    def main():
        model = Tagger()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(60):
            tokens = torch.randint(0, 500, (8, 128))
            labels = torch.where(torch.rand(8, 128) < 0.1, tokens, -100)
            logits = model(tokens).flatten(0, 1)
            loss = logits.square().mean() if "smooth" in sys.argv else F.cross_entropy(logits, labels.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"{loss.item():.6f}")


    main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("which", [pytest.param("head", marks=pytest.mark.long), "smooth"])
def test_products_with_zeros_are_said_where_they_are(workspace, which):
    script = workspace.write("program.py", PROGRAM)
    plain, watched = workspace.both("program.py", which)
    assert plain.status == watched.status == 0
    verdict = watched.report["verdict"]
    assert (verdict["pattern"], verdict["cause"]) == ("compute-bound", "zeros")
    assert f"# {which}" in script.read_text().splitlines()[verdict["culprit"]["line"] - 1]
    said = "no loss depends on" if which == "head" else "multiplies by zeros"
    assert any(said in line for line in verdict["evidence"])
