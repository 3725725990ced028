"""PPO of Stable-Baselines3. Planted: the environment measures all distances between robots in Python; the cure does so with
arrays. A step is one of the vector."""

import gymnasium
import numpy as np
from planted import parse_args, rate
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

ROBOTS = 160


class Warehouse(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-10, 10, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.places, self.time = self.np_random.random((ROBOTS, 2)), 0
        return self.observe(), {}

    def observe(self):
        return np.concatenate([self.places[0], self.places.mean(0)]).astype(np.float32)

    def nearest(self):
        best = 10.0
        places = self.places.tolist()
        for one in range(ROBOTS):
            for other in range(one):
                across = places[one][0] - places[other][0]
                along = places[one][1] - places[other][1]
                best = min(best, (across * across + along * along) ** 0.5)
        return best

    def step(self, action):
        self.places[0] += ((0.01, 0), (-0.01, 0), (0, 0.01), (0, -0.01))[int(action)]
        self.time += 1
        return self.observe(), self.nearest(), False, self.time >= 100, {}


class ArrayWarehouse(Warehouse):
    def nearest(self):
        apart = np.linalg.norm(self.places[:, None] - self.places[None], axis=2)
        return float(apart[np.tril_indices(ROBOTS, -1)].min())


def main():
    args = parse_args()
    make = Warehouse if args.variant == "slow" else ArrayWarehouse
    envs = make_vec_env(make, n_envs=4, seed=0)
    model = PPO("MlpPolicy", envs, n_steps=128, batch_size=128, n_epochs=2, seed=0, device="cpu")
    with rate(args.steps):
        model.learn(args.steps * envs.num_envs)
    print("parameters", sum(float(parameter.sum()) for parameter in model.policy.parameters()))


main()
