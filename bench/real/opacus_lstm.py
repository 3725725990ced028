"""Train opacus' LSTM on made sequences, with differential privacy."""

import time

import torch
from stand_in import stand_in

stand_in("torchcsprng")

from opacus import PrivacyEngine  # noqa: E402
from opacus.layers import DPLSTM  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

torch.manual_seed(0)
SEQUENCES, LENGTH, FEATURES, HIDDEN, BATCH, EPOCHS = 640, 32, 24, 48, 32, 8
inputs = torch.randn(SEQUENCES, LENGTH, FEATURES)
labels = inputs[:, :, 0].sum(dim=1).gt(0).long()
loader = DataLoader(TensorDataset(inputs, labels), batch_size=BATCH, shuffle=True, drop_last=True)


class Classifier(torch.nn.Module):
    """The last output of an LSTM, and a layer."""

    def __init__(self):
        super().__init__()
        self.lstm = DPLSTM(FEATURES, HIDDEN, batch_first=True)
        self.out = torch.nn.Linear(HIDDEN, 2)

    def forward(self, sequences):
        empty = torch.zeros(1, len(sequences), HIDDEN)
        outputs, _ = self.lstm(sequences, (empty, empty))
        return self.out(outputs[:, -1])


model = Classifier()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
engine = PrivacyEngine(
    model, batch_size=BATCH, sample_size=SEQUENCES, alphas=[2.0, 8.0, 32.0], noise_multiplier=1.0, max_grad_norm=1.0
)
engine.attach(optimizer)
criterion = torch.nn.CrossEntropyLoss()

began = time.perf_counter()
for epoch in range(EPOCHS):
    for sequences, target in loader:
        optimizer.zero_grad()
        loss = criterion(model(sequences), target)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
print(f"seconds={time.perf_counter() - began:.3f}")
