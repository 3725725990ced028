"""REINFORCE on a plate to be heated evenly. Planted: the plate's diffusion is computed cell by cell in
the environment; the fixed twin's environment uses array operations."""

import gymnasium as gym
import numpy as np
import torch
from common import Clock, parse_args
from gymnasium import spaces
from torch import nn

SIDE = 40


class HeatPlate(gym.Env):
    """Each action switches one of nine burners for a step; the reward asks for an even plate."""

    action_space = spaces.Discrete(9)
    observation_space = spaces.Box(-np.inf, np.inf, (SIDE * SIDE,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.plate = self.np_random.random((SIDE, SIDE))
        self.time = 0
        return self.observation(), {}

    def observation(self):
        return self.plate.astype(np.float32).ravel()

    def diffuse(self, plate, rate=0.2):
        cells = plate.tolist()
        out = [row[:] for row in cells]
        for y in range(1, SIDE - 1):
            for x in range(1, SIDE - 1):
                around = cells[y - 1][x] + cells[y + 1][x] + cells[y][x - 1] + cells[y][x + 1]
                out[y][x] = cells[y][x] + rate * (around - 4 * cells[y][x])
        return np.array(out)

    def step(self, action):
        row, column = divmod(int(action), 3)
        self.plate[6 + 13 * row, 6 + 13 * column] += 1.0
        for _ in range(4):
            self.plate = self.diffuse(self.plate)
        self.time += 1
        return self.observation(), -float(self.plate.std()), False, self.time >= 32, {}


class ArrayHeatPlate(HeatPlate):
    def diffuse(self, plate, rate=0.2):
        out = plate.copy()
        around = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
        out[1:-1, 1:-1] += rate * (around - 4 * plate[1:-1, 1:-1])
        return out


class Agent(nn.Module):
    def __init__(self, observations, actions):
        super().__init__()
        self.policy = nn.Sequential(
            nn.Linear(observations, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(),
            nn.Linear(64, actions),
        )  # fmt: skip

    def forward(self, observation):
        return torch.distributions.Categorical(logits=self.policy(observation))


def play_episode(env, agent, clock):
    observation, _ = env.reset()
    log_probabilities, rewards, over = [], [], False
    while not over and not clock.done:
        distribution = agent(torch.from_numpy(observation))
        action = distribution.sample()
        observation, reward, terminated, truncated, _ = env.step(action.item())
        log_probabilities.append(distribution.log_prob(action))
        rewards.append(reward)
        over = terminated or truncated
        clock.tick()
    return torch.stack(log_probabilities), rewards


def discounted(rewards, gamma=0.95):
    returns, running = [], 0.0
    for reward in reversed(rewards):
        running = reward + gamma * running
        returns.append(running)
    returns = torch.tensor(returns[::-1])
    return (returns - returns.mean()) / (returns.std(unbiased=False) + 1e-6)


if __name__ == "__main__":
    args = parse_args()
    env = HeatPlate() if args.variant == "slow" else ArrayHeatPlate()
    agent = Agent(SIDE * SIDE, 9)
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    while not clock.done:
        log_probabilities, rewards = play_episode(env, agent, clock)
        loss = -(log_probabilities * discounted(rewards)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    clock.report()
