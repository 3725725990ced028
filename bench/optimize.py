"""What `unstall optimize` reaches: on programs with a known cure, beside the cure itself, and on the hot-dog example.

    make optimize-bench                               every case in one sitting (hours); the table in docs/
    python bench/optimize.py --rows rows.json --resume      go on after the last row, if the version is the same
    python bench/optimize.py --only worker_restart --budget 3m
    python bench/optimize.py --only text_stream --kept patches --rows rows.json --again      the kept patch once more

For each program of tests/zoo that has a faster twin: the speed-up of that twin, the expert's, and that of the patched
script, both by the program's own ``steps_per_s``, in turns with the original (slow, fast, patched, patched, fast,
slow, and again). The score of a program is its own gain over the expert's, not capped, 1 / the expert's where nothing
was kept; no program is left out. Where samples are kept for later epochs, the gain is that of a training of
EPOCHS epochs, the first of which fills the cache (later.py). A kept change that shows no gain when it is measured
again is a false win. Healthy programs have no cure: they count for false wins alone. Hot dog has no twin.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import harmonic_mean, mean

from machine import describe, other_sittings, version
from marked import put_between_marks
from scipy.stats import beta

ROOT = Path(__file__).resolve().parents[1]
ZOO = ROOT / "tests" / "zoo"
LATER = ROOT / "bench" / "later.py"
HOTDOG = ROOT / "examples" / "hotdog"
MEASURED = ("src", "tests/zoo", "examples")
"""What a row depends on."""

sys.path.insert(0, str(ZOO))
from truth import CASES as PLANTED  # noqa: E402

HEALTHY = tuple(case.name for case in PLANTED if case.pattern == "healthy")
NO_SPEED = ("memory-growth",)
"""Patterns whose cure is not a faster step."""
CASES = tuple(case.name for case in PLANTED if case.pattern not in NO_SPEED and not case.launch)
DOES_LESS = {
    "log_each_step": "logs every 100th step",
    "checkpoint_often": "saves every 500th step",
    "plot_progress": "plots every 1000th step",
    "metrics_each_step": "computes metrics once an epoch",
    "tensorboard_histograms": "writes histograms every 200th step",
    "big_conv": "has a 3×3 kernel instead of 15×15",
    "optimizer_heavy": "updates only the rows that were used",
    "float64_model": "computes in single precision",
    "single_env": "plays 64 environments at once, which trains otherwise",
}
"""Experts' versions that do other work than the program: no remedy may do so unasked. They stay in the score."""
WHY_NOT = {}
"""Why less than half of an expert's gain is reached that does the same work."""
CACHES = ("cache-samples", "split-transforms")
"""Remedies that pay from the second visit of a sample on."""
BUDGETS = {"hotdog": "15m"}
"""As the README runs it: with the budget that one has who asks for none."""
EPOCHS = 10
"""Length of the training by which a cache is scored."""
_RATE = re.compile(r"steps_per_s=([0-9.]+)")
_EPOCHS = re.compile(r"first_epoch=([0-9.]+|nan) later_epochs=([0-9.]+|nan)")
_NO_GAIN = 1.0
_CONFIDENCE = 0.95


@dataclass
class Row:
    """One program: what was reached, beside what can be."""

    name: str
    kept: list[str]
    claimed: float | None
    later_epochs: float | None
    """Speed-up of the patched script, measured again; of its epochs after the first where it keeps samples."""
    expert: float | None
    not_equivalent: int
    seconds: float
    version: str
    machine: str
    sameness: str
    """How the same the results are: exact, close or reduced; empty where nothing was kept."""
    first_epoch: float | None = None
    """Of the patched script that keeps samples: the speed-up of its first epoch, in which it makes them."""
    advised: str = ""
    """What nobody allowed, with the gain that its trial measured."""

    @property
    def gain(self) -> float | None:
        """Speed-up of a whole training; 1 where nothing was kept, None where it could not be confirmed."""
        if not self.kept:
            return 1.0
        if self.later_epochs is None or self.first_epoch is None:
            return self.later_epochs
        return EPOCHS / (1 / self.first_epoch + (EPOCHS - 1) / self.later_epochs)

    @property
    def pays_from(self) -> int | None:
        """The epoch by whose end a cache has won back what its first epoch cost; None where it never does."""
        if self.first_epoch is None or self.later_epochs is None or self.later_epochs <= 1:
            return None
        cost, won = 1 / self.first_epoch - 1, 1 - 1 / self.later_epochs
        return 1 + max(0, math.ceil(cost / won))

    @property
    def unconfirmed(self) -> bool:
        """Something was kept that could not be measured again."""
        return bool(self.kept) and self.gain is None

    @property
    def false_win(self) -> bool:
        """Something was kept that shows no gain when it is measured again."""
        return bool(self.kept) and self.gain is not None and self.gain <= _NO_GAIN

    @property
    def score(self) -> float | None:
        """Own gain over the expert's, not capped; an unconfirmed one counts as none. None where there is no expert."""
        if self.expert is None or self.name in HEALTHY:
            return None
        return (self.gain or 1.0) / self.expert


