"""A2C of Stable-Baselines3 on environments in processes of their own. Planted: each step of a market computes its moving
averages tick by tick in Python; the cure sums arrays."""

import gymnasium
import numpy as np
from planted import parse_args, rate
from stable_baselines3 import A2C
from stable_baselines3.common.vec_env import SubprocVecEnv

TICKS = 1500


class Market(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-10, 10, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.prices, self.time = self.np_random.normal(size=TICKS).cumsum() / 40, 0
        return self.observe(), {}

    def averages(self):
        means = []
        for window in (20, 80, 320, 640):
            total = 0.0
            for back in range(1, window + 1):
                for tick in range(0, 80, 2):
                    total += self.prices[-back - tick] / 40
            means.append(total / window)
        return means

    def observe(self):
        return np.clip(np.array(self.averages()), -10, 10).astype(np.float32)

    def step(self, action):
        move = self.np_random.normal() / 40
        self.prices = np.append(self.prices[1:], self.prices[-1] + move)
        self.time += 1
        return self.observe(), float(move * (action - 1)), False, self.time >= 200, {}


class ArrayMarket(Market):
    def averages(self):
        ends = [len(self.prices) - tick for tick in range(0, 80, 2)]
        return [np.mean([self.prices[end - window : end].mean() for end in ends]) for window in (20, 80, 320, 640)]


def main():
    args = parse_args()
    market = Market if args.variant == "slow" else ArrayMarket
    envs = SubprocVecEnv([market, market], start_method="fork")
    model = A2C("MlpPolicy", envs, n_steps=8, device="cpu", seed=0)
    with rate(args.steps):
        model.learn(args.steps)
    envs.close()
    print("weights", sum(float(parameter.detach().abs().sum()) for parameter in model.policy.parameters()))


if __name__ == "__main__":
    main()
