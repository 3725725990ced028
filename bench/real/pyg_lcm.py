"""Train GraphSAGE on made graphs, with PyG's LCM aggregation over the nodes of each."""

import time

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import LCMAggregation, SAGEConv

torch.manual_seed(0)
GRAPHS, NODES, NEIGHBOURS, FEATURES, HIDDEN, EPOCHS = 1024, 40, 4, 16, 64, 20


def made():
    count = int(torch.randint(NODES // 2, NODES + 1, ()))
    near = torch.rand(count, count).topk(NEIGHBOURS, dim=1).indices
    edges = torch.stack([near.flatten(), torch.arange(count).repeat_interleave(NEIGHBOURS)])
    x = torch.randn(count, FEATURES)
    return Data(x=x, edge_index=edges, y=(x[:, 0].max() > 2).long().view(1))


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolutions = torch.nn.ModuleList([SAGEConv(FEATURES, HIDDEN), SAGEConv(HIDDEN, HIDDEN)])
        self.pool = LCMAggregation(HIDDEN, HIDDEN)
        self.out = torch.nn.Linear(HIDDEN, 2)

    def forward(self, data):
        x = data.x
        for convolution in self.convolutions:
            x = convolution(x, data.edge_index).relu()
        return self.out(self.pool(x, data.batch))


loader = DataLoader([made() for _ in range(GRAPHS)], batch_size=32, shuffle=True)
network = Network()
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)

began = time.perf_counter()
for epoch in range(EPOCHS):
    total = 0.0
    for data in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(data), data.y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}")
print(f"seconds={time.perf_counter() - began:.3f}")
