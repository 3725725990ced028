"""Train PyG Temporal's recurrent network for heterogeneous graphs on a made series of snapshots."""

import sys
import time

import torch
from stand_in import stand_in
from torch_geometric.data import HeteroData
from torch_geometric.utils import _to_dense_adj

stand_in("torch_sparse", "torch_scatter")  # for other networks
sys.modules["torch_geometric.utils.to_dense_adj"] = _to_dense_adj  # its name before PyG 2.3
from torch_geometric_temporal.nn.hetero import HeteroGCLSTM  # noqa: E402

torch.manual_seed(0)
SIZES = {"user": 300, "item": 200, "shop": 30}
LINKS = {("user", "buys", "item"): 2000, ("shop", "sells", "item"): 600, ("user", "visits", "shop"): 900}
FEATURES, HIDDEN, SNAPSHOTS, EPOCHS = 16, 32, 24, 30


def made():
    data = HeteroData()
    for kind, size in SIZES.items():
        data[kind].x = torch.randn(size, FEATURES)
    for (first, verb, second), links in LINKS.items():
        ends = torch.stack([torch.randint(SIZES[first], (links,)), torch.randint(SIZES[second], (links,))])
        data[first, verb, second].edge_index = ends
        data[second, f"{verb}_back", first].edge_index = ends.flip(0)
    data["user"].y = data["user"].x[:, :1].sin()
    return data


class Network(torch.nn.Module):
    def __init__(self, metadata):
        super().__init__()
        self.recurrent = HeteroGCLSTM(dict.fromkeys(SIZES, FEATURES), HIDDEN, metadata)
        self.out = torch.nn.Linear(HIDDEN, 1)

    def forward(self, data, hidden, cell):
        hidden, cell = self.recurrent(data.x_dict, data.edge_index_dict, hidden, cell)
        return self.out(hidden["user"].relu()), hidden, cell


snapshots = [made() for _ in range(SNAPSHOTS)]
network = Network(snapshots[0].metadata())
with torch.no_grad():
    network(snapshots[0], None, None)  # finds the sizes of the layers
optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)

began = time.perf_counter()
for epoch in range(EPOCHS):
    cost, hidden, cell = 0.0, None, None
    for data in snapshots:
        predicted, hidden, cell = network(data, hidden, cell)
        cost = cost + torch.nn.functional.mse_loss(predicted, data["user"].y)
    cost = cost / SNAPSHOTS
    optimizer.zero_grad()
    cost.backward()
    optimizer.step()
    print(f"epoch {epoch}: loss {cost.item():.4f}")
print(f"seconds={time.perf_counter() - began:.3f}")
