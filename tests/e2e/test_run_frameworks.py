"""Training loops of frameworks other than plain torch, as people write them, in real processes of the real framework."""

import importlib.util

import pytest

JAX_LOOP = """
import time

import jax
import jax.numpy as jnp
import numpy as np

SAMPLES = np.random.default_rng(0).normal(size=(64, 32)).astype(np.float32)


def augment(batch):
    time.sleep(0.03)
    return batch + 0.01


def batches(n):
    for _ in range(n):
        yield augment(SAMPLES)


@jax.jit
def train_step(params, x):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((jnp.tanh(x @ p) - x) ** 2))(params)
    return params - 0.1 * grads, loss


params = jnp.eye(32) * 0.1
for x in batches(120):
    params, loss = train_step(params, x)
print(float(loss), isinstance(train_step, jax.stages.Wrapped), "tanh" in train_step.lower(params, x).as_text())
"""

JAX_RECOMPILING = """
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def train_step(params, x):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((jnp.tanh(x @ p) - x) ** 2))(params)
    return params - 0.1 * grads, loss


def main():
    params = jnp.eye(32) * 0.1
    for length in range(10, 50):
        params, loss = train_step(params, np.ones((length, 32), np.float32))
    print(float(loss))


main()
"""

KERAS_FIT = """
import time

import keras
import numpy as np


class Pairs(keras.utils.PyDataset):
    def __len__(self):
        return 25

    def __getitem__(self, index):
        time.sleep(0.1)
        x = np.random.default_rng(index).normal(size=(32, 16)).astype("float32")
        return x, x


keras.utils.set_random_seed(0)
model = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(16)])
model.compile(optimizer="adam", loss="mse")
history = model.fit(Pairs(), epochs=2, verbose=0)
print(history.history["loss"])
"""


FASTAI_OPTIMIZERS = """
import torch
from fastai.optimizer import Adam, OptimWrapper

torch.manual_seed(0)
for make in (Adam, lambda parameters, lr: OptimWrapper(parameters, torch.optim.Adam, lr=lr)):
    model = torch.nn.Linear(64, 64)
    optimizer = make(list(model.parameters()), lr=0.001)
    for step in range(30):
        loss = model(torch.ones(32, 64)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(loss.item())
"""

RAY_DATA = """
import time

import ray
import torch


def decode(rows):
    time.sleep(0.1)
    return {"x": rows["id"].reshape(-1, 1).repeat(32, axis=1).astype("float32") % 7}


def batches():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    data = ray.data.range(400, override_num_blocks=50).map_batches(decode, batch_size=8)
    for batch in data.iter_torch_batches(batch_size=8):
        yield batch["x"]
"""

TRAINING = """

def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for batch in batches():
        x = torch.stack(batch) if isinstance(batch, list) else batch
        loss = (model(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
"""

SPDL_PIPELINE = """
import time

import torch
from spdl.pipeline import PipelineBuilder


def decode(index):
    time.sleep(0.15)
    return torch.full((16, 32), float(index % 7))


def batches():
    pipeline = PipelineBuilder().add_source(range(40)).pipe(decode).add_sink(4).build(num_threads=1)
    with pipeline.auto_stop():
        yield from pipeline
"""

NODES = """
import time

import torch
from torchdata.nodes import Batcher, IterableWrapper, Loader, ParallelMapper


def decode(index):
    time.sleep(0.02)
    return torch.full((32,), float(index % 7))


def batches():
    node = ParallelMapper(IterableWrapper(range(320)), decode, num_workers=1, method="thread")
    return Loader(Batcher(node, batch_size=8))
"""

STATEFUL = """
import time

import torch
from torchdata.stateful_dataloader import StatefulDataLoader


class Pairs(torch.utils.data.Dataset):
    def __len__(self):
        return 320

    def __getitem__(self, index):
        time.sleep(0.04)
        return torch.full((32,), float(index % 7))


def batches():
    return StatefulDataLoader(Pairs(), batch_size=8, num_workers=2)
"""


