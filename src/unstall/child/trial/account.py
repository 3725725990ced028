"""Keep account of a whole run: the steps, the calls of models and what went into them, the batches, the random numbers.

``account.json``, written when the process ends: ``steps`` (of all optimizers), ``calls`` (one for each call of a model
from outside of any: [mode, rows, dtypes, digest of what went in]), ``batches`` (one for each that a loader gave:
[samples, digest]), ``random`` (digests of the global generators' states at the end), ``shortened`` (epochs that
shorter.py ended early), ``shared`` (bytes that it leaves in shared memory), and, after steps at equal distances,
``memory`` (resident bytes of the process), ``descriptors`` (that it has open), ``processes`` (its children),
``threads`` (its own), ``unnamed`` (bytes of the files without a name that it has open), ``nice`` and ``policy`` (how it
is scheduled), ``graphs`` (of how many steps autograd's graph is alive), ``cores`` (that it may use), ``signals`` (which
of those that end a program are blocked, ignored or handled, a bit each), and, at fewer of them, ``helpers`` (bytes
that its children have for themselves). ``unsettled``: parameters that were changed after the last step of their
optimizer. ``most_threads``: that it had at once whenever one was started, however short they live. ``batches_alive``:
[tensors that loaders have given, those that are alive] at the end of each epoch.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import json
import os
import random
import signal
import stat
import sys
import threading
from typing import TYPE_CHECKING, Any

from unstall.child import trial
from unstall.child.trial import shorter
from unstall.child.trial.graphs import Graphs, watch
from unstall.child.trial.kept_batches import KeptBatches
from unstall.child.trial.observe import facts
from unstall.child.trial.settled import Settled
from unstall.child.trial.spaced import Spaced
from unstall.child.trial.tensors import rows, tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LEVELS = ("memory", "descriptors", "processes", "threads", "unnamed", "nice", "policy", "cores", "signals", "graphs")
_MOST_SAMPLES, _MOST_OF_HELPERS = 4096, 64  # the kernel goes through all pages of these
_ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
_MOST = 200_000
"""Calls and batches that are listed; of those after them only the last digest, which all went into, is known."""


class TrialAccount:
    """Of the main process."""

    def __init__(self, folder: str):
        self.path = os.path.join(folder, "account.json")
        self.pid = os.getpid()
        self.steps = 0
        self.calls: list[tuple[str, int, str, str]] = []
        self.batches: list[tuple[int, str]] = []
        self.is_registered = False
        self.chains = {"calls": b"", "batches": b""}
        self.graphs = Graphs()
        self.kept = KeptBatches()
        self.levels = Spaced(lambda: (*levels(), self.graphs.alive()), _MOST_SAMPLES)
        self.helpers = Spaced(helpers_bytes, _MOST_OF_HELPERS)
        self.most_threads = 1
        self.settled = Settled()
        self.shared = shared_bytes()

    def register(self) -> None:
        """Write the account down at the end of the process."""
        if not self.is_registered:
            self.is_registered = True
            atexit.register(self.write)

    def step(self) -> None:
        """An optimizer has made a step."""
        self.register()
        self.steps += 1
        self.levels.note()
        self.helpers.note()

    def call(self, model: Any, args: tuple[Any, ...]) -> None:
        """A model has been called from outside of any."""
        if os.getpid() != self.pid or trial.is_unseen():
            return
        self.register()
        if not self.steps:
            self.levels.note()
        dtypes, digest = self._digest("calls", args)
        if len(self.calls) < _MOST:
            self.calls.append(("train" if model.training else "eval", rows(args), dtypes, digest))

    def thread(self) -> None:
        """A thread has been started."""
        if os.getpid() == self.pid:
            self.most_threads = max(self.most_threads, threading.active_count())

    def batch(self, batch: Any, data: int) -> None:
        """A loader of ``data`` (its identity) has given a batch to the main process."""
        if os.getpid() != self.pid or trial.is_unseen():
            return
        self.register()
        found = tensors(batch)
        self.kept.given(found, data)
        _, digest = self._digest("batches", found)
        if len(self.batches) < _MOST:
            self.batches.append((rows(tuple(found)), digest))

    def ended(self, data: int) -> None:
        """A loader of ``data`` has given the main process all of it."""
        if os.getpid() == self.pid and not trial.is_unseen():
            self.kept.ended(data)

    def _digest(self, chain: str, value: Any) -> tuple[str, str]:
        """The data types of the tensors in a value, and a digest of all that is in them."""
        known = [facts(tensor) for tensor in tensors(value)]
        content = repr([(dtype, shape) for dtype, shape, _, _ in known]).encode() + b"".join(d for _, _, d, _ in known)
        self.chains[chain] = hashlib.blake2b(self.chains[chain] + content, digest_size=16).digest()
        digest = hashlib.blake2b(content, digest_size=8).hexdigest()
        return ",".join(dtype for dtype, _, _, _ in known), digest

    def write(self) -> None:
        """Write it down."""
        if os.getpid() != self.pid:
            return
        account = {
            "steps": self.steps,
            "calls": self.calls,
            "batches": self.batches,
            "chains": {name: chain.hex() for name, chain in self.chains.items()},
            "random": random_states(),
            "shortened": shorter.epochs,
            "shared": max(0, shared_bytes() - self.shared),
            "helpers": self.helpers.readings,
            "unsettled": self.settled.changed_since(),
            "most_threads": self.most_threads,
            "batches_alive": self.kept.ends(),
            **{name: [row[place] for row in self.levels.readings] for place, name in enumerate(_LEVELS)},
        }
        with open(self.path, "w") as file:
            json.dump(account, file)


def levels() -> tuple[int, ...]:
    """What this process holds, in the order of ``_LEVELS`` but the last."""
    descriptors = _listed("/proc/self/fd")
    threads = _listed("/proc/self/task")
    unnamed = sum(map(_unnamed_bytes, descriptors))
    scheduled = os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0)
    cores = len(os.sched_getaffinity(0))
    counts = len(descriptors), len(children(threads)), len(threads), unnamed
    return resident_bytes(), *counts, *scheduled, cores, ending_signals()


def resident_bytes() -> int:
    """Of this process; 0 where the kernel does not tell."""
    words = _read("/proc/self/statm").split()
    return int(words[1]) * os.sysconf("SC_PAGE_SIZE") if words else 0


def children(threads: list[str]) -> list[str]:
    """Processes that these threads have started and not yet waited for; none where the kernel does not tell."""
    return [child for thread in threads for child in _read(f"/proc/self/task/{thread}/children").split()]


def helpers_bytes() -> int:
    """What the children have for themselves alone: pages that a fork shares are not counted."""
    return sum(map(_private_bytes, children(_listed("/proc/self/task"))))


def ending_signals() -> int:
    """Of the signals that end a program, a bit for each: is it blocked, ignored, handled, in the kernel's words."""
    words = _read("/proc/self/status").split()
    bits = 0
    for field in ("SigBlk:", "SigIgn:", "SigCgt:"):
        mask = int(words[words.index(field) + 1], 16) if field in words else 0
        for number in _ENDING:
            bits = 2 * bits + (mask >> (number - 1) & 1)
    return bits


