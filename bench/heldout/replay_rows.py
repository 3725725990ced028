"""Q-learning from a replay buffer. Planted: a batch is gathered from a list of transitions, which are converted one by
one; the fixed twin keeps columns in tensors.
"""

import random

import numpy as np
import torch
from common import Clock, parse_args
from torch import nn

STATE, ACTIONS, BATCH = 32, 4, 256


class ListBuffer:
    def __init__(self):
        rng = np.random.default_rng(9)
        self.rows = [
            (rng.normal(size=STATE), int(rng.integers(ACTIONS)), float(rng.normal()), rng.normal(size=STATE))
            for _ in range(20000)
        ]
        self.random = random.Random(0)

    def sample(self):
        rows = self.random.sample(self.rows, BATCH)
        states = torch.stack([torch.tensor(row[0].tolist()) for row in rows])
        actions = torch.stack([torch.tensor(row[1]) for row in rows])
        rewards = torch.stack([torch.tensor(row[2]) for row in rows])
        return states, actions, rewards, torch.stack([torch.tensor(row[3].tolist()) for row in rows])


class TensorBuffer(ListBuffer):
    def __init__(self):
        super().__init__()
        states, actions, rewards, following = zip(*self.rows, strict=True)
        kept = (np.stack(states), np.array(actions), np.array(rewards), np.stack(following))
        self.columns = [torch.from_numpy(column) for column in kept]
        self.columns = [column.float() if column.is_floating_point() else column for column in self.columns]

    def sample(self):
        rows = torch.randint(0, len(self.rows), (BATCH,))
        return [column[rows] for column in self.columns]


class SameBatch(TensorBuffer):
    def sample(self):
        return [column[:BATCH] for column in self.columns]


def main():
    args = parse_args()
    buffer = {"slow": ListBuffer, "fast": TensorBuffer, "free": SameBatch}[args.variant]()
    network = nn.Sequential(nn.Linear(STATE, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, ACTIONS))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-4)
    clock = Clock(args.seconds)
    while not clock.done:
        states, actions, rewards, following = buffer.sample()
        with torch.no_grad():
            targets = rewards + 0.99 * network(following).amax(1)
        values = network(states).gather(1, actions[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(values, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
    clock.report()


if __name__ == "__main__":
    main()
