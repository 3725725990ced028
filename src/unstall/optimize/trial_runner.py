"""Run variants of the user's program: processes of their own, each in the sandbox.

A changed file is written in its own place inside the sandbox, so a trial runs exactly what the patch would give, and
loader workers, ranks and sub-processes see it too; outside, the user's tree stays as it is.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import psutil

from unstall.benchmark.launcher import BOOTSTRAP
from unstall.benchmark.load import Load
from unstall.child import trial
from unstall.child.trial.sealing import sealed
from unstall.environment import CHILD, PLAN, RUN_DIR
from unstall.optimize.fork_server import UNFIT, ForkedProcess, ForkServer, ForkServerEnded, can_fork
from unstall.optimize.source.files import Sources
from unstall.optimize.thresholds import STOP_PATIENCE_S, SUSPENDED_S

if TYPE_CHECKING:
    from unstall.optimize.proposal import Proposal
    from unstall.sandbox import Sandbox

_PUT_SOURCES = Path(trial.__file__).with_name("put_sources.py")
_POLL_S = 0.05
_TAIL = 2000


@dataclass(frozen=True)
class Variant:
    """One form of the program: its sources, and what is set at run time."""

    sources: Sources = field(default_factory=Sources)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def files(self) -> Mapping[Path, bytes]:
        """The new content of each source that differs from the file in its place."""
        return {path: wanted for path, _, wanted in self.sources.differing()}

    def changed_by(self, proposal: Proposal) -> Variant:
        """This variant with a change on top: in the source where it is written, else at run time."""
        if proposal.sources is not None:
            return Variant(proposal.sources, self.settings)
        return Variant(self.sources, {**self.settings, **proposal.settings})


@dataclass(frozen=True)
class TrialRun:
    """How a trial run went."""

    folder: Path
    """What its child side wrote."""
    status: int
    seconds: float
    timed_out: bool
    output: str
    """The end of what it printed."""
    suspended_s: float = 0.0
    """Time for which this machine, or this command, was suspended meanwhile: its timing says nothing."""
    other_cores: float = 0.0
    """Cores that other programs took meanwhile, about."""

    def json(self, name: str) -> Any:
        """A file the child side wrote, None when it did not get that far."""
        try:
            return json.loads((self.folder / name).read_text())
        except (OSError, ValueError):
            return None


T = TypeVar("T")


class Trials(Protocol):
    """Where the trials of a search run: a :class:`TrialRunner` here, or one elsewhere."""

    @property
    def suspended_s(self) -> float:
        """Seconds that were nobody's fault and do not count."""

    def do(self, function: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Call a function of this package with a runner first; all that it times it times on one machine."""


class TrialRunner:
    """Runs variants of one program, one at a time."""

    def __init__(self, line: Sequence[str], folder: Path, sandbox: Sandbox):
        self.line = list(line)
        self.folder = folder
        self.sandbox = sandbox
        self.count = 0
        self.suspended_s = 0.0
        """Seconds that the machine was suspended, in all runs so far."""
        self.forks: ForkServer | None = None
        self.may_fork = sandbox.force == "overlay" and can_fork(line)
        """Whether trials may be forks of a process that has imported torch."""

    def do(self, function: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Call a function with this runner first, as :class:`Trials` has it."""
        return function(self, *arguments, **options)

    def use_forks(self) -> None:
        """Start later trials as forks of a process that has imported torch, where that makes no difference."""
        if self.may_fork and self.forks is None:
            self.forks = ForkServer.begin(self.line[0], self.around({"PYTHONHASHSEED": HASH_SEED, **os.environ}))

    def stop_forking(self) -> bool:
        """Start no trial as a fork any more; whether any would have been."""
        self.may_fork = False
        forks, self.forks = self.forks, None
        if forks is not None:
            forks.close()
        return forks is not None

    def run(self, variant: Variant, plan: Mapping[str, Any], *, timeout: float, ordinarily: bool = False) -> TrialRun:
        """Start the program under a plan for its child side, and wait until it ends or the time is up.

        ``ordinarily``: not as a fork, whether or not it could be one.
        """
        forks = None if ordinarily else self.forks
        run = self._run(variant, plan, timeout, forks)
        if forks is not None and (run.folder / UNFIT).exists():
            self.stop_forking()
            run = self._run(variant, plan, timeout, None)
        return run

    def _run(self, variant: Variant, plan: Mapping[str, Any], timeout: float, forks: ForkServer | None) -> TrialRun:
        folder = self.make_folder()
        env = self.environment(folder, {**plan, "settings": dict(variant.settings)})
        if forks is not None:
            with contextlib.suppress(ForkServerEnded):
                forks.wait_until_ready()
        began, load, suspended = time.monotonic(), Load(), self.suspended_s
        process: Any = self._start(variant, env, folder, forks)
        try:
            timed_out = self._wait(process, folder, began + timeout)
        except BaseException:  # Ctrl-C: nobody waits for it any more
            end_tree(process, patience_s=0.0)
            raise
        end_tree(process)
        seconds = time.monotonic() - began
        tail = (folder / "output.txt").read_bytes()[-_TAIL:].decode(errors="replace")
        forked_s = process.cpu_s if isinstance(process, ForkedProcess) else 0.0
        others = load.of_others(seconds, forked_s)
        return TrialRun(folder, process.returncode, seconds, timed_out, tail, self.suspended_s - suspended, others)

    def _start(
        self, variant: Variant, env: Mapping[str, str], folder: Path, forks: ForkServer | None
    ) -> subprocess.Popen[bytes] | ForkedProcess:
        with open(folder / "output.txt", "wb") as output:
            if forks is not None:
                self.sandbox.command(self.line)
                manifest = manifest_of(variant.files, folder, self.sandbox)
                try:
                    return forks.fork(
                        {
                            "words": self.line, "env": env, "folder": str(folder), "output": output.name,
                            "layer": self.sandbox.plan, "manifest": manifest,
                        }
                    )  # fmt: skip
                except ForkServerEnded:
                    self.stop_forking()
            words = self.sandbox.command(self.words(variant, folder))
            return subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)

    def words(self, variant: Variant, folder: Path) -> list[str]:
        """The command line that puts the variant's sources in place and becomes the program."""
        return with_files(variant.files, self.line, folder, self.sandbox)

    def environment(self, folder: Path, plan: Mapping[str, Any]) -> dict[str, str]:
        """The program's environment."""
        return trial_environment(self.sandbox, folder, plan, self.around(os.environ))

    def around(self, env: Mapping[str, str]) -> dict[str, str]:
        """An environment in which what torch.compile makes is kept: it would be lost with the sandbox."""
        return {"TORCHINDUCTOR_CACHE_DIR": str(self.folder / "inductor"), **env}

    def make_folder(self) -> Path:
        self.count += 1
        folder = self.folder / f"trial-{self.count:03d}"
        folder.mkdir()
        return folder

    def _wait(self, process: subprocess.Popen[bytes] | ForkedProcess, folder: Path, deadline: float) -> bool:
        """Wait for the end; a program that ignores the clock's stop is ended after a while. True when time ran out."""
        written: float | None = None
        last = time.monotonic()
        while process.poll() is None:
            now = time.monotonic()
            if now - last > SUSPENDED_S:  # a laptop's lid, Ctrl-Z
                self.suspended_s += now - last
                deadline += now - last
            last = now
            if written is None and (folder / "clock.json").exists():
                written = now
            if written is not None and now - written > STOP_PATIENCE_S:
                return False
            if now > deadline:
                return written is None
            time.sleep(_POLL_S)
        return False