def needs(*modules):
    """Skip where one of these is not installed; they are not imported here, as that of Keras asks for a backend."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")


def culprit(watched):
    return watched.report["verdict"]["culprit"]["function"]


def phases(watched):
    return {phase["name"] for phase in watched.report["phases"]}


def test_a_jax_loop_that_waits_for_its_generator(workspace):
    needs("jax")
    workspace.write("program.py", JAX_LOOP)
    plain, watched = workspace.both("program.py")
    assert watched.out == plain.out
    assert watched.report["verdict"]["pattern"] == "input-bound"
    assert culprit(watched) == "augment"
    assert {"data_wait", "dispatch"} <= phases(watched)


@pytest.mark.long
def test_a_jax_function_that_is_compiled_in_every_step(workspace):
    needs("jax")
    workspace.write("program.py", JAX_RECOMPILING)
    plain, watched = workspace.both("program.py")
    assert watched.out == plain.out
    assert watched.report["verdict"]["pattern"] == "compile-bound"
    assert culprit(watched) == "main"
    assert any("train_step was compiled" in line for line in watched.report["verdict"]["evidence"])


@pytest.mark.long
@pytest.mark.parametrize("backend, module", [("jax", "jax"), ("torch", "torch")])
def test_keras_waits_for_its_dataset(workspace, backend, module):
    needs("keras", module)
    workspace.write("program.py", KERAS_FIT)
    plain, watched = workspace.both("program.py", env={"KERAS_BACKEND": backend})
    assert watched.out == plain.out
    assert watched.report["verdict"]["pattern"] == "input-bound"
    assert culprit(watched) == "Pairs.__getitem__"
    assert ("optimizer" if backend == "torch" else "dispatch") in phases(watched)


def test_fastai_steps_its_own_optimizer_or_one_of_torchs(workspace):
    """Each step counts once, also where one optimizer steps another."""
    needs("fastai", "fastcore")
    workspace.write("program.py", FASTAI_OPTIMIZERS)
    plain, watched = workspace.both("program.py")
    assert watched.out == plain.out
    assert "optimizer" in phases(watched)
    assert watched.steps <= 30


@pytest.mark.parametrize(
    "module, loader, slow",
    [
        ("spdl", SPDL_PIPELINE, "decode"),
        pytest.param("torchdata", NODES, "decode", marks=pytest.mark.long),
        pytest.param("torchdata", STATEFUL, "Pairs.__getitem__", marks=pytest.mark.long),
    ],
    ids=["spdl", "nodes", "stateful"],
)
def test_a_slow_stage_of_a_loader_that_is_not_torchs(workspace, module, loader, slow):
    needs(module)
    workspace.write("program.py", loader + TRAINING)
    plain, watched = workspace.both("program.py")
    assert watched.out == plain.out
    assert watched.report["verdict"]["pattern"] == "input-bound"
    assert culprit(watched) == slow


@pytest.mark.serial
@pytest.mark.long
def test_batches_of_ray_data_are_waited_for(workspace):
    """Ray's messages have times in them, so that only what the program itself prints can be compared."""
    needs("ray", "pyarrow")
    program = workspace.write("program.py", RAY_DATA + TRAINING)
    plain, watched = workspace.plain(program), workspace.watched(program)
    assert (watched.status, watched.out) == (plain.status, plain.out), watched.err
    assert watched.report["verdict"]["pattern"] == "input-bound"
    assert culprit(watched) == "decode"


GIVEN_UP = """
    import logging

    import torch
    from torch import nn

    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)  # its warnings hold the time


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(24))
            self.calls = 0
            self.largest = 0.0

        def forward(self, x):
            self.calls += 1
            for layer in self.layers:
                x = torch.tanh(layer(x)) * self.calls / 1e3 + x
            if x.abs().max() > 1e9:
                print("large")
            return x


    def main():
        torch.manual_seed(0)
        torch.set_num_threads(1)
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
        model = torch.compile(net, backend="eager")
        for step in range(1500):
            loss = model(torch.randn(16, 32)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(loss.item().hex(), len(torch._dynamo.utils.get_compilation_metrics()))


    main()
"""


def test_a_function_that_torch_compile_gives_up(workspace):
    file = workspace.write("program.py", GIVEN_UP)
    plain, watched = workspace.both("program.py")
    assert watched.out == plain.out  # as many compilations
    verdict = watched.report["verdict"]
    assert (verdict["pattern"], verdict["cause"], verdict["culprit"]["function"]) == (
        "compile-bound",
        "given-up",
        "Net.forward",
    )
    (function,) = watched.report["compiled"]
    assert (function["function"], function["file"]) == ("Net.forward", str(file))
    assert "self.calls ==" in function["given_up"]
    assert function["compilations"] >= 8 and all("self.calls ==" in reason for reason in function["reasons"])
    assert "program.py" in watched.err and "given up, runs uncompiled: self.calls ==" in watched.err
