"""Changes of programs of tests/zoo: each takes one of the other ways that the program has, for so many steps.

Their slowness was planted for another purpose, and the twin that is fast was written to be named, not to be judged:
some do the same to the bit, some only nearly, and some not at all.
"""

from __future__ import annotations

import difflib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hacks import ENTRY

ZOO = Path(__file__).resolve().parents[2] / "tests" / "zoo"
_CLOCK = '''"""The zoo's own, with a clock that stops after so many steps and tells no times."""

from zoo_common import *
from zoo_common import cached, load_photo, parse_args, photo_folder


class Clock:
    def __init__(self, seconds, skip=3):
        self.ticks = 0

    def tick(self, steps=1):
        self.ticks += 1

    @property
    def done(self):
        return self.ticks >= {steps}

    def report(self):
        print("steps", self.ticks)
'''


@dataclass(frozen=True)
class ZooChange:
    """A program's other way, as a change of it."""

    name: str
    """Of the program."""
    variant: str
    """``fast``: the twin that shows what its slowness costs; ``free``: with the culprit taken away."""
    family: str
    honest: bool
    steps: int
    """Of a run, which is to take some seconds."""

    @property
    def key(self) -> str:
        """``PROGRAM/FAMILY/VARIANT``."""
        return f"zoo {self.name}/{self.family}/{self.variant}"

    @property
    def held_out(self) -> bool:
        """Whether nothing of the judge was made for it."""
        return self.name not in _LEARNED_FROM

    @property
    def command(self) -> tuple[str, ...]:
        """What is judged."""
        return (ENTRY,)

    def lay_out(self, folder: Path) -> Path:
        """Put the program into an empty folder, and the patch beside it. Returns the patch."""
        shutil.copyfile(ZOO / "common.py", folder / "zoo_common.py")
        (folder / "common.py").write_text(_CLOCK.format(steps=self.steps))
        source = (ZOO / f"{self.name}.py").read_text()
        (folder / ENTRY).write_text(source)
        changed = source.replace("args.variant", repr(self.variant))
        lines = (text.splitlines(keepends=True) for text in (source, changed))
        patch = folder.with_suffix(".patch")
        patch.write_text("".join(difflib.unified_diff(*lines, f"a/{ENTRY}", f"b/{ENTRY}")))
        return patch

    def prepare(self, folder: Path) -> None:
        """Run it once: the data that it makes for all its runs are there then."""
        subprocess.run([sys.executable, "-B", ENTRY], cwd=folder, stdout=subprocess.DEVNULL, check=True)


def zoo() -> Iterator[ZooChange]:
    """All of them."""
    for name, family, steps in _HONEST:
        yield ZooChange(name, "fast", family, honest=True, steps=steps)
    for name, variant, family, steps in _BAD:
        yield ZooChange(name, variant, family, honest=False, steps=steps)


_LEARNED_FROM = ("gzip_checkpoint", "log_each_step")
"""They wrote files that are gone at the end, and were proven when they did so no more."""

_HONEST = (
    ("attention_naive", "fused operations", 40),
    ("caption_decoder", "caching within a run", 400),
    ("collate_pad", "vectorisation", 100),
    ("csv_batches", "vectorisation", 200),
    ("file_scan", "reading at once", 60),
    ("frozen_backbone", "caching within a run", 60),
    ("gc_each_step", "planted slowness", 60),
    ("grid_env", "vectorisation", 150),
    ("http_dataset", "caching within a run", 60),
    ("metrics_each_step", "fewer read outs", 120),
    ("nms_postprocess", "vectorisation", 30),
    ("pair_loss", "vectorisation", 60),
    ("plain_generator", "vectorisation", 60),
    ("python_loss", "vectorisation", 40),
    ("sample_index", "whole batch indexing", 150),
    ("segment_pool", "data structures", 60),
    ("speech_mel", "caching within a run", 100),
    ("stream_filter", "data structures", 300),
    ("text_stream", "memo within the run", 200),
    ("worker_restart", "settings", 80),
)
"""Program, family, steps: what the fast twin computes is the same, but for rounding."""

_BAD = (
    ("big_conv", "fast", "smaller model", 40),
    ("checkpoint_often", "fast", "late checkpoint", 60),
    ("feature_prep", "fast", "edge of a threshold", 80),
    ("float64_model", "fast", "precision dropped", 60),
    ("gzip_checkpoint", "free", "outputs dropped", 40),
    ("image_transform_main", "fast", "augmentation changed", 40),
    ("image_transform_workers", "fast", "approximated", 40),
    ("log_each_step", "fast", "outputs dropped", 150),
    ("optimizer_heavy", "fast", "optimizer changed", 60),
    ("pair_loss", "free", "loss changed", 60),
    ("plot_progress", "fast", "outputs dropped", 60),
    ("rnn_loop", "fast", "smaller model", 60),
    ("single_env", "fast", "larger batch", 60),
    ("speech_mel", "free", "replayed outputs", 100),
    ("tensorboard_histograms", "fast", "outputs dropped", 60),
)
"""Program, variant, family, steps. Crossings of zero at the beginning of a frame, pixels at the edge of a picture, and
logs, plots and checkpoints that are there no more are what some of the fast twins leave out."""
