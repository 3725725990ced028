"""Train DGL-LifeSci's Weave network on made molecules, whose graphs are made as they are needed."""

import os
import random
import time

import torch

os.environ["DGLBACKEND"] = "pytorch"

import dgl

dgl.function.copy_edge, dgl.function.copy_src = dgl.function.copy_e, dgl.function.copy_u  # their names before DGL 1
from dgllife.model import WeavePredictor  # noqa: E402
from dgllife.utils import WeaveAtomFeaturizer, WeaveEdgeFeaturizer, smiles_to_complete_graph  # noqa: E402

torch.manual_seed(0)
rng = random.Random(0)
PARTS = ("C", "CC", "N", "O", "C(=O)N", "C(C)", "c1ccccc1", "c1ccncc1", "C(F)(F)", "S", "C1CCNCC1", "C=C")
MOLECULES, LONGEST, BATCH, EPOCHS = 400, 8, 64, 4
atoms, bonds = WeaveAtomFeaturizer(), WeaveEdgeFeaturizer(max_distance=2)


class Molecules(torch.utils.data.Dataset):
    """Too many to keep all of their graphs."""

    def __init__(self):
        lengths = [rng.randint(LONGEST // 2, LONGEST) for _ in range(MOLECULES)]
        self.smiles = ["".join(rng.choice(PARTS) for _ in range(length)) + "C" for length in lengths]
        self.targets = torch.tensor([[text.count("N") - text.count("F")] for text in self.smiles], dtype=torch.float32)

    def __len__(self):
        return len(self.smiles)

    def __getitem__(self, index):
        graph = smiles_to_complete_graph(
            self.smiles[index], add_self_loop=True, node_featurizer=atoms, edge_featurizer=bonds
        )
        return graph, self.targets[index]


def joined(samples):
    graphs, targets = zip(*samples)
    return dgl.batch(graphs), torch.stack(targets)


loader = torch.utils.data.DataLoader(Molecules(), batch_size=BATCH, shuffle=True, collate_fn=joined)
network = WeavePredictor(node_in_feats=atoms.feat_size(), edge_in_feats=bonds.feat_size())
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)

began = time.perf_counter()
for epoch in range(EPOCHS):
    total = 0.0
    for graph, target in loader:
        loss = torch.nn.functional.mse_loss(network(graph, graph.ndata["h"], graph.edata["e"]), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}", flush=True)
print(f"seconds={time.perf_counter() - began:.3f}")
