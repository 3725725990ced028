"""Train TabNet on a made table of the forest cover data's shape, with the batches of its authors' example."""

import time

import numpy as np
import torch
from pytorch_tabnet.tab_model import TabNetClassifier

torch.manual_seed(0)
rng = np.random.default_rng(0)
ROWS, COLUMNS, CLASSES, EPOCHS = 65536, 54, 7, 2
table = rng.normal(size=(ROWS + ROWS // 8, COLUMNS)).astype(np.float32)
kind = np.argmax(table[:, :CLASSES] + table[:, CLASSES : 2 * CLASSES] ** 2, axis=1)

model = TabNetClassifier(
    n_d=32, n_a=32, n_steps=5, gamma=1.5, n_independent=2, n_shared=2, lambda_sparse=1e-4, momentum=0.3, clip_value=2.0,
    device_name="cpu",
)  # fmt: skip
began = time.perf_counter()
model.fit(
    X_train=table[:ROWS], y_train=kind[:ROWS], X_valid=table[ROWS:], y_valid=kind[ROWS:],
    max_epochs=EPOCHS, patience=100, batch_size=16384, virtual_batch_size=256,
)  # fmt: skip
print(f"seconds={time.perf_counter() - began:.3f}")
