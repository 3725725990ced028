"""Actor-critic on a vector of Gymnasium environments. Planted: an environment moves its water cell by cell in Python; the
cure moves arrays. A step is one of the vector."""

import gymnasium
import numpy as np
import torch
from planted import parse_args, rate
from torch import nn

CELLS, HORIZON = 200, 16


class Reservoir(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-100, 100, (8,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.level, self.time = self.np_random.random(CELLS), 0
        return self.observe(), {}

    def observe(self):
        return self.level.reshape(8, -1).mean(1).astype(np.float32)

    def flow(self):
        level = self.level.tolist()
        for _ in range(60):
            before = list(level)
            for cell in range(1, CELLS - 1):
                level[cell] += 0.1 * (before[cell - 1] - 2 * before[cell] + before[cell + 1])
        self.level = np.array(level)

    def step(self, action):
        self.level[0] += 0.1 * float(action)
        self.flow()
        self.time += 1
        return self.observe(), -float(self.level.std()), False, self.time >= 200, {}


class ArrayReservoir(Reservoir):
    def flow(self):
        for _ in range(60):
            self.level[1:-1] += 0.1 * (self.level[:-2] - 2 * self.level[1:-1] + self.level[2:])


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 64), nn.Tanh())
        self.actor, self.critic = nn.Linear(64, 2), nn.Linear(64, 1)

    def forward(self, observation):
        features = self.trunk(observation)
        return torch.distributions.Categorical(logits=self.actor(features)), self.critic(features).squeeze(-1)


def learn(optimizer, logs, values, rewards):
    returns = torch.stack(rewards).flip(0).cumsum(0).flip(0)
    values = torch.stack(values)
    loss = -(torch.stack(logs) * (returns - values).detach()).mean() + (returns - values).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def main():
    args = parse_args()
    torch.manual_seed(0)
    make = Reservoir if args.variant == "slow" else ArrayReservoir
    envs = gymnasium.vector.SyncVectorEnv([make] * 8)
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3)
    observation, _ = envs.reset(seed=0)
    with rate(args.steps):
        for _ in range(args.steps // HORIZON):
            logs, values, rewards = [], [], []
            for _ in range(HORIZON):
                policy, value = agent(torch.as_tensor(observation))
                action = policy.sample()
                observation, reward, _, _, _ = envs.step(action.numpy())
                logs.append(policy.log_prob(action))
                values.append(value)
                rewards.append(torch.as_tensor(reward, dtype=torch.float32))
            loss = learn(optimizer, logs, values, rewards)
    print("loss", loss.item())


main()
