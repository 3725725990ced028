"""Stacks as py-spy writes them: read, cut to what matters, and summed.

A line of ``py-spy record --format raw --threads --subprocesses`` is a stack and its count::

    process 7:"python a.py";process 9:"python a.py";thread (9): MainThread;f (a.py:3);g (b.py:8) 41

The chain of processes leads from the watched one to the one the stack was seen in. Nothing is
escaped: command lines, thread names and file names may hold semicolons, parentheses, newlines.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from unstall.child.user_files import is_program_file
from unstall.records.observations import Frame, Observation, StackSample

_LOST = re.compile(r"\bErrors: (\d+)\b")
_RECORD = re.compile(r'^process \d+:"', re.MULTILINE)
_PROCESS = re.compile(r'(?:^|;)process (\d+):"')
_THREAD = re.compile(r"(?<=\";)thread \((0x[0-9A-Fa-f]+|\d+)\)")
# Code that was generated may have no line, and then py-spy leaves it out.
_FRAME = re.compile(r"([^;]+?) \(([^;]*?)(?::(-?\d+))?\)(?:;|$)")
_FRAME_FILE_WITH_SEMICOLON = re.compile(r"([^;]+?) \((.*?):(-?\d+)\)(?:;|$)", re.DOTALL)

_PROCESS_START = "multiprocessing/process.py"
_HELPER_PROCESSES = ("multiprocessing/resource_tracker.py", "multiprocessing/forkserver.py")


def parse_raw(text: str) -> list[StackSample]:
    """The stacks in py-spy's raw output, equal ones summed, outermost frame first.

    Lines that cannot be read (a file cut off by a full disk, say) are skipped; nothing is raised.
    A thread is the main one if the system's thread id is the process id (Linux), if it bears the
    name ``MainThread``, or if its process shows no other.
    """
    samples: list[StackSample] = []
    threads: defaultdict[int, set[str]] = defaultdict(set)
    for record in _records(text):
        parsed = _parse_record(record)
        if parsed is not None:
            samples.append(parsed)
            threads[parsed.pid].add(parsed.thread)
    return merge(replace(sample, main_thread=sample.main_thread or len(threads[sample.pid]) == 1) for sample in samples)


def lost_samples(said: str) -> int:
    """How many stacks py-spy could not read, by its last words: the program changed them meanwhile. 0 if they miss."""
    found = _LOST.findall(said)
    return int(found[-1]) if found else 0


def merge(samples: Iterable[StackSample]) -> list[StackSample]:
    """Equal stacks of the same thread summed into one sample, in order of first appearance."""
    counts: Counter[tuple[int, str, tuple[Frame, ...], bool, int]] = Counter()
    for sample in samples:
        counts[(sample.pid, sample.thread, sample.frames, sample.main_thread, sample.tid)] += sample.count
    return [
        StackSample(pid=pid, thread=thread, frames=frames, count=count, main_thread=main_thread, tid=tid)
        for (pid, thread, frames, main_thread, tid), count in counts.items()
    ]


def divided(total: int, weights: Sequence[float]) -> list[int]:
    """A number of samples by weights that sum to 1, in whole ones that sum to it: largest remainders first."""
    exact = [total * weight for weight in weights]
    parts = [int(part) for part in exact]
    remainders = sorted(range(len(parts)), key=lambda place: parts[place] - exact[place])
    for place in remainders[: total - sum(parts)]:
        parts[place] += 1
    return parts


def with_main_threads(observation: Observation, threads: Mapping[int, Collection[int]]) -> Observation:
    """The same stacks, of some processes those of other threads as the main one's.

    Args:
        observation: of a run.
        threads: the numbers of the threads that do what the main thread does elsewhere, by process.
    """
    if not threads:
        return observation

    def moved(samples: Sequence[StackSample]) -> list[StackSample]:
        return [
            replace(sample, main_thread=sample.tid in threads[sample.pid]) if sample.pid in threads else sample
            for sample in samples
        ]

    windows = [replace(window, samples=moved(window.samples)) for window in observation.windows]
    return replace(observation, samples=moved(observation.samples), windows=windows)


def relevant(samples: Iterable[StackSample]) -> list[StackSample]:
    """What can explain a step's time: main threads, and other threads that run the program's code.

    Idle threads of libraries (queue feeders, pin-memory and thread-pool threads), the helper
    processes of multiprocessing and unstall's own threads are left out. In a process that
    multiprocessing started, the frames a fork inherited from its parent are cut off: no time
    passes in them.
    """
    explaining = []
    for sample in samples:
        frames = _own_frames(sample.frames)
        if program_leaf(frames) or (sample.main_thread and not _is_helper(frames)):
            explaining.append(replace(sample, frames=frames))
    return merge(explaining)


def program_leaf(frames: Sequence[Frame]) -> Frame | None:
    """The deepest frame in the program's own code, if there is any."""
    return next((frame for frame in reversed(frames) if is_program_file(frame.file)), None)


def _records(text: str) -> Iterator[str]:
    """The text cut where ``process N:"`` begins a line: a command line may hold newlines."""
    starts = [match.start() for match in _RECORD.finditer(text)]
    for start, end in zip(starts, [*starts[1:], len(text)]):
        yield text[start:end].rstrip("\n")


def _parse_record(record: str) -> StackSample | None:
    body, _, count = record.rpartition(" ")
    if not (count.isascii() and count.isdigit()):
        return None
    # The last match: what looks like a header before it belongs to a command line.
    thread = next(reversed(list(_THREAD.finditer(body))), None)
    if thread is None:
        return None
    pids = _PROCESS.findall(body, 0, thread.start())
    name, frames = _name_and_frames(body[thread.end() :])
    if not pids or not frames or any("\0" in frame.file or "\0" in frame.function for frame in frames):
        return None  # the last: read while the program changed it, as the sampler does not stop the program
    return StackSample(
        pid=int(pids[-1]),
        thread=name or f"thread {thread[1]}",
        frames=frames,
        count=int(count),
        main_thread=thread[1] == pids[-1] or name == "MainThread",
        tid=int(thread[1]) if thread[1].isdecimal() else 0,
    )


def _name_and_frames(rest: str) -> tuple[str, tuple[Frame, ...]]:
    """Split what follows a thread's id: its name, up to a semicolon that only frames follow."""
    end = rest.find(";")
    while end >= 0:
        for pattern in (_FRAME, _FRAME_FILE_WITH_SEMICOLON):
            frames = _parse_frames(rest[end + 1 :], pattern)
            if frames:
                return rest[:end].removeprefix(": "), frames
        end = rest.find(";", end + 1)
    return "", ()


def _parse_frames(text: str, pattern: re.Pattern[str]) -> tuple[Frame, ...]:
    """The frames that make up the whole text; none if anything in it is not a frame."""
    frames = []
    position = 0
    while position < len(text):
        match = pattern.match(text, position)
        if match is None:
            return ()
        frames.append(Frame(function=match[1], file=match[2], line=int(match[3] or 0)))
        position = match.end()
    return tuple(frames)


def _own_frames(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """The frames from the point on where multiprocessing started this process."""
    for index in range(len(frames) - 1, 0, -1):
        frame = frames[index]
        if frame.function.endswith("_bootstrap") and frame.file.endswith(_PROCESS_START):
            return frames[index:]
    return frames


def _is_helper(frames: tuple[Frame, ...]) -> bool:
    return any(frame.file.endswith(_HELPER_PROCESSES) for frame in frames)
