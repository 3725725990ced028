"""Watching changes no number: the same seed gives the same losses, bit for bit, with unstall and without.

Each loop is long enough for all that happens meanwhile: the operators of a step counted, its modules timed, the
program's memory looked at, stacks sampled.
"""

import pytest
from harness import further_in_long

CNN = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset


    class Noise(Dataset):
        def __len__(self):
            return 320

        def __getitem__(self, index):
            return torch.randn(3, 24, 24), torch.randint(10, ()).item()


    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Dropout2d(0.2), nn.Conv2d(16, 16, 3), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10),
    )
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    for epoch in range(2):
        model.train()
        for images, labels in DataLoader(Noise(), batch_size=16, shuffle=True, num_workers=2):
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            print(loss.item().hex())
        model.eval()
        with torch.no_grad():
            print(sum(model(x).argmax(1).sum().item() for x, _ in DataLoader(Noise(), batch_size=64)))
"""

GRU = """
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    gru, head = nn.GRU(16, 48, 2, dropout=0.1), nn.Linear(48, 4)
    optimizer = torch.optim.RMSprop([*gru.parameters(), *head.parameters()])
    hidden = None
    for step in range(80):
        outputs, hidden = gru(torch.randn(20, 8, 16), hidden)
        hidden = hidden.detach()
        loss = nn.functional.cross_entropy(head(outputs[-1]), torch.randint(4, (8,)))
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(gru.parameters(), 0.5)
        optimizer.step()
        print(loss.item().hex(), norm.item().hex())
"""

TRANSFORMER = """
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    torch.set_num_threads(1)
    torch.manual_seed(0)
    embed, head = nn.Embedding(50, 32), nn.Linear(32, 50)
    layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, 0.1, batch_first=True), 2)
    model = nn.ModuleList([embed, layers, head])
    mask = nn.Transformer.generate_square_subsequent_mask(24)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(60):
        tokens = torch.randint(50, (8, 25))
        hidden = layers(embed(tokens[:, :-1]), mask=mask, is_causal=True)
        if step % 3 == 0:  # once more, forgotten and computed again in backward
            hidden = checkpoint(layers, hidden, use_reentrant=False)
        loss = nn.functional.cross_entropy(head(hidden).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item().hex())
    print([parameter.sum().item().hex() for parameter in model.parameters()])
"""

INFERENCE = """
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model = nn.Sequential(nn.Linear(16, 64), nn.TransformerEncoder(layer, 3), nn.Linear(64, 5)).eval()
    with torch.inference_mode():
        for step in range(150):
            print(model(torch.randn(16, 20, 16)).sum().item().hex())
"""

BLOCKS_OF_INFERENCE = """
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 5)).eval()
    for step in range(7):  # from here to the next call operators are counted
        print(model(torch.randn(16, 16)).sum().item().hex())
    for step in range(150):
        with torch.inference_mode():
            output = model(torch.randn(16, 16))
        print(torch.randn(4).sum().item().hex(), output.sum().item().hex())
"""

POLICY_GRADIENT = """
    import gymnasium as gym
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    env = gym.make("CartPole-v1")
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    for episode in range(25):
        observation, _ = env.reset(seed=episode)
        log_probabilities, rewards, done = [], [], False
        while not done:
            distribution = torch.distributions.Categorical(logits=policy(torch.as_tensor(observation)))
            action = distribution.sample()
            observation, reward, terminated, truncated, _ = env.step(action.item())
            log_probabilities.append(distribution.log_prob(action))
            rewards.append(reward)
            done = terminated or truncated
        loss = -torch.stack(log_probabilities).sum() * sum(rewards)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(len(rewards), loss.item().hex())
    env.close()
"""

ACCUMULATION = """
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    for step in range(160):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=step % 2 == 0):
            loss = model(torch.randn(16, 32)).float().square().mean() / 4
        scaler.scale(loss).backward()
        if step % 4 == 3:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        print(loss.item().hex())
