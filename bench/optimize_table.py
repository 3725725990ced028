"""The rows of bench/optimize.py, and the tables that are made of them."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import harmonic_mean, mean

from machine import describe, other_sittings, version
from scipy.stats import beta

from unstall.optimize.payback import epochs_to_pay

ZOO = Path(__file__).resolve().parents[1] / "tests" / "zoo"
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
    "anomaly_mode": "does not look for NaN",
    "single_env": "plays 64 environments at once, which trains otherwise",
}
"""Experts' versions that do other work than the program: no remedy may do so unasked. They stay in the score."""
CACHE = "cache-samples"
"""The remedy whose first epoch fills what the later ones read."""
EPOCHS = 10
"""Length of the training by which a cache is scored."""
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
    claimed_low: float | None = None
    claimed_high: float | None = None
    """The interval of the headline; None in rows of before 2026-11-29."""
    advised: str = ""
    """What nobody allowed, with the gain that its trial measured, or what a person is advised to do."""
    start_s: float | None = None
    """Seconds by which each run starts later, as it compiles first, once it has been compiled; None where none does."""

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
        if self.first_epoch is None or self.later_epochs is None:
            return None
        return epochs_to_pay(self.first_epoch, self.later_epochs)

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


def line(row: Row) -> str:
    """One program in a line of text."""
    return (
        f"{row.name:22} claimed {times(row.claimed)}  gain {times(row.gain)}  expert {times(row.expert)}  "
        f"{', '.join(row.kept) or 'nothing kept'}  {row.seconds:.0f} s{'  FALSE WIN' if row.false_win else ''}"
    )


def markdown(rows: list[Row]) -> str:
    """The table, and the sums in front of it."""
    text = ["# What optimize reaches", "", f"`make optimize-bench`{sitting(rows)}.", "", *summary(rows), ""]
    text += [
        "- **Claimed** is the headline of `unstall optimize`, which has a budget of four minutes (hotdog: fifteen);"
        " **time** is what it took.",
        "- **Gain** comes from plain runs of ten seconds of the original, the patched script and the expert's,"
        " alternately, by the rate that",
        "  the program prints; hotdog's of a run of each, by the seconds of its epochs.",
        f"  Where `{CACHE}` is kept, the patched script runs once, and the gain is that of a whole training of {EPOCHS}"
        " epochs, with the first",
        "  one, which fills the cache. What other remedies keep is filled within the ten seconds.",
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
            times(row.claimed),
            gain_in_words(row),
            times(row.expert),
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
            f"**Own gain over the expert's, {len(scores)} cases, nothing capped: geometric mean "
            f"{geometric_mean(scores):.2f}, harmonic mean {harmonic_mean(scores):.2f}.** At least half of the expert's"
            f" gain (by its logarithm) in {sum(_half(row) for row in rows)} of them. These are all programs that have"
            " an expert's version and are to get faster: not those of several ranks, those whose memory grows, the"
            " healthy ones, and hotdog."
        )
    text.append(
        f"Of {len(keepers)} programs in which something was kept: {wrong} false wins (95 % upper bound "
        f"{upper_bound(wrong, len(keepers)):.0%}); in {sum(row.unconfirmed for row in keepers)} of them the gain of "
        f"what was kept could not be confirmed; changes kept without proof of sameness: "
        f"{sum(row.not_equivalent for row in rows)}."
    )
    text += headlines(keepers)
    rest = other_sittings({row.name: (row.version, row.machine) for row in rows}, (version(*MEASURED), describe()))
    return [*text, rest] if rest else text


def headlines(keepers: list[Row]) -> list[str]:
    """How far what `optimize` claims lies above the gain that was measured again, and how often its interval held."""
    over = {row.name: row.claimed / row.gain for row in keepers if row.claimed and row.gain}
    if not over:
        return []
    most = max(over, key=lambda name: over[name])
    text = [
        f"What `unstall optimize` claims is {geometric_mean([*over.values()]):.2f} times the gain in the geometric mean"
        f", and {over[most]:.1f} times at most ({most}): where samples are cached, it claims what later epochs gain."
    ]
    held = [
        row.claimed_low <= row.later_epochs <= row.claimed_high
        for row in keepers
        if row.claimed_low and row.claimed_high and row.later_epochs
    ]
    if held:
        text.append(
            "The 95 % interval beside it is of the search's own runs: it holds what was measured again, with other"
            f" lengths of run and at another time, in {sum(held)} of {len(held)}"
            " (later epochs, where samples are cached)."
        )
    return text


def remark(row: Row) -> str:
    """What a reader must know to judge a row."""
    if row.unconfirmed:
        return "not confirmed"
    if row.false_win:
        return "**false win**"
    less = f"the expert's {DOES_LESS[row.name]}" if row.name in DOES_LESS else ""
    healthy = "nothing planted" if row.name in HEALTHY else ""
    compiles = "" if row.start_s is None else f"each run compiles for {row.start_s:.0f} s first, which is not counted"
    return "; ".join(part for part in (less, healthy, compiles, row.advised) if part)


def short_table(rows: list[Row]) -> str:
    """The table of the README."""
    text = ["| program | kept by `unstall optimize` | results | faster | by the expert's hand |",
            "| --- | --- | --- | --- | --- |"]  # fmt: skip
    for row in sorted(rows, key=lambda row: -(row.gain or 0)):
        if row.name not in HEALTHY:
            cells = [", ".join(row.kept) or "nothing", row.sameness, gain_in_words(row), times(row.expert)]
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


def gain_in_words(row: Row) -> str:
    """The gain, and what it is made of where the first epoch is another one."""
    if row.first_epoch is None:
        return times(row.gain)
    if row.later_epochs is None:
        return f"– (first epoch {times(row.first_epoch)}, and too long to reach a second)"
    pays = f"pays from epoch {row.pays_from}" if row.pays_from else "never pays"
    return f"{times(row.gain)} (first epoch {times(row.first_epoch)}, later {times(row.later_epochs)}, {pays})"


def times(factor: float | None) -> str:
    """A factor as the tables show it; a dash where there is none."""
    return f"{factor:.2f}×" if factor is not None and not math.isnan(factor) else "–"
