"""A shared policy learns to herd sheep in a parallel environment of PettingZoo. Planted: the distances of all sheep to all
dogs are computed pair by pair; the cure subtracts arrays."""

import functools

import gymnasium
import numpy as np
import torch
from pettingzoo import ParallelEnv
from planted import parse_args, rate
from torch import nn

DOGS, SHEEP, HORIZON = 4, 1000, 16


class Herd(ParallelEnv):
    metadata = {"name": "herd_v0"}

    def __init__(self):
        self.possible_agents = [f"dog_{number}" for number in range(DOGS)]

    @functools.cache
    def observation_space(self, agent):
        return gymnasium.spaces.Box(-10, 10, (6,), np.float32)

    @functools.cache
    def action_space(self, agent):
        return gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, seed=None, options=None):
        self.random = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        self.dogs, self.sheep, self.time = self.random.normal(size=(DOGS, 2)), self.random.normal(size=(SHEEP, 2)), 0
        return self.observe(), {agent: {} for agent in self.agents}

    def pushes(self):
        pushes = np.zeros_like(self.sheep)
        for number, (x, y) in enumerate(self.sheep):
            for dog_x, dog_y in self.dogs:
                apart = (x - dog_x) ** 2 + (y - dog_y) ** 2 + 0.1
                pushes[number] += ((x - dog_x) / apart, (y - dog_y) / apart)
        return pushes

    def observe(self):
        middle, spread = self.sheep.mean(0), self.sheep.std(0)
        rows = np.concatenate([self.dogs, np.tile(np.concatenate([middle, spread]), (DOGS, 1))], axis=1)
        return dict(zip(self.agents, np.clip(rows, -10, 10).astype(np.float32), strict=True))

    def step(self, actions):
        self.dogs = np.clip(self.dogs + 0.05 * np.stack([actions[agent] for agent in self.agents]), -3, 3)
        self.sheep = np.clip(self.sheep + 0.02 * self.pushes(), -3, 3)
        self.time += 1
        reward, over = -float(self.sheep.std()), self.time >= 100
        observations, agents = self.observe(), self.agents
        none = dict.fromkeys(agents, False)
        if over:
            self.agents = []
        return observations, dict.fromkeys(agents, reward), none, dict.fromkeys(agents, over), {a: {} for a in agents}


class ArrayHerd(Herd):
    def pushes(self):
        away = self.sheep[:, None] - self.dogs[None]
        return (away / ((away**2).sum(-1, keepdims=True) + 0.1)).sum(1)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 64), nn.Tanh(), nn.Linear(64, 2))

    def forward(self, observations):
        return torch.distributions.Normal(self.layers(observations), 0.3)


def main():
    args = parse_args()
    torch.manual_seed(0)
    herd, policy = (Herd if args.variant == "slow" else ArrayHerd)(), Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    observations, _ = herd.reset(seed=0)
    with rate(args.steps):
        for _ in range(args.steps // HORIZON):
            logs, rewards = [], []
            for _ in range(HORIZON):
                agents = herd.agents
                choice = policy(torch.from_numpy(np.stack([observations[agent] for agent in agents])))
                actions = choice.sample()
                logs.append(choice.log_prob(actions).sum())
                observations, reward, _, _, _ = herd.step(dict(zip(agents, actions.numpy(), strict=True)))
                rewards.append(reward[agents[0]])
                if not herd.agents:
                    observations, _ = herd.reset(seed=1)
            returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
            loss = -(torch.stack(logs) * (returns - returns.mean())).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("loss", loss.item())


if __name__ == "__main__":
    main()
