"""REINFORCE on a chain of carts, in an environment of the program's own. Planted: its physics integrates cart by cart
in Python; the fixed twin integrates arrays.
"""

import gymnasium
import numpy as np
import torch
from common import Clock, parse_args
from torch import nn

CARTS, SUBSTEPS, HORIZON = 200, 20, 32


class Chain(gymnasium.Env):
    """Carts between springs; the action pushes the first one, the reward is for a quiet last one."""

    observation_space = gymnasium.spaces.Box(-10, 10, (2 * CARTS,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.normal(0, 0.1, CARTS)
        self.speed = np.zeros(CARTS)
        self.time = 0
        return self.observe(), {}

    def observe(self):
        return np.concatenate([self.place, self.speed]).astype(np.float32)

    def integrate(self, push):
        place, speed = self.place.tolist(), self.speed.tolist()
        for _ in range(SUBSTEPS):
            for cart in range(CARTS):
                left = place[cart - 1] if cart else 0.0
                right = place[cart + 1] if cart + 1 < CARTS else 0.0
                force = 40 * (left - 2 * place[cart] + right) - 0.2 * speed[cart] + (push if cart == 0 else 0.0)
                speed[cart] += 0.005 * force
            for cart in range(CARTS):
                place[cart] += 0.005 * speed[cart]
        self.place, self.speed = np.array(place), np.array(speed)

    def step(self, action):
        self.integrate(5.0 * (int(action) - 1))
        self.time += 1
        return self.observe(), -abs(float(self.place[-1])), False, self.time >= HORIZON, {}


class ArrayChain(Chain):
    def integrate(self, push):
        place, speed = self.place.copy(), self.speed.copy()
        for _ in range(SUBSTEPS):
            around = np.concatenate([[0.0], place, [0.0]])
            force = 40 * (around[:-2] - 2 * place + around[2:]) - 0.2 * speed
            force[0] += push
            speed += 0.005 * force
            place += 0.005 * speed
        self.place, self.speed = place, speed


class StillChain(Chain):
    def integrate(self, push):
        self.speed[0] += 0.005 * push


def play(environment, policy):
    """One episode: the actions' log-probabilities, and their returns."""
    observation, _ = environment.reset()
    logs, rewards, over = [], [], False
    while not over:
        actions = torch.distributions.Categorical(logits=policy(torch.from_numpy(observation)))
        action = actions.sample()
        logs.append(actions.log_prob(action))
        observation, reward, terminated, truncated, _ = environment.step(action.item())
        rewards.append(reward)
        over = terminated or truncated
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    return torch.stack(logs), returns


def main():
    args = parse_args()
    environment = {"slow": Chain, "fast": ArrayChain, "free": StillChain}[args.variant]()
    environment.reset(seed=0)
    policy = nn.Sequential(nn.Linear(2 * CARTS, 64), nn.Tanh(), nn.Linear(64, 3))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    while not clock.done:
        logs, returns = play(environment, policy)
        loss = -(logs * (returns - returns.mean())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
    clock.report()


if __name__ == "__main__":
    main()
