"""``unstall gate``: is the candidate slower than the baseline?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from unstall.benchmark import command
from unstall.repeat import gating
from unstall.repeat.arms import ArmError
from unstall.repeat.gating import GateError, Request
from unstall.repeat.sequential import Plan
from unstall.repeat.worktree import WorktreeError
from unstall.runs.errors import Refused, refusing
from unstall.sandbox import SandboxError

if TYPE_CHECKING:
    from unstall.records.comparison import GateResult, Pair
    from unstall.runs.progress import Progress

__all__ = ["Plan", "Request", "hold"]


def hold(request: Request, progress: Progress, describe: Callable[[Pair, int, int], str]) -> GateResult:
    """Run baseline and candidate in turns until the answer is clear.

    Args:
        request: what to compare, and how surely.
        progress: gets a line for each pair of runs.
        describe: makes that line: of the pair, how many count so far, and after how many the gate may end next.

    Raises:
        Refused: the gate cannot be held, or broke; never an exception of another kind, because Python would end with
            1, and that is the code of a proven regression.
    """

    def on_pair(pair: Pair, counted: int) -> None:
        progress.log(describe(pair, counted, request.plan.next_look(counted)))

    try:
        with refusing(GateError, WorktreeError, ArmError, SandboxError, command.CommandError):
            command.resolve(request.words)
            return gating.hold(request, on_pair, progress.log)
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"the gate broke, please report this: {type(error).__name__}: {error}") from error
