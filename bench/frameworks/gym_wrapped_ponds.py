"""Actor-critic on one environment in Gymnasium's wrappers. Planted: the function of `TransformObservation` smooths the pond
point by point in Python; the cure does so on the array."""

import gymnasium
import numpy as np
import torch
from gymnasium.wrappers import ClipAction, RecordEpisodeStatistics, TransformObservation
from planted import parse_args, rate
from scipy import ndimage
from torch import nn

SIDE, HORIZON = 24, 16


class Pond(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-100, 100, (SIDE, SIDE), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.water, self.time = self.np_random.random((SIDE, SIDE)).astype(np.float32), 0
        return self.water, {}

    def step(self, action):
        row, column = ((np.asarray(action) + 1) / 2 * (SIDE - 1)).astype(int)
        self.water[row, column] += 0.5
        self.water *= 0.99
        self.time += 1
        return self.water, -float(self.water.std()), False, self.time >= 100, {}


def smooth(water):
    result = np.empty_like(water)
    for row in range(SIDE):
        for column in range(SIDE):
            near = water[max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2]
            result[row, column] = near.sum() / near.size
    return result


def smooth_at_once(water):
    counts = ndimage.uniform_filter(np.ones_like(water), 3, mode="constant")
    return ndimage.uniform_filter(water, 3, mode="constant") / counts


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Flatten(0), nn.Linear(SIDE * SIDE, 128), nn.Tanh())
        self.actor, self.critic = nn.Linear(128, 2), nn.Linear(128, 1)

    def forward(self, observation):
        features = self.trunk(observation)
        return torch.distributions.Normal(self.actor(features), 0.3), self.critic(features).squeeze(-1)


def learn(optimizer, logs, values, rewards):
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    values = torch.stack(values)
    loss = -(torch.stack(logs) * (returns - values).detach()).mean() + (returns - values).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def main():
    args = parse_args()
    torch.manual_seed(0)
    function = smooth if args.variant == "slow" else smooth_at_once
    pond = TransformObservation(RecordEpisodeStatistics(ClipAction(Pond())), function, Pond.observation_space)
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3)
    observation, _ = pond.reset(seed=0)
    with rate(args.steps):
        for _ in range(args.steps // HORIZON):
            logs, values, rewards = [], [], []
            for _ in range(HORIZON):
                policy, value = agent(torch.as_tensor(observation))
                action = policy.sample()
                observation, reward, _, ended, _ = pond.step(action.numpy())
                logs.append(policy.log_prob(action).sum())
                values.append(value)
                rewards.append(reward)
                if ended:
                    observation, _ = pond.reset()
            loss = learn(optimizer, logs, values, rewards)
    print("loss", loss.item())


if __name__ == "__main__":
    main()
