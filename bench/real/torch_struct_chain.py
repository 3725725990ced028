"""Train an LSTM tagger with torch-struct's linear-chain CRF on made sentences of different lengths."""

import sys
import time
from types import ModuleType

import torch
from torch import nn

genbmm = ModuleType("genbmm")  # compiled, for GPUs
genbmm.BandedMatrix = type("BandedMatrix", (), {})
sys.modules["genbmm"] = genbmm

from torch_struct import LinearChainCRF  # noqa: E402

torch.manual_seed(0)
WORDS, TAGS, LONGEST, SENTENCES, BATCH, EPOCHS = 2000, 12, 33, 640, 32, 12


class Tagger(nn.Module):
    """Potentials of each pair of neighbouring tags."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 100)
        self.lstm = nn.LSTM(100, 100, batch_first=True, bidirectional=True)
        self.tags = nn.Linear(200, TAGS)
        self.transitions = nn.Parameter(torch.zeros(TAGS, TAGS))

    def forward(self, words):
        scores = self.tags(self.lstm(self.embedding(words))[0])
        potentials = self.transitions + scores[:, 1:, :, None]
        return torch.cat([potentials[:, :1] + scores[:, :1, None], potentials[:, 1:]], dim=1)


words = torch.randint(WORDS, (SENTENCES, LONGEST))
tags = (words % TAGS + torch.roll(words, 1, 1) % 3) % TAGS
lengths = torch.randint(LONGEST // 3, LONGEST + 1, (SENTENCES,))
lengths[::BATCH] = LONGEST
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

began = time.perf_counter()
for epoch in range(EPOCHS):
    total = 0.0
    for first in range(0, SENTENCES, BATCH):
        some = slice(first, first + BATCH)
        chain = LinearChainCRF(model(words[some]), lengths[some])
        parts = LinearChainCRF.struct.to_parts(tags[some], TAGS, lengths[some])
        loss = -chain.log_prob(parts.type(torch.float32)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total * BATCH / SENTENCES:.3f}")
print(f"seconds={time.perf_counter() - began:.3f}")
