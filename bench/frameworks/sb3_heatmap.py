"""PPO of Stable-Baselines3 on CartPole. Planted: a callback draws a map of the value function after every step of the vector;
the cure draws it every 500."""

import json
import tempfile

import numpy as np
from planted import parse_args, rate
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env


class VisitMap(BaseCallback):
    def __init__(self, file, every):
        super().__init__()
        self.file, self.every = file, every
        self.visits = np.zeros((400, 400))

    def _on_step(self):
        for x, _, angle, _ in self.locals["new_obs"]:
            self.visits[int(np.clip(x * 80 + 200, 0, 399)), int(np.clip(angle * 400 + 200, 0, 399))] += 1
        if self.n_calls % self.every == 0:
            density = np.log1p(self.visits) / np.log1p(self.visits.max())
            self.file.write(json.dumps(density[::8, ::8].round(3).tolist()) + "\n")
        return True


def main():
    args = parse_args()
    envs = make_vec_env("CartPole-v1", n_envs=4, seed=0)
    model = PPO("MlpPolicy", envs, n_steps=128, batch_size=128, n_epochs=2, seed=0, device="cpu")
    with tempfile.TemporaryFile("w") as file, rate(args.steps):
        model.learn(args.steps * envs.num_envs, callback=VisitMap(file, every=1 if args.variant == "slow" else 500))
    print("parameters", sum(float(parameter.sum()) for parameter in model.policy.parameters()))


main()