def main() -> int:
    """Run the cases, print the table, write it where asked; exit code 1 when a goal of quality is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of cases, with commas between; hotdog is one")
    parser.add_argument(
        "--budget", help="for each program: 4m, and for the example what `unstall optimize` takes by itself"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="for each run of a twin")
    parser.add_argument("--rounds", type=int, default=2, help="of two runs of each twin")
    parser.add_argument("--kept", type=Path, help="folder for the reports and patches")
    parser.add_argument("--again", action="store_true", help="measure the patches in that folder, do not search")
    parser.add_argument("--rows", type=Path, help="a JSON file that keeps the rows")
    parser.add_argument("--resume", action="store_true", help="leave alone the rows of this version and machine")
    parser.add_argument("--replay", action="store_true", help="run nothing: the tables of the rows that are kept")
    parser.add_argument("--write", type=Path, help="write the table as Markdown")
    parser.add_argument("--readme", type=Path, help="put a short table between the marks in this file")
    options = parser.parse_args()
    names = [] if options.replay else options.only.split(",") if options.only else [*CASES, "hotdog"]
    rows = read_rows(options.rows)
    if options.resume:
        done = {row.name for row in rows if row.version == version(*MEASURED)}
        names = [name for name in names if name not in done]
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            row = (hotdog if name == "hotdog" else case)(name, Path(folder), options)
        rows = [other for other in rows if other.name != name] + [row]
        print(line(row), flush=True)
        if options.rows:
            options.rows.parent.mkdir(parents=True, exist_ok=True)
            options.rows.write_text(json.dumps([asdict(row) for row in rows]), encoding="utf-8")
        if options.write:
            options.write.write_text(markdown(rows), encoding="utf-8")
    if options.write:
        options.write.write_text(markdown(rows), encoding="utf-8")
    if options.readme:
        put_between_marks(options.readme, "make optimize-bench", short_table(rows))
    print("\n" + markdown(rows))
    return int(any(row.false_win or row.unconfirmed or row.not_equivalent for row in rows))


def case(name: str, folder: Path, options: argparse.Namespace) -> Row:
    """One program of the zoo."""
    copy, patched = folder / "zoo", folder / "patched"
    shutil.copytree(ZOO, copy, ignore=shutil.ignore_patterns("__pycache__"))
    report, patch, spent = optimized(name, copy, [f"{name}.py", "--seconds", "600"], options)
    shutil.copytree(copy, patched)
    if patch:
        subprocess.run(["git", "apply", "-"], input=patch, cwd=patched, check=True)
    slow, fast, changed, firsts = [], [], [], []
    caches = any(name in CACHES for name in kept(report))
    for order in ((0, 1, 2), (2, 1, 0)) * options.rounds:
        for which in order:
            if which == 0:
                slow.append(rate(copy, name, "slow", options.seconds))
            elif which == 1:
                fast.append(rate(copy, name, "fast", options.seconds))
            elif caches and not changed:  # its first epoch may take minutes: once is enough
                first, later = rates_of_epochs(patched, name, options.rounds * options.seconds)
                firsts.append(first)
                changed.append(later)
            elif not caches:
                changed.append(rate(patched, name, "slow", options.seconds))
    again = None if math.isnan(mean(changed)) else mean(changed) / mean(slow)
    first = mean(firsts) / mean(slow) if firsts and not math.isnan(mean(firsts)) else None
    expert = mean(fast) / mean(slow)
    return Row(name, kept(report), report["total_speedup"], again, expert, not_equivalent(report), spent,
               version(*MEASURED), describe(), sameness(report), first, advised(report))  # fmt: skip


def hotdog(name: str, folder: Path, options: argparse.Namespace) -> Row:
    """The example: its speed-up is that of whole epochs but the first, by the seconds that it prints for each."""
    copy = folder / name
    shutil.copytree(HOTDOG, copy, ignore=shutil.ignore_patterns("__pycache__", "runs", ".unstall"))
    report, patch, spent = optimized(name, copy, ["train.py", "--epochs", "20"], options)
    slow = epoch_seconds(copy, 2)
    if patch:
        subprocess.run(["git", "apply", "-"], input=patch, cwd=copy, check=True)
    again = slow / epoch_seconds(copy, 4)
    return Row(name, kept(report), report["total_speedup"], again, None, not_equivalent(report), spent,
               version(*MEASURED), describe(), sameness(report), advised=advised(report))  # fmt: skip


def optimized(name: str, folder: Path, words: list[str], options: argparse.Namespace) -> tuple[dict, bytes, float]:
    """(report, patch, seconds) of the command, or of that which was kept."""
    at = (options.kept or folder).absolute()
    report, patch, spent = (at / f"{name}{end}" for end in (".json", ".patch", ".seconds"))
    if not options.again:
        at.mkdir(parents=True, exist_ok=True)
        patch.unlink(missing_ok=True)
        began = time.monotonic()
        budget = options.budget or BUDGETS.get(name, "4m")
        command = [sys.executable, "-m", "unstall", "optimize", "--budget", budget]
        subprocess.run([*command, "--json", str(report), "--patch", str(patch), *words], cwd=folder, check=True)
        spent.write_text(f"{time.monotonic() - began:.1f}", encoding="utf-8")
    found: dict = json.loads(report.read_text())
    return found, patch.read_bytes() if patch.exists() else b"", float(spent.read_text())


def rate(folder: Path, name: str, variant: str, seconds: float) -> float:
    """The program's own steps per second."""
    command = [sys.executable, f"{name}.py", "--variant", variant, "--seconds", str(seconds)]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    found = _RATE.search(done.stdout)
    assert found, done.stdout
    return float(found[1])


