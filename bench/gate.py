"""How often the gate is wrong: by simulation over kinds of noise, and on real runs.

python bench/gate.py [--experiments 1000] [--real 0]

Simulated: each run's steps are an AR(1) series around a mean that itself varies from run to run (the same code does not
run at the same speed twice), drifts over the session and is hit by bursts of a neighbour's load. The gate sees what it
would see of real runs: the mean step of each, over as many steps as its own rule asks for after a look at the first
run, and the load that is visible from outside (of every other burst it is not: a neighbour may use memory or a disk,
not cores). With identical code "regression" is a false alarm; with code that is
10 % slower anything but "regression" is a miss.

Real (``--real N``): N gates each of a program against itself and against one that does 10 % more work, in processes of
their own, with the decision of the command itself.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

from unstall.repeat.arms import Arm, ArmRun, relative_error, steps_for
from unstall.repeat.gate import Gate
from unstall.repeat.sequential import SequentialPlan

_BASELINE, _CANDIDATE = Arm("baseline", (), Path()), Arm("candidate", (), Path())
_SLOWER = 1.10


@dataclass(frozen=True)
class Noise:
    """Relative to the step time."""

    name: str
    step: float
    """Deviation of a step."""
    phi: float
    """How much of a step's deviation the next one keeps."""
    run: float
    """Deviation from run to run."""
    drift: float
    """Per run, all in one direction."""
    burst: float = 0.0
    """Chance that a neighbour slows half of a run by half; every other one shows as load."""


KINDS = (
    Noise("quiet machine", 0.05, 0.3, 0.01, 0.0),
    Noise("autocorrelated steps", 0.20, 0.9, 0.01, 0.0),
    Noise("shared runner", 0.15, 0.6, 0.03, 0.002),
    Noise("warming up", 0.10, 0.6, 0.02, 0.01),
    Noise("bursts of load", 0.10, 0.6, 0.02, 0.0, 0.08),
    Noise("very noisy", 0.30, 0.8, 0.08, 0.002),
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--experiments", type=int, default=1000, help="simulated, for each kind and truth")
    parser.add_argument("--real", type=int, default=0, help="real gates for each truth")
    options = parser.parse_args()
    if options.experiments:
        print_simulated(options.experiments)
    if options.real:
        print_real(options.real)


_COLUMNS = ("noise", "false alarms", "identical code passed", "10 % caught", "10 % let through", "pairs: same", "10 %")


def print_simulated(experiments: int) -> None:
    print(f"| {' | '.join(_COLUMNS)} |")
    print(f"|{' --- |' * len(_COLUMNS)}")
    for kind in KINDS:
        same, *pairs_same = simulate(kind, 1.0, experiments)
        slow, *pairs_slow = simulate(kind, _SLOWER, experiments)
        shares = (same["regression"], same["pass"], slow["regression"], slow["pass"])
        cells = [f"{100 * count / experiments:.1f} %" for count in shares]
        cells += ["{:.0f} ({:.0f})".format(*pairs) for pairs in (pairs_same, pairs_slow)]
        print(f"| {kind.name} | {' | '.join(cells)} |", flush=True)


def print_real(gates: int) -> None:
    print("\n| real runs | regression | pass | cannot tell |")
    print("| --- | --- | --- | --- |")
    for label, extra in (("10 % more work", 0.10), ("identical code", 0.0)):
        found = Counter(real(extra) for _ in range(gates))
        print(f"| {label} | {found[1]} | {found[0]} | {found[2]} |", flush=True)


def simulate(kind: Noise, slower: float, experiments: int) -> tuple[Counter[str], float, float]:
    """The decisions of so many gates, and the pairs that they took: the median, and as many as 95 of 100 did with."""
    generator = np.random.default_rng(1)
    decisions: Counter[str] = Counter()
    lengths = []
    for _ in range(experiments):
        gate = Gate(SequentialPlan(), _BASELINE, _CANDIDATE, _Session(kind, generator, slower))
        decisions[gate.decide().decision] += 1
        lengths.append(len(gate.pairs))
    return decisions, float(np.median(lengths)), float(np.quantile(lengths, 0.95))


class _Session:
    """Runs of the two arms, one after the other on a simulated machine."""

    def __init__(self, kind: Noise, generator: np.random.Generator, slower: float):
        self._kind, self._generator, self._slower = kind, generator, slower
        self._steps, self._runs = 50, 0
        self._steps = steps_for(self(_BASELINE, 0))

    def __call__(self, arm: Arm, number: int) -> ArmRun:
        kind, generator = self._kind, self._generator
        times = _steps(kind, generator, self._steps)
        load = 0.0
        if generator.random() < kind.burst:
            times[: self._steps // 2] *= 1.5
            load = 0.5 if generator.random() < 0.5 else 0.0
        times *= np.exp(kind.run * generator.standard_normal() + kind.drift * self._runs)
        self._runs += 1
        slower = self._slower if arm is _CANDIDATE else 1.0
        return ArmRun(float(times.mean()) * slower, self._steps, {}, load, cores=2.0, error=relative_error(times))


def _steps(kind: Noise, generator: np.random.Generator, steps: int) -> np.ndarray:
    """The times of one run's steps, log-normal AR(1)."""
    shocks = generator.standard_normal(steps) * np.sqrt(1 - kind.phi**2)
    shocks[0] /= np.sqrt(1 - kind.phi**2)
    series: np.ndarray = np.exp(kind.step * lfilter([1.0], [1.0, -kind.phi], shocks))
    return series


_PROGRAM = """
import sys, unstall
work = 30_000
for _ in unstall.steps(range(60)):
    sum(i * i for i in range(int(work * {factor})))
"""


def real(extra: float) -> int:
    """The exit code of one real gate: a program against itself with so much more work."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
        program = folder / "train.py"
        program.write_text(_PROGRAM.format(factor=1.0))
        for words in (["init", "-q", "-b", "main"], ["add", "train.py"], ["commit", "-q", "-m", "baseline"]):
            subprocess.run([*git, *words], cwd=folder, check=True)
        program.write_text(_PROGRAM.format(factor=1.0 + extra))
        command = [sys.executable, "-m", "unstall", "gate", "--baseline", "main", "--steps", "40", "train.py"]
        return subprocess.run(command, cwd=folder, capture_output=True).returncode


if __name__ == "__main__":
    main()
