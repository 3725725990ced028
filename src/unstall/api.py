"""The Python API: a thin layer on the recorder. Standard library only until a report is asked for.

``span`` and ``steps`` cost next to nothing, and do nothing, in a program that is not being recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from unstall.child.recording import native, seam_ready
from unstall.child.seams import explicit
from unstall.records.vocabulary import Tick

if TYPE_CHECKING:
    from unstall.profiling import Profile
    from unstall.records.report import Report

T = TypeVar("T")

seam_ready()  # a program that marks its own loop is recorded, whatever else it imports

span: Any = native.span
"""``with span("name"):``, ``@span("name")`` or bare ``@span``: record the time of a block, or of a function's calls.

Raises TypeError when given anything but a name or a function.
"""


def steps(iterable: Iterable[T]) -> Iterator[T]:
    """Pass the items of ``iterable`` on, and count each turn of the loop over it as a step.

    The time that the iterable takes for the next item is the phase ``data_wait``.
    """
    iterator = iter(iterable)
    name, kind = native.intern(explicit.NEXT.event), int(Tick.EXPLICIT)
    while True:
        native.tick(kind, name, iterable)
        native.begin(name)
        try:
            item = next(iterator)
        except StopIteration:
            return
        finally:
            native.end(name)
        yield item


def profile() -> Profile:
    """Record a part of this program: ``with unstall.profile() as run: ...``, then ``run.report()`` is its Report."""
    from unstall.profiling import Profile

    return Profile()


def run(command: Sequence[str], *, steps: int | None = None, sampling: bool = True) -> Report:
    """Run a program as ``unstall run`` does and return its report.

    Args:
        command: as on the command line: ``["train.py", "--epochs", "1"]``, ``["-m", "package.train"]``.
        steps: stop after this many measured steps.
        sampling: sample stacks, which name the culprit.

    Raises:
        unstall.benchmark.command.CommandError: there is nothing to start; the message says why.
        OSError: neither the working nor the temporary directory can hold the recording.
    """
    from unstall.diagnose.run_report import run_and_report
    from unstall.notebook import show_reports

    show_reports()
    return run_and_report(list(command), steps=steps, sampling=sampling)
