"""Whole runs of either side, in the sandbox: timed and looked at from outside of the program.

Every run starts from the files as they are: what an earlier one wrote, caches in home and temporary folders and shared
memory too, is gone with its layer. The folder that the child side writes to is emptied after each run, so that no run
finds what another one has computed.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from unstall.optimize.equivalence import failures_in, read
from unstall.optimize.sameness import ObservedTensor
from unstall.optimize.trial_runner import trial_environment, with_files
from unstall.prove.inherited import Inherited
from unstall.prove.left_behind.effects import NOTHING, STDOUT, Content, Effects, written
from unstall.prove.left_behind.saves import Saved, Saves
from unstall.prove.lines import volume
from unstall.prove.lines.calls import Calls, Quarters, counted_in
from unstall.prove.lines.reached import LoopLines, Place, loop_lines_in, places_in
from unstall.prove.lines.results import Results, found_in
from unstall.prove.lines.volume import Volume
from unstall.prove.machine_use import MachineUse
from unstall.prove.trees import Files

if TYPE_CHECKING:
    from unstall.sandbox import Sandbox

_POLL_S = 0.005
_MOST_KEPT_BYTES = 64 << 20
_KEPT = ("user", "logon", "big_key")  # kinds of keys that hold what a program likes
_STOP_PATIENCE_S = 10.0  # from the last step of a short look to the end of the process


@dataclass(frozen=True)
class WholeRun:
    """How a run went."""

    seconds: float
    """Seconds from its start until its last process had ended."""
    timed_out: bool
    memory_bytes: float
    """Peak resident memory of the largest process."""
    effects: Effects
    errors: Content = NOTHING
    """What it wrote to stderr."""
    tensors: Sequence[ObservedTensor] = ()
    account: Mapping[str, Any] | None = None
    clock: Mapping[str, Any] | None = None
    reached: frozenset[Place] = frozenset()
    """What of the change ran, where that was asked for."""
    calls: Calls = field(default_factory=dict)
    """How often each of the program's functions was called, where that was asked for."""
    quarters: Quarters = field(default_factory=dict)
    """The calls in each quarter of the steps."""
    volume: Volume = field(default_factory=dict)
    """How many elements operators took in each quarter, where that was asked for."""
    validations: Volume = field(default_factory=dict)
    """The same in each of the first four validations."""
    results: Results = field(default_factory=dict)
    """What functions gave, where that was asked for."""
    loop_lines: LoopLines = field(default_factory=LoopLines)
    """What was being executed in the program's loops, where that was asked for."""
    saves: Mapping[str, Saved] = field(default_factory=dict)
    """How often each file was saved, as far as that was seen."""
    refused: Sequence[str] = ()
    """What it tried and the sandbox refused, a line each."""
    files: Mapping[Path, bytes] | None = field(default=None, repr=False)
    """All that it has left, where that was asked for and is not too much."""
    cpu_s: float = 0.0
    """Core-seconds of all its processes that were seen."""
    most_threads: int = 0
    """At once, of all its processes, as far as that was seen."""
    most_descriptors: int = 0
    """Open at once, in all its processes, as far as that was seen."""
    addresses: frozenset[str] = frozenset()
    """Of its sockets, as far as they were seen: ports, and names."""
    locked: float = 0.0
    """Share of the run in which it held a lock on a file for itself."""
    raised: bool = False
    """Whether a call of a function has failed, where that was asked for."""
    changed_data: Mapping[str, Any] | None = None
    """Which of the program's data were made others, where that was asked for; None where none could be."""
    outlived_s: float = 0.0
    """How long a process that it had started went on after its own end."""
    failures: Sequence[str] = ()
    """What unstall's own child side could not do in its processes, a line each."""


class _Measured(NamedTuple):
    """What is seen of a run's processes from outside."""

    seconds: float
    """Until the last of them has ended."""
    timed_out: bool
    memory_bytes: float
    status: int
    outlived_s: float
    """From the program's own end to that of the last."""
    use: MachineUse