def with_files(files: Mapping[Path, bytes | None], line: Sequence[str], folder: Path, sandbox: Sandbox) -> list[str]:
    """The command line that puts files in place and becomes the program; None for one that is not to be there.

    ``folder`` takes the new contents. Raises TrialNotPossible where the files would be changed for real.
    """
    manifest = manifest_of(files, folder, sandbox)
    return [sys.executable, "-I", "-S", str(_PUT_SOURCES), manifest, *line] if manifest else list(line)


def manifest_of(files: Mapping[Path, bytes | None], folder: Path, sandbox: Sandbox) -> str | None:
    """The file that tells put_sources what to put where; None where there is nothing.

    ``folder`` takes it, and the new contents. Raises TrialNotPossible where the files would be changed for real.
    """
    if not files:
        return None
    if sandbox.force != "overlay":
        raise TrialNotPossible(f"changes to the source cannot be tried here: {sandbox.note}")
    (folder / "manifest.json").write_text(json.dumps(write_files(files, folder)))
    return str(folder / "manifest.json")


def write_files(files: Mapping[Path, bytes | None], folder: Path) -> list[tuple[str, str | None]]:
    """Write contents into a folder: for each file its place and the copy, as put_sources reads them."""
    pairs: list[tuple[str, str | None]] = []
    for number, (path, wanted) in enumerate(files.items()):
        copy = folder / f"source-{number}"
        if wanted is not None:
            copy.write_bytes(wanted)
        pairs.append((str(path), None if wanted is None else str(copy)))
    return pairs


HASH_SEED = "20260101"
"""The hash seed of runs that are compared with each other. Not 0: ``sys.flags`` would show it."""


def trial_environment(
    sandbox: Sandbox, folder: Path, plan: Mapping[str, Any], env: Mapping[str, str]
) -> dict[str, str]:
    """A program's environment, with the bootstrap first on its path and the plan for the child side."""
    path = env.get("PYTHONPATH")
    inside = {
        **env,
        "PYTHONPATH": f"{BOOTSTRAP}{os.pathsep}{path}" if path else str(BOOTSTRAP),
        RUN_DIR: str(folder),
        PLAN: sealed(json.dumps(plan)),
        CHILD: "unstall.child.trial",
    }
    if plan.get("seed"):
        inside.setdefault("PYTHONHASHSEED", HASH_SEED)
    return sandbox.environment(inside)


class TrialNotPossible(Exception):
    """A trial cannot be run here; the message says why."""


def end_tree(process: subprocess.Popen[bytes] | ForkedProcess, patience_s: float = 3.0) -> None:
    """End a process and everything it started; ``patience_s``: how long it may take for its own end."""
    try:
        family = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        family = []
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()
    for member in family:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            pass
    psutil.wait_procs(family, timeout=3)
