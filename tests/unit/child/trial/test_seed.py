"""Two runs under one seed draw the same numbers, however many workers load the data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import types

import pytest

from unstall.benchmark.launcher import BOOTSTRAP
from unstall.child.trial import seed

PROGRAM = """
    import random, sys
    import numpy as np
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Noise(Dataset):
        def __len__(self):
            return 8
        def __getitem__(self, index):
            return index, random.random(), float(np.random.rand()), torch.rand(2)

    if __name__ == "__main__":
        workers = int(sys.argv[1])
        def make():
            return DataLoader(Noise(), batch_size=2, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
        loader, kept = make(), []
        for epoch in range(int((sys.argv + [2])[2])):
            if "fresh" in sys.argv:
                del loader
                kept.append(bytearray(epoch * 1000))  # so that the next is at the place of another one
                loader = make()
            for batch in loader:
                print(*(part.tolist() for part in batch), torch.rand(1).item(), np.random.default_rng().random())
"""


def run(tmp_path, plan, *args):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PROGRAM))
    folder = tmp_path / "run"
    folder.mkdir(exist_ok=True)
    env = {
        **os.environ,
        "PYTHONPATH": str(BOOTSTRAP),
        "UNSTALL_RUN_DIR": str(folder),
        "UNSTALL_CHILD": "unstall.child.trial",
        "UNSTALL_PLAN": json.dumps(plan),
    }
    done = subprocess.run([sys.executable, str(script), *args], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not list(folder.glob("*error*")) and not list(folder.glob("complaints*")), list(folder.iterdir())
    return done.stdout


@pytest.mark.timeout(240)
def test_samples_and_the_main_process_draw_the_same_with_and_without_workers(tmp_path):
    plan = {"seed": {"seed": 7}}
    alone, with_two = run(tmp_path, plan, "0"), run(tmp_path, plan, "2")
    assert alone == with_two and len(set(alone.splitlines())) == 8
    assert run(tmp_path, {"seed": {"seed": 8}}, "0") != alone


@pytest.mark.timeout(240)
def test_epochs_are_the_same_whether_each_has_a_loader_of_its_own(tmp_path):
    plan = {"seed": {"seed": 7}}
    one, fresh = run(tmp_path, plan, "0", "4"), run(tmp_path, plan, "0", "4", "fresh")
    assert [line.split("]")[0] for line in one.splitlines()] == [line.split("]")[0] for line in fresh.splitlines()]
    epochs = [tuple(fresh.splitlines()[4 * epoch : 4 * epoch + 4]) for epoch in range(4)]
    assert len({*epochs}) == 4
    assert run(tmp_path, plan, "0", "4", "fresh") == fresh


@pytest.mark.timeout(240)
def test_folding_visits_few_samples_again(tmp_path):
    lines = run(tmp_path, {"seed": {"seed": None, "fold": 3}}, "0").splitlines()
    seen = {int(one) for line in lines for one in line.split("]")[0].strip("[ ").split(",")}
    assert seen == {0, 1, 2}


SEEDED = """
    import random
    import numpy as np
    import torch

    random.seed(a=1)
    np.random.seed(2)
    torch.manual_seed(3)
    print(random.random(), np.random.rand(), np.random.default_rng(4).random(), torch.rand(1).item(), sep="\\n")
"""


def test_the_seeds_that_a_program_sets_itself_can_be_shifted(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PROGRAM", SEEDED)
    own, again = (run(tmp_path, {"seed": {"seed": 7}}).splitlines() for _ in range(2))
    shifted = run(tmp_path, {"seed": {"seed": 7, "shift": 1234}}).splitlines()
    assert own == again
    assert all(a != b for a, b in zip(own, shifted))


PRIVATE = """
    import random
    import numpy as np
    import torch

    print(random.Random(7).random(), random.Random(x=7).random())
    print(np.random.RandomState(7).rand(), torch.rand(1, generator=torch.Generator().manual_seed(7)).item())
    print(isinstance(np.random.mtrand._rand, np.random.RandomState), isinstance(torch.default_generator, torch.Generator))
    print(type(random.Random()).__name__, random.SystemRandom().random() < 1)
"""


def test_private_generators_are_shifted_too(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PROGRAM", PRIVATE)
    plain, shifted, again = (run(tmp_path, {"seed": {"shift": shift}}).split() for shift in (None, 5, 5))
    assert shifted == again
    assert all(a != b for a, b in zip(plain[:4], shifted[:4]))
    assert plain[0] == plain[1] and plain[4:] == shifted[4:] == ["True", "True", "Random", "True"]


OF_NUMPY = """
    import copy, pickle
    import numpy as np
    from numpy.random import Generator, MT19937, PCG64, Philox, SeedSequence

    for bits in (PCG64, MT19937, Philox):
        print(Generator(bits(7)).random(), Generator(bits(seed=7)).random())
    sequence = SeedSequence(7)
    print(np.random.default_rng(sequence).random(), np.random.default_rng(sequence.spawn(1)[0]).random())
    bits = PCG64(7)
    print(isinstance(np.random.default_rng().bit_generator, PCG64))
    print(pickle.loads(pickle.dumps(bits)).state == bits.state, copy.deepcopy(Generator(bits)).random() < 1)
"""


def test_numpys_bit_generators_and_sequences_are_shifted_too(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PROGRAM", OF_NUMPY)
    plain, shifted, again = (run(tmp_path, {"seed": {"shift": shift}}).split() for shift in (None, 5, 5))
    assert shifted == again
    assert all(a != b for a, b in zip(plain[:8], shifted[:8]))
    assert plain[0] == plain[1] and plain[8:] == shifted[8:] == ["True"] * 3


ENVIRONMENTS = """
    import gymnasium as gym

    env, other = gym.make("CartPole-v1"), gym.make("CartPole-v1")
    print(env.reset()[0].tolist(), other.reset()[0].tolist(), env.reset()[0].tolist(), env.action_space.sample())
    print(env.reset(seed=3)[0].tolist())
"""


@pytest.mark.timeout(240)
def test_environments_that_are_reset_without_a_seed_begin_alike_in_two_runs(tmp_path, monkeypatch):
    pytest.importorskip("gymnasium")
    monkeypatch.setitem(globals(), "PROGRAM", ENVIRONMENTS)
    plain, first, second, other = (
        run(tmp_path, plan).splitlines()
        for plan in ({}, {"seed": {"seed": 1}}, {"seed": {"seed": 1}}, {"seed": {"seed": 2}})
    )
    assert first == second and first[0] != other[0] and first[0] != plain[0]
    assert first[1] == other[1] == plain[1]  # a seed that the program gives stays
    one, two, *_ = first[0].split("] ")
    assert one != two


def test_what_a_version_of_a_library_has_not_need_not_be_seeded():
    library = types.SimpleNamespace()
    seed._shift(library, "key", 7)
    seed._shift_class(library, "PCG64DXSM", ("__init__",), 7)
    assert vars(library) == {}
