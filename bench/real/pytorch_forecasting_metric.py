"""Train a small forecaster, and keep the error of every sample and time step in pytorch-forecasting's MAE."""

import time

import torch
from pytorch_forecasting.metrics import MAE
from torch import nn

torch.manual_seed(0)
HISTORY, HORIZON, BATCH, STEPS = 48, 24, 64, 3000
series = torch.randn(5000, HISTORY + HORIZON).cumsum(dim=1)
model = nn.Sequential(nn.Linear(HISTORY, 128), nn.ReLU(), nn.Linear(128, HORIZON))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
errors = MAE(reduction="none")

began = time.perf_counter()
for step in range(STEPS):
    batch = series[torch.randint(len(series), (BATCH,))]
    history, future = batch[:, :HISTORY], batch[:, HISTORY:]
    prediction = model(history)
    loss = nn.functional.l1_loss(prediction, future)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    errors.update(prediction.detach().unsqueeze(-1), future)
    if step % 500 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
per_step = errors.compute()
print(f"error of {per_step.shape[0]} samples: {per_step.mean():.4f}")
print(f"seconds={time.perf_counter() - began:.3f}")
