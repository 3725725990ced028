"""Train a small classifier with skorch for many epochs on few rows, as on a small table."""

import time

import numpy as np
import torch
from sklearn.datasets import make_classification
from stand_in import stand_in_pkg_resources

stand_in_pkg_resources()

from skorch import NeuralNetClassifier  # noqa: E402

torch.manual_seed(0)
ROWS, COLUMNS, EPOCHS = 1000, 20, 300


class Network(torch.nn.Module):
    """Two hidden layers."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(COLUMNS, 10), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(10, 10),
            torch.nn.ReLU(), torch.nn.Linear(10, 2), torch.nn.Softmax(dim=-1),
        )  # fmt: skip

    def forward(self, rows):
        return self.layers(rows)


rows, labels = make_classification(ROWS, COLUMNS, n_informative=10, random_state=0)
net = NeuralNetClassifier(
    Network,
    max_epochs=EPOCHS,
    lr=0.1,
    batch_size=16,
    iterator_train__shuffle=True,
    callbacks__valid_acc=None,  # scikit-learn no longer takes it
)
began = time.perf_counter()
net.fit(rows.astype(np.float32), labels.astype(np.int64))
print(f"seconds={time.perf_counter() - began:.3f}")
