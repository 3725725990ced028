"""PPO of Ray RLlib, environments in the driver. Planted: the environment adds up the waves in Python; the cure does so with
arrays."""

import gymnasium
import numpy as np
import ray
from planted import parse_args, rate
from ray.rllib.algorithms.ppo import PPOConfig
from ray.tune.registry import register_env

WAVES = 6000
STEPS_PER_ITERATION = 256


class Ferry(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-10, 10, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self, settings=None):
        rng = np.random.default_rng(0)
        self.heights, self.speeds = rng.random(WAVES), rng.random(WAVES)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = 0.0, 0
        return self.observe(), {}

    def observe(self):
        return np.array([self.place, self.time / 100, self.swell() / WAVES], np.float32)

    def swell(self):
        total = 0.0
        for height, speed in zip(self.heights.tolist(), self.speeds.tolist()):
            phase = (self.place * speed + self.time * speed) % 2.0
            total += height * (phase if phase < 1.0 else 2.0 - phase)
        return total

    def step(self, action):
        self.place += (int(action) - 1) * 0.1
        self.time += 1
        return self.observe(), -abs(self.place), False, self.time >= 100, {}


class ArrayFerry(Ferry):
    def swell(self):
        phases = (self.place * self.speeds + self.time * self.speeds) % 2.0
        return float((self.heights * np.where(phases < 1.0, phases, 2.0 - phases)).sum())


def main():
    args = parse_args()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    register_env("ferry", Ferry if args.variant == "slow" else ArrayFerry)
    config = (
        PPOConfig()
        .environment("ferry")
        .env_runners(num_env_runners=0, num_envs_per_env_runner=4)
        .training(train_batch_size_per_learner=STEPS_PER_ITERATION, minibatch_size=128, num_epochs=2)
        .debugging(seed=0, log_level="ERROR")
    )
    algorithm = config.build_algo()
    with rate(args.steps):
        for _ in range(max(1, args.steps * 4 // STEPS_PER_ITERATION)):
            algorithm.train()
    print("iterations", algorithm.iteration)
    algorithm.stop()


if __name__ == "__main__":
    main()
