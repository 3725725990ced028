"""Actor and critic drive a cart through a course of round obstacles. Planted: its lidar casts ray by ray, obstacle by
obstacle, in Python; the fixed twin casts all rays at once.
"""

import math

import gymnasium
import numpy as np
import torch
from common import Clock, parse_args
from torch import nn

RAYS, OBSTACLES, RANGE, HORIZON = 48, 30, 12.0, 64


class Course(gymnasium.Env):
    """The cart turns left or right or goes straight on; the reward is for way without a hit."""

    observation_space = gymnasium.spaces.Box(0, 1, (RAYS,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.centres = self.np_random.uniform(-20, 20, (OBSTACLES, 2))
        self.radii = self.np_random.uniform(0.3, 1.5, OBSTACLES)
        self.place, self.heading, self.time = np.zeros(2), 0.0, 0
        return self.scan(), {}

    def scan(self):
        """How far each ray goes, in parts of the range."""
        distances = []
        for ray in range(RAYS):
            angle = self.heading + 2 * math.pi * ray / RAYS
            east, north = math.cos(angle), math.sin(angle)
            nearest = RANGE
            for (x, y), radius in zip(self.centres, self.radii, strict=True):
                x, y = x - self.place[0], y - self.place[1]
                along = x * east + y * north
                beside = radius**2 - (x * x + y * y - along * along)
                if along > 0 and beside > 0:
                    nearest = min(nearest, max(0.0, along - math.sqrt(beside)))
            distances.append(nearest / RANGE)
        return np.array(distances, np.float32)

    def step(self, action):
        self.heading += 0.2 * (int(action) - 1)
        self.place = self.place + 0.3 * np.array([math.cos(self.heading), math.sin(self.heading)])
        self.time += 1
        seen = self.scan()
        hit = bool(seen.min() == 0)
        return seen, -5.0 if hit else float(seen[0]), hit, self.time >= HORIZON, {}


class ArrayCourse(Course):
    def scan(self):
        angles = self.heading + 2 * np.pi * np.arange(RAYS) / RAYS
        to = self.centres - self.place
        along = np.stack([np.cos(angles), np.sin(angles)], 1) @ to.T
        beside = self.radii**2 - ((to**2).sum(1) - along**2)
        reach = np.maximum(0.0, along - np.sqrt(np.maximum(beside, 0.0)))
        nearest = np.where((along > 0) & (beside > 0), reach, RANGE).min(1)
        return (np.minimum(nearest, RANGE) / RANGE).astype(np.float32)


class OpenCourse(Course):
    def scan(self):
        return np.full(RAYS, 0.5, np.float32)


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(RAYS, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU())
        self.actor, self.critic = nn.Linear(128, 3), nn.Linear(128, 1)

    def forward(self, observation):
        hidden = self.body(observation)
        return torch.distributions.Categorical(logits=self.actor(hidden)), self.critic(hidden).squeeze(-1)


def drive(course, model):
    """One drive: what was seen, done and rewarded."""
    seen, _ = course.reset()
    observations, actions, rewards, over = [], [], [], False
    while not over:
        observations.append(torch.from_numpy(seen))
        with torch.no_grad():
            actions.append(model(observations[-1])[0].sample())
        seen, reward, hit, late, _ = course.step(actions[-1].item())
        rewards.append(reward)
        over = hit or late
    return torch.stack(observations), torch.stack(actions), torch.tensor(rewards)


def main():
    args = parse_args()
    torch.manual_seed(0)
    course = {"slow": Course, "fast": ArrayCourse, "free": OpenCourse}[args.variant]()
    course.reset(seed=0)
    model = ActorCritic()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    clock = Clock(args.seconds)
    while not clock.done:
        observations, actions, rewards = drive(course, model)
        returns = rewards.flip(0).cumsum(0).flip(0)
        policy, values = model(observations)
        advantage = returns - values
        loss = -(policy.log_prob(actions) * advantage.detach()).mean() + 0.5 * advantage.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick(len(actions))
    clock.report()


if __name__ == "__main__":
    main()
