"""What runs inside a trial of the user's program. Standard library only; must not raise into the program.

The parent says what is wanted in ``UNSTALL_PLAN`` (JSON): ``clock`` (count the steps and stop), ``observe`` (write down
losses, outputs and weights), ``account`` (of steps, calls and batches), ``reached`` (which lines of a change are),
``volume`` (how much each operator takes), ``results`` (what functions give), ``seed`` (make two runs comparable),
``shorter`` (epochs of fewer samples), ``perturb`` (be off by one unit in the last place), ``stress`` (let models go
astray), ``check`` (of what is cached), ``probe`` (where loaders and optimizers are made), ``settings`` (remedies at run
time), ``fault`` (let a call of a model fail), ``raised`` (let a function fail), ``held`` (hold helper threads up),
``elsewhere`` (start in another folder), ``damaged`` (let a sample be another), ``letters`` (let a letter of all texts
be another), ``many`` (let there be far more), ``lone`` (let the last batch have one), ``colliding`` (let all checksums
be the same), ``ahead`` (make batches before they are asked for), ``loading`` (make them in a worker). Each is one
module here, with ``targets(plan, folder)``: module name → functions to call once that module has been imported.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from unstall import environment
from unstall.child import launchers
from unstall.child.importhook import PostImport
from unstall.child.trial.sealing import opened
from unstall.child.trial.tensors import is_traced
from unstall.child.user_files import is_user_file

if TYPE_CHECKING:
    from collections.abc import Callable

PARTS = (
    "reached", "volume", "settings", "seed", "shorter", "check", "perturb", "stress", "probe", "observe", "account",
    "clock", "fault", "held", "elsewhere", "damaged", "letters", "many", "lone", "raised", "colliding", "ahead",
    "loading", "results",
)  # fmt: skip
"""The parts in the order in which they are put in place.

What changes what is computed comes before what writes that down, ``observe`` and ``account``, and these before the
clock, which ends the program once they have seen a step. A fault comes after all of these: they have seen the call that
fails. The place of the others makes no difference.
"""

COMPLAINTS_NAME = "complaints.txt"
"""In a run's folder: what could not be put in place, a line each."""


def start() -> None:
    """Called by the bootstrap in every Python process of a trial."""
    plan = json.loads(opened(os.environ[environment.PLAN]))
    folder = os.environ[environment.RUN_DIR]
    install(plan, folder)


def install(plan: dict[str, Any], folder: str) -> None:
    """Put the parts that the plan asks for in place."""
    hook = PostImport(targets(plan, folder), lambda name, error: complain(folder, name, error))
    sys.meta_path.insert(0, hook)
    hook.install_loaded()


def targets(plan: dict[str, Any], folder: str) -> dict[str, list[Any]]:
    """Module name → what is to be called when that module has been imported."""
    hooks: dict[str, list[Any]] = {}
    for part in PARTS:
        if plan.get(part) is None:
            continue
        module = importlib.import_module(f"unstall.child.trial.{part}")
        for name, function in module.targets(plan[part], folder):
            hooks.setdefault(name, []).append(function)
    return hooks


def complain(folder: str, what: str, error: BaseException) -> None:
    """Leave a line for the parent; the program goes on."""
    try:
        with open(os.path.join(folder, COMPLAINTS_NAME), "a") as file:
            file.write(f"{what}: {error!r}\n")
    except OSError:
        pass


def after_model_calls(module: Any, then: Callable[[Any, tuple[Any, ...], Any], None]) -> None:
    """Call ``then(model, arguments, result)`` after each call of a model from outside of any.

    Args:
        module: ``torch.nn.modules.module``.
        then: arguments by keyword come after the others; a module without parameters is no model.
    """

    def look(model: Any, args: tuple[Any, ...], result: Any) -> Any:
        then(model, args, result)
        return result

    replace_model_results(module, look)


def replace_model_results(module: Any, replaced: Callable[[Any, tuple[Any, ...], Any], Any]) -> None:
    """Let each call of a model from outside of any give what ``replaced(model, arguments, result)`` returns.

    Both are as for :func:`after_model_calls`.
    """
    original = module.Module.__call__
    depth = 0

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal depth
        depth += 1
        try:
            result = original(self, *args, **kwargs)
        finally:
            depth -= 1
        is_model = not depth and next(self.parameters(), None) is not None
        return replaced(self, (*args, *kwargs.values()), result) if is_model else result

    module.Module.__call__ = __call__


def around_backward(
    module: Any, before: Callable[[Any], None] | None = None, after: Callable[[], None] | None = None
) -> None:
    """Call ``before(losses)`` and ``after()`` around each backward; what a compiler traces is none of the program's.

    ``module``: ``torch.autograd``.
    """
    original = module._engine_run_backward

    @functools.wraps(original)
    def _engine_run_backward(losses: Any, *args: Any, **kwargs: Any) -> Any:
        if is_traced(losses):
            return original(losses, *args, **kwargs)
        if before is not None:
            before(losses)
        result = original(losses, *args, **kwargs)
        if after is not None:
            after()
        return result

    module._engine_run_backward = _engine_run_backward


def after_optimizer_steps(module: Any, then: Callable[[], None]) -> None:
    """Call ``then`` after each step of any optimizer. ``module``: ``torch.optim.optimizer``."""
    module.register_optimizer_step_post_hook(lambda optimizer, args, kwargs: then())


_unseen = 0


class Unseen:
    """What happens in a ``with`` block of it is the checks' own doing: neither counted nor recorded."""

    def __enter__(self) -> None:
        global _unseen
        _unseen += 1

    def __exit__(self, *error: object) -> None:
        global _unseen
        _unseen -= 1


def is_unseen() -> bool:
    """Whether a check is at work."""
    return _unseen > 0


def is_helper() -> bool:
    """Whether this process is a helper of the program: a loader worker, or a rank that is not the first."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        return True
    return not launchers.is_first()


def user_frame(depth: int) -> Any:
    """The nearest frame of code that is not a library's, from ``depth`` callers up; None when there is none."""
    return user_frame_above(sys._getframe(depth + 1))


def user_frame_above(frame: Any) -> Any:
    """The nearest frame of code that is not a library's: this one, or one that called it; None when there is none."""
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame
