"""Callbacks of real frameworks: how often each is called on which event; and the unit of reinforcement learning."""

import importlib.util

import pytest

pytestmark = pytest.mark.slow

LIGHTNING = """
    import time

    import lightning
    import torch
    from lightning.pytorch.callbacks import LambdaCallback
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset


    class Slow(lightning.Callback):
        def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
            time.sleep(0.1)

        def on_train_epoch_end(self, trainer, module):
            torch.save(module.state_dict(), "weights.pt")


    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(32, 4)

        def training_step(self, batch):
            return self.layer(batch[0]).square().mean()

        def on_before_optimizer_step(self, optimizer):
            self.norm = self.layer.weight.norm()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)


    def note_start(trainer, module):
        time.sleep(0.01)


    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    callbacks = [Slow(), LambdaCallback(on_train_epoch_start=note_start)]
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", callbacks=callbacks, **quiet)
    trainer.fit(Model(), DataLoader(TensorDataset(torch.randn(240, 32)), batch_size=8))
"""

IN_A_CLOSURE = """
    import lightning
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset


    class Ranking:
        def update(self, scores):
            for _ in range(200):
                self.best = sum(sorted(scores.tolist(), key=abs)[-10:])


    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(32, 64)
            self.ranking = Ranking()

        def training_step(self, batch):
            out = self.layer(batch[0])
            self.ranking.update(out.detach().flatten())
            return out.square().mean()

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())


    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = lightning.Trainer(max_epochs=12, accelerator="cpu", **quiet)
    trainer.fit(Model(), DataLoader(TensorDataset(torch.randn(600, 32)), batch_size=8))
"""

KERAS = """
    import os
    import time

    os.environ["KERAS_BACKEND"] = "torch"
    import keras
    import numpy as np


    class Slow(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            time.sleep(0.05)


    def note(epoch, logs):
        time.sleep(0.01)


    model = keras.Sequential([keras.Input((32,)), keras.layers.Dense(4)])
    model.compile("sgd", "mse")
    callbacks = [Slow(), keras.callbacks.LambdaCallback(on_epoch_end=note)]
    data = np.random.rand(160, 32), np.random.rand(160, 4)
    model.fit(*data, batch_size=8, epochs=2, verbose=0, callbacks=callbacks)
"""

TRANSFORMERS = """
    import time

    import torch
    from torch import nn
    from transformers import Trainer, TrainerCallback, TrainingArguments


    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(32, 4)

        def forward(self, x=None, labels=None):
            return {"loss": (self.layer(x) - labels).square().mean()}


    class Slow(TrainerCallback):
        def on_step_end(self, args, state, control, **more):
            time.sleep(0.05)


    rows = [{"x": torch.randn(32), "labels": torch.zeros(4)} for _ in range(160)]
    quiet = {"report_to": [], "save_strategy": "no", "disable_tqdm": True, "use_cpu": True}
    arguments = TrainingArguments("out", per_device_train_batch_size=8, num_train_epochs=2, **quiet)
    Trainer(Model(), arguments, train_dataset=rows, callbacks=[Slow()]).train()
"""

REINFORCEMENT = """
    import sys
    import time

    import gymnasium
    import numpy as np
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback, CallbackList
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv


    class Maze(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(-1, 1, (4,), np.float32)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.moves = 0
            return np.zeros(4, np.float32), {}

        def step(self, action):
            self.moves += 1
            look_around()
            return np.full(4, self.moves / 64, np.float32), 1.0, self.moves >= 64, False, {}


    def look_around():
        time.sleep(0.05)


    class Counter(BaseCallback):
        def _on_step(self):
            return True


    def go_on(local_variables, global_variables):
        return True


    if __name__ == "__main__":
        vector = {"processes": SubprocVecEnv, "in turn": DummyVecEnv}[sys.argv[1]]
        model = PPO("MlpPolicy", vector([Maze, Maze]), n_steps=16, batch_size=32, n_epochs=1, device="cpu")
        model.learn(128, callback=CallbackList([Counter(), Counter()]))
        model.learn(32, callback=go_on)
"""


def needs(package):
    return pytest.mark.skipif(importlib.util.find_spec(package) is None, reason=f"{package} is not installed")


