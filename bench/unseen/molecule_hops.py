"""A graph transformer that predicts a property of molecules. Planted: the collate function searches the shortest ways
between all atoms of every molecule, each time; the fixed twin has them from one search before training.
"""

from dataclasses import dataclass

import networkx as nx
import numpy as np
import torch
from common import Clock, parse_args
from torch import nn
from torch.utils.data import DataLoader

LARGEST, FARTHEST, ELEMENTS, WIDTH = 32, 12, 9, 32


@dataclass(frozen=True)
class Molecule:
    number: int
    elements: np.ndarray
    bonds: tuple
    energy: float


def make_molecules(count=300):
    """Random trees of atoms, a few of their ends closed to rings."""
    rng = np.random.default_rng(31)
    molecules = []
    for number in range(count):
        atoms = int(rng.integers(18, LARGEST + 1))
        bonds = [(int(rng.integers(max(0, atom - 3), atom)), atom) for atom in range(1, atoms)]
        for _ in range(int(rng.integers(1, 4))):
            first, second = rng.choice(atoms, 2, replace=False)
            bonds.append((int(first), int(second)))
        elements = rng.integers(1, ELEMENTS, atoms)
        molecules.append(Molecule(number, elements, tuple(bonds), float(elements.mean() + len(bonds) / 10)))
    return molecules


def shortest_ways(molecule):
    """How many bonds lie between each two atoms."""
    graph = nx.Graph()
    graph.add_nodes_from(range(len(molecule.elements)))
    graph.add_edges_from(molecule.bonds)
    hops = np.full((len(molecule.elements),) * 2, FARTHEST)
    for start, reached in nx.all_pairs_shortest_path_length(graph):
        for end, length in reached.items():
            hops[start, end] = min(length, FARTHEST)
    return hops


class Collator:
    def __init__(self, molecules):
        self.molecules = molecules

    def hops(self, molecule):
        return shortest_ways(molecule)

    def __call__(self, batch):
        elements = torch.zeros(len(batch), LARGEST, dtype=torch.long)
        hops = torch.full((len(batch), LARGEST, LARGEST), FARTHEST + 1)
        for row, molecule in enumerate(batch):
            size = len(molecule.elements)
            elements[row, :size] = torch.from_numpy(molecule.elements)
            hops[row, :size, :size] = torch.from_numpy(self.hops(molecule))
        return elements, hops, torch.tensor([molecule.energy for molecule in batch])


class PreparedCollator(Collator):
    def __init__(self, molecules):
        super().__init__(molecules)
        self.prepared = [shortest_ways(molecule) for molecule in molecules]

    def hops(self, molecule):
        return self.prepared[molecule.number]


class OneOfEachSize(Collator):
    def __init__(self, molecules):
        super().__init__(molecules)
        self.prepared = {len(molecule.elements): shortest_ways(molecule) for molecule in molecules}

    def hops(self, molecule):
        return self.prepared[len(molecule.elements)]


class GraphTransformer(nn.Module):
    def __init__(self, depth=2, heads=4):
        super().__init__()
        self.heads = heads
        self.embed = nn.Embedding(ELEMENTS, WIDTH, padding_idx=0)
        self.bias = nn.Embedding(FARTHEST + 2, heads)
        self.project = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH) for _ in range(depth))
        self.feed = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
            for _ in range(depth)
        )
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, elements, hops):
        hidden, bias = self.embed(elements), self.bias(hops).permute(0, 3, 1, 2)
        for project, feed in zip(self.project, self.feed, strict=True):
            parts = project(hidden).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(*parts, attn_mask=bias)
            hidden = hidden + mixed.transpose(1, 2).flatten(2)
            hidden = hidden + feed(hidden)
        return self.head(hidden.mean(1)).squeeze(1)


def main():
    args = parse_args()
    torch.manual_seed(0)
    molecules = make_molecules()
    collator = {"slow": Collator, "fast": PreparedCollator, "free": OneOfEachSize}[args.variant](molecules)
    loader = DataLoader(molecules, batch_size=24, shuffle=True, drop_last=True, collate_fn=collator)
    model = GraphTransformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    clock = Clock(args.seconds)
    while not clock.done:
        for elements, hops, energies in loader:
            loss = nn.functional.l1_loss(model(elements, hops), energies)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            clock.tick()
            if clock.done:
                break
    clock.report()


if __name__ == "__main__":
    main()
