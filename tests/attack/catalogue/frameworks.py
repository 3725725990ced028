"""Callbacks of frameworks, whose classes unstall changes: they look, work, fail and pickle as they did."""

from __future__ import annotations

from .case import Case

_LOOKS = """
import copy, inspect, pickle, traceback
import numpy as np
import torch

torch.manual_seed(0)
torch.set_num_threads(1)


def look(callback, event):
    method = getattr(type(callback), event)
    print(inspect.isfunction(method), inspect.signature(method), method.__qualname__, method.__module__, method.__doc__)
    print(inspect.getsource(method).strip(), getattr(callback, event).__self__ is callback)
    print([name for name in vars(type(callback)) if not name.startswith("__")], sorted(vars(callback)))
    assert type(pickle.loads(pickle.dumps(callback))) is type(copy.deepcopy(callback)) is type(callback)
    assert pickle.loads(pickle.dumps(method)) == method


def digest(module):
    return [np.asarray(tensor.detach()).tobytes().hex()[:32] for tensor in module.parameters()]


def failing(call):
    try:
        call()
    except Exception:
        print(traceback.format_exc())
"""

_LIGHTNING = """
import lightning
from lightning.pytorch.callbacks import LambdaCallback
from lightning.pytorch.utilities import rank_zero_only
from lightning.pytorch.utilities.model_helpers import is_overridden
from torch.utils.data import DataLoader, TensorDataset


class Mine(lightning.Callback):
    calls = 0
    fail = False

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        "Count."
        self.calls += 1
        if self.fail:
            raise RuntimeError("in a callback")

    @rank_zero_only
    def on_train_end(self, trainer, module):
        print("ended", self.calls)


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)

    def training_step(self, batch):
        return self.layer(batch[0]).square().mean()

    def on_train_batch_start(self, batch, batch_idx):
        return -1 if batch_idx == 6 else None

    def on_after_batch_transfer(self, batch, dataloader_idx):
        return [batch[0] * 2]

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def note(trainer, module):
    print("epoch", trainer.current_epoch)


def fit(*callbacks):
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    model = Model()
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", callbacks=[*callbacks], **quiet)
    trainer.fit(model, DataLoader(TensorDataset(torch.ones(40, 4)), batch_size=4))
    print(digest(model), trainer.global_step)


mine, given = Mine(), LambdaCallback(on_train_epoch_start=note)
look(mine, "on_train_batch_end")
print(sorted(vars(given)), inspect.signature(LambdaCallback), inspect.signature(given.on_train_epoch_start))
print([is_overridden(name, Model(), lightning.LightningModule) for name in ("on_train_batch_start", "on_train_end")])
fit(mine, given)
mine.fail = True
failing(lambda: fit(mine))
failing(lambda: LambdaCallback(on_no_such_event=note))
"""

_STABLE_BASELINES3 = """
import gymnasium
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, ConvertCallback, EvalCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize


class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.moves = 0
        return np.zeros(3, np.float32), {}

    def step(self, action):
        self.moves += 1
        return np.full(3, self.moves / 9, np.float32), float(action), self.moves == 9, False, {}


class Mine(BaseCallback):
    fail = False

    def _on_step(self):
        "Count."
        if self.fail:
            raise RuntimeError("in a callback")
        return self.n_calls < 40


class Unfinished(BaseCallback):
    def _on_rollout_end(self):
        pass


def go_on(local_variables, global_variables):
    return local_variables["n_steps"] >= 0


def learn(callback):
    vector = VecNormalize(DummyVecEnv([Env, Env]))
    model = PPO("MlpPolicy", vector, n_steps=8, batch_size=8, n_epochs=2, seed=1, device="cpu")
    model.learn(64, callback=callback)
    print(digest(model.policy)[:3], model.num_timesteps)


mine = Mine()
look(mine, "_on_step")
print(inspect.signature(VecEnv.step), DummyVecEnv.step is VecEnv.step, VecEnv.__abstractmethods__ == DummyVecEnv.__abstractmethods__)
print(inspect.signature(ConvertCallback), ConvertCallback(go_on).callback.__name__, Unfinished.__abstractmethods__)
learn(CallbackList([mine, EvalCallback(VecNormalize(DummyVecEnv([Env])), eval_freq=8, n_eval_episodes=2, verbose=0)]))
learn(go_on)
learn([mine, Mine()])
mine.fail = True
failing(lambda: learn(mine))
failing(Unfinished)
failing(lambda: DummyVecEnv([Env]).step())
"""

_KERAS = """
import os
os.environ["KERAS_BACKEND"] = "torch"
import keras


class Mine(keras.callbacks.Callback):
    fail = False

    def on_train_batch_end(self, batch, logs=None):
        "Stop."
        if self.fail:
            raise RuntimeError("in a callback")
        self.model.stop_training = batch > 6


def note(epoch, logs):
    print("epoch", epoch, sorted(logs))


def fit(*callbacks):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    history = model.fit(np.ones((40, 4)), np.ones((40, 2)), 4, 3, verbose=0, callbacks=[*callbacks])
    print(history.history, [array.tobytes().hex()[:32] for array in model.get_weights()])


mine, given = Mine(), keras.callbacks.LambdaCallback(on_epoch_end=note, threshold=3)
print(inspect.isfunction(Mine.on_train_batch_end), inspect.signature(Mine.on_train_batch_end), sorted(vars(given)))
print(inspect.signature(keras.callbacks.LambdaCallback), inspect.signature(given.on_epoch_end), given.threshold)
fit(mine, given, keras.callbacks.EarlyStopping("loss"))
mine.fail = True
failing(lambda: fit(mine))
failing(lambda: keras.callbacks.LambdaCallback(None, None, None, None, None, None, None))
"""

CASES: list[Case] = [
    Case(f"callbacks: {framework}", _LOOKS + source, needs=("torch", framework), heavy=True, shell="2>/dev/null")
    for framework, source in (
        ("lightning", _LIGHTNING),
        ("stable_baselines3", _STABLE_BASELINES3),
        ("keras", _KERAS),
    )
]
"""Lightning writes the address of its tips, and how fast it is, to stderr."""