def line_of(program, text):
    """Of the written program, which ends without the first newline."""
    return next(number for number, line in enumerate(program.lstrip("\n").splitlines(), 1) if text in line)


def run(workspace, program, *arguments):
    """The report of the watched program, and its callbacks by their names."""
    script = workspace.write("train.py", program)
    watched = workspace.watched("train.py", *arguments)
    assert watched.status == 0, watched.err
    callbacks = {f"{row['callback']}.{row['event']}": row for row in watched.report["callbacks"]}
    assert all(0 <= row["share"] <= 1 for row in callbacks.values())
    assert all(row["total_s"] == pytest.approx(row["mean_s"] * row["calls"]) for row in callbacks.values())
    return watched, callbacks, script


def check_place(row, program, text):
    assert (row["file"].endswith("train.py"), row["line"]) == (True, line_of(program, text))


@needs("lightning")
def test_lightning(workspace):
    watched, callbacks, _ = run(workspace, LIGHTNING)
    slow = callbacks["Slow.on_train_batch_end"]
    assert (slow["framework"], slow["calls"]) == ("lightning", 60)
    check_place(slow, LIGHTNING, "def on_train_batch_end")
    assert callbacks["Slow.on_train_epoch_end"]["calls"] == 2
    assert "torch.save" not in callbacks  # it belongs to Slow.on_train_epoch_end
    assert callbacks["Model.on_before_optimizer_step"]["calls"] == 60
    assert callbacks["note_start.on_train_epoch_start"]["calls"] == 2
    check_place(callbacks["note_start.on_train_epoch_start"], LIGHTNING, "def note_start")
    assert not any("training_step" in name or "configure" in name for name in callbacks)
    assert watched.report["verdict"]["pattern"] == "callback-bound"
    assert watched.report["verdict"]["culprit"]["function"] == "Slow.on_train_batch_end"


@needs("lightning")
def test_lightnings_training_step_is_no_part_of_the_optimizers(workspace):
    watched, _, _ = run(workspace, IN_A_CLOSURE)
    verdict = watched.report["verdict"]
    assert (verdict["pattern"], verdict["culprit"]["function"]) == ("host-bound", "Ranking.update")
    phases = {phase["name"]: phase["share"] for phase in watched.report["phases"]}
    assert phases["other"] > phases["optimizer"]


@needs("keras")
def test_keras(workspace):
    _, callbacks, _ = run(workspace, KERAS)
    assert callbacks["Slow.on_train_batch_end"]["calls"] == 40
    check_place(callbacks["Slow.on_train_batch_end"], KERAS, "def on_train_batch_end")
    assert callbacks["note.on_epoch_end"]["calls"] == 2
    check_place(callbacks["note.on_epoch_end"], KERAS, "def note")
    assert not any(name.startswith("CallbackList") for name in callbacks)


@needs("transformers")
def test_transformers(workspace):
    _, callbacks, _ = run(workspace, TRANSFORMERS)
    assert callbacks["Slow.on_step_end"]["calls"] == 40
    check_place(callbacks["Slow.on_step_end"], TRANSFORMERS, "def on_step_end")
    assert not any(name.startswith("CallbackHandler") for name in callbacks)


@needs("stable_baselines3")
@pytest.mark.parametrize("vector", ["processes", pytest.param("in turn", marks=pytest.mark.long)])
def test_stable_baselines_steps_a_vector_of_environments(workspace, vector):
    watched, callbacks, _ = run(workspace, REINFORCEMENT, vector)
    speed = watched.report["throughput"]
    assert speed["env_steps_per_s"] == pytest.approx(2 * speed["steps_per_s"])
    assert watched.report["run"]["steps"] <= 80  # vectors, not environments
    phases = {phase["name"]: phase["share"] for phase in watched.report["phases"]}
    assert phases["env"] > 0.5 and phases.get("validation", 0) == 0
    verdict = watched.report["verdict"]
    assert (verdict["pattern"], verdict["cause"]) == ("environment-bound", "env")
    assert verdict["culprit"]["function"] in ("look_around", "Maze.step")
    assert callbacks["Counter._on_step"]["calls"] == 128  # of two of them, in 64 steps
    assert callbacks["go_on._on_step"]["calls"] == 16
    check_place(callbacks["go_on._on_step"], REINFORCEMENT, "def go_on")
