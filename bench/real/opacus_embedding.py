"""Train a text classifier on made sentences with opacus' differential privacy."""

import time

import torch
from stand_in import stand_in

stand_in("torchcsprng")

from opacus import PrivacyEngine  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

torch.manual_seed(0)
SENTENCES, LENGTH, WORDS, BATCH, EPOCHS = 1024, 32, 1000, 32, 3
words = torch.randint(WORDS, (SENTENCES, LENGTH))
labels = (words < 300).sum(dim=1).gt(9).long()
loader = DataLoader(TensorDataset(words, labels), batch_size=BATCH, shuffle=True, drop_last=True)


class Classifier(torch.nn.Module):
    """The mean of all words' embeddings, and a perceptron."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(WORDS, 16)
        self.hidden, self.out = torch.nn.Linear(16, 32), torch.nn.Linear(32, 2)

    def forward(self, sentences):
        return self.out(torch.relu(self.hidden(self.embedding(sentences).mean(dim=1))))


model = Classifier()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
engine = PrivacyEngine(
    model, batch_size=BATCH, sample_size=SENTENCES, alphas=[2.0, 8.0, 32.0], noise_multiplier=1.0, max_grad_norm=1.0
)
engine.attach(optimizer)
criterion = torch.nn.CrossEntropyLoss()

began = time.perf_counter()
for epoch in range(EPOCHS):
    for sentences, target in loader:
        optimizer.zero_grad()
        loss = criterion(model(sentences), target)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
print(f"seconds={time.perf_counter() - began:.3f}")