class SandboxedRunner:
    """Runs one command with either side's files, one run at a time."""

    def __init__(self, line: Sequence[str], slot: Path, sandbox: Sandbox):
        """Run a command.

        Args:
            line: as it is started.
            slot: a folder that the sandbox keeps writable, for what the child side writes.
            sandbox: where it runs.
        """
        self.line, self.slot, self.sandbox = line, slot, sandbox

    def run(self, files: Files, plan: Mapping[str, Any], *, timeout: float, keeps_files: bool = False) -> WholeRun:
        """Run a side under a plan for the child side (:mod:`unstall.child.trial`); an empty one watches nothing.

        ``keeps_files``: read what it has left as a whole.
        """
        words = self._words(files, plan)
        keys, inherited = _keys(), Inherited.now()
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors, Saves(self.sandbox.home) as saves:
            measured = self._measured(words, plan, timeout, output, errors)
            contents = {STDOUT: Content.of(_content(output)), **dict(written(self.sandbox.layers(), files))}
            left = _files_of([name for name in contents if name != STDOUT], self.sandbox) if keeps_files else None
            printed = _content(errors)
        refused = self.sandbox.refused_lately()
        contents |= self._left_elsewhere(keys, inherited)
        lines = printed.decode(errors="replace").strip().splitlines()
        use = measured.use
        run = WholeRun(
            seconds=measured.seconds,
            timed_out=measured.timed_out,
            memory_bytes=measured.memory_bytes,
            effects=Effects(measured.status, lines[-1][:200] if lines else "", contents),
            errors=Content.of(printed),
            saves=saves.of_files(self.sandbox.layers()),
            refused=refused,
            files=left,
            cpu_s=use.cpu_s,
            most_threads=use.most_threads,
            most_descriptors=use.most_descriptors,
            addresses=frozenset(use.addresses),
            locked=use.locked,
            outlived_s=measured.outlived_s,
            **self._told_by_child(),
        )
        self._empty()
        return run

    def _words(self, files: Files, plan: Mapping[str, Any]) -> list[str]:
        """The command line that puts files in place, in the sandbox, and becomes the program."""
        line = _absolute(self.line) if "elsewhere" in plan else self.line
        return self.sandbox.command(with_files(files, line, self.slot, self.sandbox), settled=True)

    def _environment(self, plan: Mapping[str, Any]) -> dict[str, str]:
        """The program's environment.

        Every run has a hash seed, those that are compared number by number the same: none can be told by it.
        """
        own = {"PYTHONHASHSEED": str(random.SystemRandom().randrange(1, 2**32)), **os.environ}
        around = os.environ if plan.get("seed") else own
        return trial_environment(self.sandbox, self.slot, {"settings": {}, **plan}, around)

    def _measured(
        self, words: Sequence[str], plan: Mapping[str, Any], timeout: float, output: BinaryIO, errors: BinaryIO
    ) -> _Measured:
        """Run a command line, and look on until all that it has started has ended, or time is out.

        ``output`` and ``errors`` take what it prints.
        """
        env = self._environment(plan)
        stops = bool(plan.get("clock", {}).get("steps"))
        outlives_s = float(plan.get("outlives", {}).get("seconds", math.inf))
        began = time.monotonic()
        process = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
        try:
            use = MachineUse(process.pid)
            memory, ended, timed_out = self._wait(process, use, began + timeout, outlives_s, stops=stops)
            all_ended = time.monotonic()
        except BaseException:  # Ctrl-C
            self._end(process)
            raise
        return _Measured(all_ended - began, timed_out, memory, process.returncode, all_ended - ended, use)

    def _left_elsewhere(self, keys: set[str], inherited: Inherited) -> dict[str, Content]:
        """What the run has left outside of files, where the next one could find it; what unstall inherits is put back.

        Args:
            keys: in the kernel's keyrings before the run.
            inherited: what unstall's own process might use then.
        """
        names = [f"the kernel's keyring, {name}" for name in _keys() - keys]
        if Inherited.now() != inherited:
            names.append("what unstall's own process may use, and how it is scheduled")
            inherited.put_back()
        names += [f"the sandbox's own folder, {name}" for name in self.sandbox.forget()]
        return dict.fromkeys(names, NOTHING)

    def _told_by_child(self) -> dict[str, Any]:
        """What the child side has written, as fields of a run."""
        calls, quarters = counted_in(self.slot / "calls.json")
        return {
            "tensors": list(read(self.slot / "observed.bin")),
            "account": _json(self.slot / "account.json"),
            "clock": _json(self.slot / "clock.json"),
            "reached": places_in(self.slot / "reached.jsonl"),
            "calls": calls,
            "quarters": quarters,
            "volume": volume.counted_in(self.slot / "volume.json"),
            "validations": volume.counted_in(self.slot / "validations.json"),
            "results": found_in(self.slot / "results.json"),
            "loop_lines": loop_lines_in(self.slot / "loop_lines.json"),
            "raised": _json(self.slot / "raised.json") is True,
            "changed_data": _json(self.slot / "changed_data.json"),
            "failures": failures_in(self.slot),
        }

    def _wait(
        self, process: subprocess.Popen[bytes], use: MachineUse, deadline: float, outlives_s: float, *, stops: bool
    ) -> tuple[float, float, bool]:
        """Wait until the program and all that it started has ended: its peak memory, when it ended itself, and whether
        time ran out.

        Args:
            process: the program, or what runs it.
            use: is asked to look now and then.
            deadline: all is ended then.
            outlives_s: after how many seconds what it started is ended.
            stops: the child side stops the program after some steps; one that goes on is ended.
        """
        memory, stopped = 0.0, None
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                memory = usage.ru_maxrss * 1024.0
                use.end(usage.ru_utime + usage.ru_stime)
                break
            now = time.monotonic()
            if stops and stopped is None and (self.slot / "clock.json").exists():
                stopped = now
            if now > deadline or (stopped is not None and now - stopped > _STOP_PATIENCE_S):
                self._end(process)
                if now <= deadline:
                    process.returncode = 0  # it goes on after its last step, as some programs do: all was seen
                return memory, time.monotonic(), now > deadline
            use.note()
            time.sleep(_POLL_S)
        ended = time.monotonic()
        while self.sandbox.running():
            now = time.monotonic()
            if now > deadline or now - ended > outlives_s:
                self._end(process)
                return memory, ended, now > deadline
            time.sleep(_POLL_S)
        return memory, ended, False

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Kill the program and all that it started."""
        if process.returncode is None:
            process.kill()
            process.wait()
        for pid in self.sandbox.running():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # it has ended

    def _empty(self) -> None:
        for path in self.slot.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _absolute(line: Sequence[str]) -> list[str]:
    """A command line whose files are named by whole paths."""
    return [os.path.abspath(word) if os.path.exists(word) else word for word in line]


def _keys() -> set[str]:
    """What lies in the kernel's keyrings, where a run could leave something for the next one."""
    try:
        lines = Path("/proc/keys").read_text().splitlines()
    except OSError:
        return set()
    fields = [line.split(maxsplit=8) for line in lines]
    return {each[8].partition(":")[0] for each in fields if len(each) == 9 and each[7] in _KEPT}


def _files_of(names: Sequence[str], sandbox: Sandbox) -> dict[Path, bytes] | None:
    """What children of a sandbox have written, by the path that they know; None where it is too much."""
    written = {
        Path(name): upper / os.path.relpath(name, place)
        for place, upper in sandbox.layers()
        for name in names
        if name.startswith(place.rstrip(os.sep) + os.sep)
    }
    files = {path: above for path, above in written.items() if above.is_file() and not above.is_symlink()}
    if sum(above.stat().st_size for above in files.values()) > _MOST_KEPT_BYTES:
        return None
    return {path: above.read_bytes() for path, above in files.items()}


def _content(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None
