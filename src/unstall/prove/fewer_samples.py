"""Runs of both sides under other seeds and with fewer samples in each epoch: another length of the data than ever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from unstall.prove import accounts
from unstall.prove.findings import Findings
from unstall.prove.runner import WholeRun
from unstall.prove.runs import OriginalFailed, Runs, Shorter, plan_of, samples_to_leave_out

_ORDERS_ITSELF = "not compared with fewer samples in each epoch, as the change orders its samples itself"

Both = tuple[Mapping[str, Any], WholeRun, WholeRun]
"""A plan, and a run of the original and of the changed program under it."""


@dataclass(frozen=True)
class FewerSamples:
    """The runs of one proof."""

    runs: Runs
    kind: str
    """What a step of this program is."""
    shift: int
    """Of the seeds."""
    by_sample: bool
    """Whether each sample is drawn under a seed of its own."""
    findings: Findings
    """Of the proof: where samples cannot be left out, it is one."""

    def watched(self, usual: WholeRun) -> Both | None:
        """With fewer samples where they can be left out, else with all; None where the original does not work so.

        ``usual``: a run of the original with all samples.
        """
        return self._shortened(usual) or self._both("", (1,))

    def _shortened(self, usual: WholeRun) -> Both | None:
        """Where a side does not take its samples from torch's samplers, the datasets say that they have fewer.

        None where that is not how it knows their number either.
        """
        fewer = tuple(dict.fromkeys((samples_to_leave_out(usual), 1)))
        runs = self._both("samplers", fewer)
        if runs is None or not _ends_alike(runs) or shortened(runs[1]) == shortened(runs[2]):
            return runs
        runs = self._both("datasets", fewer)
        if runs is not None and (not _ends_alike(runs) or _is_shorter(runs, usual)):
            return runs
        self.findings.add(_ORDERS_ITSELF)
        return None

    def _both(self, shorter: Shorter, fewer: Sequence[int]) -> Both | None:
        """A watched run of each side, with their plan; None where the original does not work so.

        ``fewer``: samples that are left out of each epoch; the first of these with which the original works.
        """
        for left_out in fewer:
            plan = plan_of(self.kind, shift=self.shift, shorter=shorter, left_out=left_out, by_sample=self.by_sample)
            with suppress(OriginalFailed):
                original = self.runs.original(plan)
                return plan, original, self.runs.changed(plan, original.seconds)
        return None


def shortened(run: WholeRun) -> int:
    """How many of its epochs had a sample less."""
    return int((run.account or {}).get("shortened", 0))


def _ends_alike(runs: Both) -> bool:
    _, original, changed = runs
    return changed.effects.status == original.effects.status


def _is_shorter(runs: Both, usual: WholeRun) -> bool:
    """Whether the changed program takes fewer samples than usual wherever the original does."""
    _, original, changed = runs
    if original.account is None or changed.account is None or usual.account is None:
        return False
    # Of the usual run's either side: they agree in it.
    counts = [*zip(*(accounts.samples(account) for account in (usual.account, original.account, changed.account)))]
    return any(all_ != before for all_, before, _ in counts) and not any(
        before != all_ == after for all_, before, after in counts
    )