def rates_of_epochs(folder: Path, name: str, seconds: float) -> tuple[float, float]:
    """Steps per second in the first epoch, and in the later ones; NaN where it is too short to tell, or too long."""
    command = [sys.executable, str(LATER), str(seconds), f"{name}.py", "--variant", "slow"]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    found = _EPOCHS.search(done.stdout)
    assert found, done.stdout
    return float(found[1]), float(found[2])


def epoch_seconds(folder: Path, epochs: int) -> float:
    """Seconds of an epoch of the hot-dog example, the mean of all but the first."""
    done = subprocess.run(
        [sys.executable, "train.py", "--epochs", str(epochs)], cwd=folder, check=True, capture_output=True, text=True
    )
    return mean([float(one) for one in re.findall(r"epoch \d+: ([0-9.]+) s", done.stdout)][1:])


def kept(report: dict) -> list[str]:
    """Names of the remedies that were kept."""
    return [remedy["name"].partition(":")[0] for remedy in report["remedies"] if remedy["kept"]]


def sameness(report: dict) -> str:
    """That of the kept change whose results are the least the same; empty where nothing was kept."""
    order = ("exact", "close", "reduced")
    measured = {remedy.get("sameness") for remedy in report["remedies"] if remedy["kept"]}
    return next((name for name in reversed(order) if name in measured), "")


def not_equivalent(report: dict) -> int:
    """Kept remedies that were not shown to compute the same."""
    kept = [remedy for remedy in report["remedies"] if remedy["kept"]]
    return sum(remedy.get("sameness") not in ("exact", "close") for remedy in kept)


def advised(report: dict) -> str:
    """The most that a change would bring that only ``--allow`` keeps; empty where none was measured."""
    measured = [remedy for remedy in report["remedies"] if remedy.get("status") == "advice" and remedy.get("speedup")]
    if not measured:
        return ""
    best = max(measured, key=lambda remedy: remedy["speedup"])
    return f"`{best['name'].partition(':')[0]}` would bring {best['speedup']:.2f}× (`--allow {best['exactness']}`)"


def read_rows(path: Path | None) -> list[Row]:
    """The rows of earlier sittings; those in a form of before this one are dropped."""
    if path is None or not path.exists():
        return []
    fields = {field.name for field in dataclasses.fields(Row)}
    return [Row(**row) for row in json.loads(path.read_text(encoding="utf-8")) if set(row) == fields]


def line(row: Row) -> str:
    """One program in a line of text."""
    return (
        f"{row.name:22} claimed {_times(row.claimed)}  gain {_times(row.gain)}  expert {_times(row.expert)}  "
        f"{', '.join(row.kept) or 'nothing kept'}  {row.seconds:.0f} s{'  FALSE WIN' if row.false_win else ''}"
    )


