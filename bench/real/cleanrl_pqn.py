"""Run CleanRL's PQN as it is, on a CartPole of this driver's instead of envpool's."""

import runpy
import sys
import time
from types import ModuleType

import gymnasium
import numpy as np


class Wrapper:
    """As gym's was: what it has not itself, it takes from the environment."""

    def __init__(self, env):
        self.env = env

    def __getattr__(self, name):
        return getattr(self.env, name)

    def reset(self, **options):
        return self.env.reset(**options)

    def step(self, action):
        return self.env.step(action)


class CartPoles:
    """Many CartPoles in one array, with envpool's interface of gym 0.2x: four values a step, resets by itself."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, count, seed):
        self.rng = np.random.default_rng(seed)
        self.state = np.zeros((count, 4))
        self.steps = np.zeros(count)

    def reset(self, **options):
        self.state = self.rng.uniform(-0.05, 0.05, self.state.shape)
        self.steps[:] = 0
        return self.state.astype(np.float32)

    def step(self, action):
        x, speed, angle, turn = self.state.T
        force = np.where(action == 1, 10.0, -10.0)
        pull = (force + 0.05 * turn**2 * np.sin(angle)) / 1.1
        spin = (9.8 * np.sin(angle) - np.cos(angle) * pull) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
        push = pull - 0.05 * spin * np.cos(angle) / 1.1
        self.state = np.stack([x + 0.02 * speed, speed + 0.02 * push, angle + 0.02 * turn, turn + 0.02 * spin], axis=1)
        self.steps += 1
        done = (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > 0.2095) | (self.steps >= 500)
        self.state[done] = self.rng.uniform(-0.05, 0.05, (int(done.sum()), 4))
        self.steps[done] = 0
        return self.state.astype(np.float32), np.ones(len(done), dtype=np.float32), done, {}

    def close(self):
        pass


envpool = ModuleType("envpool")
envpool.make = lambda env_id, env_type, num_envs, seed: CartPoles(num_envs, seed)
gym = ModuleType("gym")
gym.Wrapper, gym.spaces = Wrapper, gymnasium.spaces
sys.modules.update(envpool=envpool, gym=gym)
sys.argv = ["pqn.py", "--total-timesteps", "150000", "--num-envs", "8", "--num-steps", "128", "--num-minibatches", "4"]

began = time.perf_counter()
runpy.run_module("cleanrl.pqn", run_name="__main__")
print(f"seconds={time.perf_counter() - began:.3f}")