"""

FURTHER = ("gru", "gradient accumulation", "blocks of inference mode")
"""Cases of what others show too."""

PROGRAMS = {
    "cnn with loader workers": CNN,
    "gru": GRU,
    "transformer with dropout": TRANSFORMER,
    "inference": INFERENCE,
    "blocks of inference mode": BLOCKS_OF_INFERENCE,
    "policy gradient": POLICY_GRADIENT,
    "gradient accumulation": ACCUMULATION,
}


@pytest.mark.parametrize("name", further_in_long(PROGRAMS, FURTHER))
def test_same_seed_same_losses(workspace, name):
    workspace.write("program.py", PROGRAMS[name])
    _, watched = workspace.both("program.py")
    assert watched.status == 0
    assert watched.steps >= 1


COMPILED = """
    import logging
    import sys

    import torch
    from torch import nn
    from torch._dynamo.utils import counters

    torch._logging.set_logs(all=logging.ERROR)  # lines with the time in them


    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))
            self.dropout = nn.Dropout(0.1)

        def forward(self, x):
            for layer in self.layers:
                x = self.dropout(torch.relu(layer(x)))
            return x.square().mean()


    class Broken(Model):
        def forward(self, x):
            torch._dynamo.graph_break()
            return super().forward(x)


    backend = sys.argv[1]
    torch.manual_seed(0)
    model, broken = Model(), Broken()
    optimizer = torch.optim.Adam([*model.parameters(), *broken.parameters()])
    whole = torch.compile(model, backend=backend, fullgraph=True)
    parts = torch.compile(broken, backend=backend)
    updates = [optimizer.step, torch.compile(optimizer.step, backend="eager")]


    @updates.append
    @torch.compile(backend="eager")
    def update():
        optimizer.step()


    @torch.compile(backend=backend, fullgraph=True)
    def function(x):
        return model(x) + model(2 * x)


    for step in range(40):
        size = 8 + step % 3  # recompiles once, for sizes that change
        loss = whole(torch.randn(size, 16)) + parts(torch.randn(8, 16)) + function(torch.randn(8, 16))
        optimizer.zero_grad()
        loss.backward()
        updates[step % 3]()
        print(loss.item().hex())
    for group in ("stats", "graph_break", "unimplemented", "recompile_limit"):
        print(group, dict(counters[group]))
    print(type(whole).__name__, isinstance(whole, nn.Module), torch.compiler.is_compiling())
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", pytest.param("aot_eager", marks=pytest.mark.long)])
def test_compiled_programs_are_compiled_the_same(workspace, backend):
    workspace.write("program.py", COMPILED)
    plain, watched = workspace.both("program.py", backend)
    assert "graph_break {}" not in plain.out
    assert watched.status == 0
    assert watched.steps >= 1


OWN_MODES = """
    import torch
    from torch.utils._python_dispatch import _get_current_dispatch_mode
    from torch.utils.flop_counter import FlopCounterMode


    def train(steps):
        model = torch.nn.Linear(16, 16)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.ones(8, 16)).sum().backward()
            optimizer.step()


    def counted(steps):
        with FlopCounterMode(display=False) as counter:
            train(steps)
        print(counter.get_total_flops(), _get_current_dispatch_mode())


    counted(2)  # unstall's own counter begins at the second step
    counted(5)
    train(2)
    counted(3)
    train(20)
    print(_get_current_dispatch_mode())
"""


def test_a_dispatch_mode_of_the_programs_own_counts_the_same(workspace):
    workspace.write("program.py", OWN_MODES)
    plain, watched = workspace.both("program.py")
    assert plain.out.count("None") == 4
    assert watched.steps >= 1


FREED = """
    import gc
    import weakref

    import torch


    def train(steps):
        model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.ones(8, 16)).sum().backward()
            optimizer.step()
        references = [weakref.ref(thing) for thing in (model, optimizer, model[0].weight)]
        del model, optimizer
        gc.collect()
        return [reference() is None for reference in references]


    print([train(steps) for steps in (1, 2, 3, 6, 30)])
"""


def test_models_that_the_program_deletes_are_freed_while_recording_goes_on(workspace):
    workspace.write("program.py", FREED)
    plain, watched = workspace.both("program.py")
    assert "False" not in plain.out
    assert watched.steps >= 1