def markdown(rows: list[Row]) -> str:
    """The table, and the sums in front of it."""
    text = ["# What optimize reaches", "", f"`make optimize-bench`{sitting(rows)}.", "", *summary(rows), ""]
    text += [
        "- **Claimed** is the headline of `unstall optimize`.",
        "- **Gain** comes from plain runs of the original and the patched script, alternately, by the rate that the"
        " program prints.",
        f"  Where samples are cached it is that of a whole training of {EPOCHS} epochs, with the first one, which fills"
        " the cache.",
        "- **Expert's** is the program as an expert would write it, measured in the same way; where it does other work"
        " than the program, the last column says so.",
        "- **Score** is gain over expert's, not capped; where nothing was kept, the gain is 1.",
        "",
        "| program | kept | results | claimed | gain | expert's | score | time | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for row in sorted(rows, key=lambda row: -(row.score or -1)):
        score = "–" if row.score is None else f"{row.score:.2f}"
        cells = [
            row.sameness,
            _times(row.claimed),
            _gain(row),
            _times(row.expert),
            score,
            f"{row.seconds:.0f} s",
            remark(row),
        ]
        text.append(f"| {row.name} | {', '.join(row.kept) or 'nothing'} | {' | '.join(cells)} |")
    missing = [name for name in [*CASES, "hotdog"] if name not in {row.name for row in rows}]
    if missing:
        text += ["", f"{len(missing)} programs are not measured yet: {', '.join(missing)}."]
    return "\n".join(text) + "\n"


def sitting(rows: list[Row]) -> str:
    """Machine and version of this sitting, where a row is of it."""
    here = version(*MEASURED), describe()
    is_here = any((row.version, row.machine) == here for row in rows)
    return f" on {here[1]}, version {here[0]}" if is_here else ""


def summary(rows: list[Row]) -> list[str]:
    """Scores over all cases, and how often something wrong was kept."""
    scores = [row.score for row in rows if row.score is not None]
    keepers = [row for row in rows if row.kept]
    wrong = sum(row.false_win for row in keepers)
    text = []
    if scores:
        text.append(
            f"**Own gain over the expert's, {len(scores)} cases, nothing capped or left out: geometric mean "
            f"{geometric_mean(scores):.2f}, harmonic mean {harmonic_mean(scores):.2f}.** At least half of the expert's"
            f" gain (by its logarithm) in {sum(_half(row) for row in rows)} of them."
        )
    text.append(
        f"Of {len(keepers)} programs in which something was kept: {wrong} false wins (95 % upper bound "
        f"{upper_bound(wrong, len(keepers)):.0%}); in {sum(row.unconfirmed for row in keepers)} of them the gain of "
        f"what was kept could not be confirmed; changes kept without proof of sameness: "
        f"{sum(row.not_equivalent for row in rows)}."
    )
    rest = other_sittings({row.name: (row.version, row.machine) for row in rows}, (version(*MEASURED), describe()))
    return [*text, rest] if rest else text


def remark(row: Row) -> str:
    """What a reader must know to judge a row."""
    if row.unconfirmed:
        return "not confirmed"
    if row.false_win:
        return "**false win**"
    less = f"the expert's {DOES_LESS[row.name]}" if row.name in DOES_LESS else ""
    healthy = "nothing planted" if row.name in HEALTHY else ""
    why_not = WHY_NOT.get(row.name, "") if row.score is not None and not _half(row) else ""
    return "; ".join(part for part in (less, why_not, healthy, row.advised) if part)


def short_table(rows: list[Row]) -> str:
    """The table of the README."""
    text = ["| program | kept by `unstall optimize` | results | faster | by the expert's hand |",
            "| --- | --- | --- | --- | --- |"]  # fmt: skip
    for row in sorted(rows, key=lambda row: -(row.gain or 0)):
        if row.name not in HEALTHY:
            cells = [", ".join(row.kept) or "nothing", row.sameness, _gain(row), _times(row.expert)]
            text.append(f"| {row.name} | {' | '.join(cells)} |")
    return "\n".join([*text, "", *summary(rows)]) + "\n"


def geometric_mean(values: list[float]) -> float:
    """Of ratios of speed-ups, all above 0."""
    return math.exp(mean(math.log(value) for value in values))


def upper_bound(wrong: int, count: int) -> float:
    """Clopper-Pearson: the largest rate with which so few wrong ones are still seen in 5 of 100 sittings."""
    if not count or wrong == count:
        return 1.0
    return float(beta.ppf(_CONFIDENCE, wrong + 1, count - wrong))


def _half(row: Row) -> bool:
    return row.score is not None and row.expert is not None and (row.gain or 1.0) >= math.sqrt(row.expert)


def _gain(row: Row) -> str:
    if row.first_epoch is None:
        return _times(row.gain)
    if row.later_epochs is None:
        return f"– (first epoch {_times(row.first_epoch)}, and too long to reach a second)"
    pays = f"pays from epoch {row.pays_from}" if row.pays_from else "never pays"
    return f"{_times(row.gain)} (first epoch {_times(row.first_epoch)}, later {_times(row.later_epochs)}, {pays})"


def _times(factor: float | None) -> str:
    return f"{factor:.2f}×" if factor is not None and not math.isnan(factor) else "–"


if __name__ == "__main__":
    sys.exit(main())