def _private_bytes(process: str) -> int:
    words = _read(f"/proc/{process}/smaps_rollup").split()
    return 1024 * int(words[words.index("Private_Dirty:") + 1]) if "Private_Dirty:" in words else 0


def shared_bytes(at: str = "/dev/shm") -> int:
    """Of the files in shared memory."""
    total = 0
    for folder, _, names in os.walk(at):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except OSError:  # it is gone
                pass
    return total


def _unnamed_bytes(descriptor: str) -> int:
    """Of a file that is open and in no folder any more; 0 of all else, and of those that take what is printed."""
    try:
        facts = os.fstat(int(descriptor))
    except (OSError, ValueError):  # closed by now: the one that the list was read by
        return 0
    is_it = stat.S_ISREG(facts.st_mode) and not facts.st_nlink and (facts.st_dev, facts.st_ino) not in _PRINTED
    return facts.st_size if is_it else 0


def _printed() -> Iterator[tuple[int, int]]:
    """Device and number of the files that standard output and error go to, as the program is started with them."""
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            facts = os.fstat(descriptor)
            yield facts.st_dev, facts.st_ino


_PRINTED = frozenset(_printed())


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def random_states() -> dict[str, str]:
    """A digest of the state of each global generator: where no number more or less was drawn, it is the same."""
    states = {"python": repr(random.getstate()).encode()}
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        states["numpy"] = repr([part if isinstance(part, (str, int, float)) else part.tobytes()
                                for part in numpy.random.get_state()]).encode()  # fmt: skip
    if torch is not None:
        states["torch"] = torch.random.get_rng_state().numpy().tobytes()
    return {name: hashlib.blake2b(state, digest_size=8).hexdigest() for name, state in states.items()}


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """Hooks after each optimizer step, after each call of a model, where a loader gives a batch, and at backward."""
    if trial.is_helper():
        return []
    account = TrialAccount(folder)
    _after_thread_starts(account.thread)
    return [
        ("torch.optim.optimizer", lambda module: trial.after_optimizer_steps(module, account.step)),
        ("torch.optim.optimizer", account.settled.watch),
        (
            "torch.nn.modules.module",
            lambda module: trial.after_model_calls(module, lambda model, args, _: account.call(model, args)),
        ),
        ("torch.utils.data.dataloader", lambda module: _batches(module, account)),
        ("torch.autograd", lambda module: watch(module, account.graphs)),
    ]


def _after_thread_starts(then: Callable[[], None]) -> None:
    start = threading.Thread.start

    @functools.wraps(start)
    def start_and_tell(self: threading.Thread) -> None:
        start(self)
        then()

    threading.Thread.start = start_and_tell  # type: ignore[method-assign]


def _batches(module: Any, account: TrialAccount) -> None:
    base = module._BaseDataLoaderIter
    original = base.__next__

    def __next__(self: Any) -> Any:
        try:
            batch = original(self)
        except StopIteration:
            account.ended(id(self._dataset))
            raise
        account.batch(batch, id(self._dataset))
        return batch

    base.__next__ = __next__
