"""Stacks that were read while the program changed them: some have lost their outer frames, some could not be read.

The sampler does not stop the program. Of code that calls small Python functions all the time, such as pandas or
scikit-learn, some stacks begin somewhere in a library: read as they stand, they are of no phase, and the time would go
to the loop itself. They are continued as the whole stacks of the same thread are that pass through the function that
they begin with. Of the same code many stacks cannot be read at all; the sampler counts them. They were lost to what cut
the others, so these stand for them. How near that comes is measured by ``bench/stack_samples.py``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from unstall.benchmark.stacks import divided, merge
from unstall.benchmark.thresholds import LEAST_ROOT, MOST_CUT, MOST_LOST
from unstall.child.user_files import is_user_file
from unstall.records.observations import Frame, Observation, StackSample

_Function = tuple[str, str]
_Thread = tuple[int, int, str]


def with_whole_stacks(observation: Observation) -> Observation:
    """The same, its cut stacks continued outwards; those that nothing continues are left out."""
    windows = (*observation.before_loop, *observation.windows, *observation.pauses)
    threads = _Threads([*observation.samples, *(sample for window in windows for sample in window.samples)])
    before, during, pauses = (
        [replace(window, samples=threads.whole(window.samples, window.lost), lost=0) for window in part]
        for part in (observation.before_loop, observation.windows, observation.pauses)
    )
    samples = threads.whole(observation.samples, observation.lost)
    return replace(observation, samples=samples, lost=0, before_loop=before, windows=during, pauses=pauses)


class _Threads:
    """What the whole stacks of each thread look like."""

    def __init__(self, samples: Sequence[StackSample]):
        self._above: defaultdict[tuple[_Thread, _Function], Counter[tuple[Frame, ...]]] = defaultdict(Counter)
        """The frames that lead to a function, in whole stacks."""
        first: defaultdict[_Thread, Counter[_Function]] = defaultdict(Counter)  # how often it is outermost
        inside: defaultdict[_Thread, set[_Function]] = defaultdict(set)  # what is called by another
        for sample in samples:
            functions = [_function(frame) for frame in sample.frames]
            first[_thread(sample)][functions[0]] += sample.count
            inside[_thread(sample)].update(functions[1:])
        self._cut = {
            (thread, function)
            for thread, counts in first.items()
            for function, count in counts.items()
            if _is_cut_at(function, count / counts.total(), called=function in inside[thread])
        }
        for sample in samples:
            if not self._is_cut(sample):
                for depth, frame in enumerate(sample.frames[1:], 1):
                    self._above[_thread(sample), _function(frame)][sample.frames[:depth]] += sample.count

    def whole(self, samples: Sequence[StackSample], lost: int) -> list[StackSample]:
        """The samples with all of their frames; those that had been cut stand for those that were lost, too.

        What nothing continues is lost as well: nobody can say what called it.
        """
        cut = [sample for sample in samples if self._is_cut(sample)]
        continued = [whole for sample in cut if (whole := self._continued(sample)) is not None]
        found = _count(continued)
        lost = min(lost + _count(cut) - found, MOST_LOST * found)
        more = divided(lost, [sample.count / found for sample in continued])
        standing = [replace(sample, count=sample.count + times) for sample, times in zip(continued, more)]
        return merge([*(sample for sample in samples if not self._is_cut(sample)), *standing])

    def _is_cut(self, sample: StackSample) -> bool:
        return (_thread(sample), _function(sample.frames[0])) in self._cut

    def _continued(self, sample: StackSample) -> StackSample | None:
        above = self._above.get((_thread(sample), _function(sample.frames[0])))
        if not above:
            return None
        return replace(sample, frames=(*above.most_common(1)[0][0], *sample.frames))


def _is_cut_at(function: _Function, share: float, *, called: bool) -> bool:
    """Whether stacks that begin with it are cut: others call it, or it is a library's, where the thread seldom begins.

    ``share``: of the thread's stacks, those that begin with it.
    """
    return share < MOST_CUT if called else share < LEAST_ROOT and not is_user_file(function[1])


def _count(samples: Iterable[StackSample]) -> int:
    return sum(sample.count for sample in samples)


def _thread(sample: StackSample) -> _Thread:
    return sample.pid, sample.tid, sample.thread


def _function(frame: Frame) -> _Function:
    return frame.function, frame.file
