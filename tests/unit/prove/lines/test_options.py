"""Options and environment variables that a changed program no longer looks at."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstall.prove.lines.options import first
from unstall.prove.lines.sources import Change
from unstall.prove.trees import Sides

TRAIN, MODEL = Path("/program/train.py"), Path("/program/model.py")
BEFORE = """\
import argparse

def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--learning-rate", "-l", type=float, default=0.1)
    parser.add_argument("data")
    parser.add_argument("--depth", dest="layers", default=3)
    return parser.parse_args()

def main(args):
    model = made(args.layers)
    optimizer = Adam(model.parameters(), args.learning_rate)
    fit(model, optimizer, args.data)
"""


def dropped(old, new, before=BEFORE):
    after = before.replace(old, new)
    assert after != before
    sides = Sides({TRAIN: before.encode()}, {TRAIN: after.encode()})
    return first(Change.of(sides))


@pytest.mark.parametrize(
    ("old", "new", "option", "line"),
    [
        ("args.learning_rate", "0.1, fused=True", "--learning-rate", 5),
        ("args.data", '"data.csv"', "data", 6),
        ("args.layers", "3", "--depth", 7),
    ],
)
def test_an_option_whose_value_is_written_in_is_named(old, new, option, line):
    assert dropped(old, new) == (
        f"it no longer looks at its option {option} (train.py:{line}): with another it does the same"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Adam(model.parameters(), args.learning_rate)", "Adam(model.parameters(), args.learning_rate, fused=True)"),
        ("args.learning_rate", 'getattr(args, "learning_rate")'),
        ("args.learning_rate", '**vars(args)["learning_rate"]'),
        ('    parser.add_argument("data")\n', ""),  # it has none any more
        ('    parser.add_argument("data")\n', '    parser.add_argument("data")\n    parser.add_argument("--new")\n'),
        ("def main(args):", "def main(args:"),
    ],
)
def test_one_that_is_looked_at_or_not_there_is_none(old, new):
    assert dropped(old, new) is None


CLICK = """\
import click
from absl import flags

FLAGS = flags.FLAGS
flags.DEFINE_float("rate", 0.1, "how fast it learns")

@click.command()
@click.option("--batch-size", "-b", default=32)
@click.argument("folder")
@click.option("--layers", "depth", default=3)
def main(batch_size, folder, depth):
    fit(Net(depth), loader(folder, batch_size), FLAGS.rate)
"""


@pytest.mark.parametrize(
    ("old", "new", "option"),
    [
        ("batch_size), FLAGS", "32), FLAGS", "--batch-size (train.py:8)"),
        ("loader(folder,", 'loader("data",', "folder (train.py:9)"),
        ("Net(depth)", "Net(3)", "--layers (train.py:10)"),
        ("FLAGS.rate)", "0.1)", "rate (train.py:5)"),
    ],
)
def test_options_of_click_and_absl(old, new, option):
    assert dropped(old, new, CLICK) == f"it no longer looks at its option {option}: with another it does the same"


VARIABLES = """\
import os
from os import environ, getenv

def main():
    fit(os.environ["DATA"], int(os.environ.get("EPOCHS", "3")), float(getenv("RATE", 0.1)), environ["KIND"])
    os.environ["OMP_NUM_THREADS"] = "1"
"""


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ('os.environ["DATA"]', '"data.csv"', "DATA"),
        ('int(os.environ.get("EPOCHS", "3"))', "3", "EPOCHS"),
        ('float(getenv("RATE", 0.1))', "0.1", "RATE"),
        ('environ["KIND"]', '"tree"', "KIND"),
    ],
)
def test_an_environment_variable_whose_value_is_written_in_is_named(old, new, name):
    said = f"it no longer looks at the environment variable {name}: with another it does the same"
    assert dropped(old, new, VARIABLES) == said


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('os.environ["DATA"]', 'path("DATA")'),
        ('    os.environ["OMP_NUM_THREADS"] = "1"\n', ""),
        ('os.environ["DATA"]', 'getenv("DATA")'),
    ],
)
def test_one_that_is_mentioned_or_only_set_is_none(old, new):
    assert dropped(old, new, VARIABLES) is None


def test_an_option_that_another_changed_file_looks_at_is_none():
    moved = BEFORE.replace("made(args.layers)", "made(args)")
    sides = Sides(
        {TRAIN: BEFORE.encode(), MODEL: b"def made(layers):\n    return Net(layers)\n"},
        {TRAIN: moved.encode(), MODEL: b"def made(args):\n    return Net(args.layers)\n"},
    )
    assert first(Change.of(sides)) is None


SETTINGS = """\
class Trainer:
    def __init__(self, config, model_cfg):
        self.config = config
        self.net = Net(model_cfg.get("width", 8), model_cfg["depth"])
        config.setdefault("name", "x").lower()

    def fit(self, rows):
        fit(self.net, rows["x"], self.config.rate, self.state.clip)
        self.config.epoch = 0
"""


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ('model_cfg.get("width", 8)', "8", "width"),
        ('model_cfg["depth"]', "3", "depth"),
        ("self.config.rate", "0.1", "rate"),
    ],
)
def test_a_setting_whose_value_is_written_in_is_named(old, new, name):
    said = f"it no longer looks at its setting {name}: with another it does the same"
    assert dropped(old, new, SETTINGS) == said


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('model_cfg["depth"]', 'depth_of(model_cfg, "depth")'),
        ("self.config.rate", "self.rate"),
        ('rows["x"]', "rows"),
        ("self.state.clip", "1.0"),
        ('        config.setdefault("name", "x").lower()\n', ""),
        ("        self.config.epoch = 0\n", "        self.epoch = 0\n"),
        ("self.net = Net(", "self.net = Fast("),
    ],
)
def test_what_is_mentioned_or_only_set_or_no_setting_is_none(old, new):
    assert dropped(old, new, SETTINGS) is None
