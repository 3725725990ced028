"""``unstall run --ray``: the workers that a running Ray cluster starts for the program are recorded on their nodes.

An actor on each node holds the folder of the recordings and watches the node's workers from outside, as ``unstall run``
watches a program. When the program has ended, each actor says what it saw, and the parts are put together as those of
``--gather`` are. The program and unstall must be on every node in the same places: a shared file system, or one image.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unstall import environment
from unstall.benchmark.launcher import BOOTSTRAP, ProgramExit, RecordingOptions
from unstall.benchmark.rundir import RunDir
from unstall.benchmark.session import Session
from unstall.benchmark.signals import RELAYED
from unstall.child import ray_jobs
from unstall.runs import ray_cluster

if TYPE_CHECKING:
    from unstall.diagnose.run_report import DiagnosedRun
    from unstall.records.observations import StackSample
    from unstall.records.part import Part

MessageHandler = Callable[[str], None]

RAYLET = "RAY_RAYLET_PID"
"""What Ray sets for each worker: its node's own process, by which nodes on one machine are told apart."""

_POLL_S = 0.1
_READY_S = 60.0
_END_S = 8.0  # for workers whose job is over
_JUDGE_S = 120.0


@dataclass(frozen=True)
class NodeAnswer:
    """What was recorded on a node."""

    steps: int
    part: Part | None
    """The ranks that ran there, of a program of several."""
    stacks: list[StackSample] = field(default_factory=list)


@dataclass(frozen=True)
class Asked:
    """Of the run, for the diagnosis of what a node saw."""

    id: str
    words: list[str]
    started: datetime
    status: int
    steps: int | None
    modules: bool


class Watch:
    """Watches the program's workers of one node, as an actor there."""

    def __init__(self, prefix: str, options: Mapping[str, Any]):
        """``prefix``: the folder's path but for the raylet's pid. OSError where the folder cannot be made."""
        self._raylet = int(os.environ[RAYLET])
        self._folder = Path(f"{prefix}{self._raylet}")
        self._folder.mkdir(mode=0o700)
        self._options = options
        self._session: Session | None = None
        self._diagnosis: DiagnosedRun | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def python_path(self) -> str | None:
        """The PYTHONPATH that the node's workers have without us."""
        return os.environ.get("PYTHONPATH")

    def finish(self, asked: Asked) -> NodeAnswer:
        """The program has ended: say what its workers did here."""
        from unstall.benchmark.gather import parts
        from unstall.diagnose.run_report import make_report

        deadline = time.monotonic() + _END_S
        while self._is_anybody_left() and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        self._ended.set()
        self._thread.join()
        if self._session is None:
            return NodeAnswer(0, None)
        outcome = ProgramExit(asked.status, self._session.finish())
        directory = RunDir(asked.id, self._folder, None)
        self._diagnosis = make_report(
            asked.words, directory, asked.started, outcome, steps=asked.steps, modules=asked.modules
        )
        measured = self._diagnosis.measured
        if measured is None:
            return NodeAnswer(0, None)
        part = parts.make(measured, asked.status)
        return NodeAnswer(int(measured.chosen.sum()), part, list(measured.measurement.samples) if part else [])

    def diagnosis(self) -> DiagnosedRun | None:
        """All that was measured here."""
        return self._diagnosis

    def close(self) -> None:
        """Leave nothing behind."""
        self._ended.set()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _watch(self) -> None:
        while not self._ended.wait(self._session.poll_s if self._session else _POLL_S):
            if self._session is not None:
                self._session.poll()
            elif any(self._folder.glob("info-*.jsonl")):
                self._session = Session(self._raylet, self._folder, **self._options)
                self._session.resources.ignore.add(os.getpid())

    def _is_anybody_left(self) -> bool:
        pids = [path.stem.partition("-")[2] for path in self._folder.glob("info-*.jsonl")]
        return any(Path(f"/proc/{pid}").exists() for pid in pids)


@dataclass
class _RecordingNode:
    id: str
    name: str
    watch: Any


class Nodes:
    """The nodes of a cluster, each with its watch."""

    def __init__(self, ray: Any, on_message: MessageHandler):
        self._ray, self._on_message = ray, on_message
        self._prefix = str(Path(tempfile.gettempdir(), f"unstall-ray-{secrets.token_hex(4)}-"))
        self._nodes: list[_RecordingNode] = []
        self._paths: set[str | None] = set()

    def open(self, options: RecordingOptions) -> None:
        """Start a watch on each node; one that cannot be watched is told of."""
        watched = {"steps": options.steps, "sampling": options.sampling, "gpu_window": options.gpu_window > 0}
        actor = self._ray.remote(Watch)
        for node in self._ray.nodes():
            if node["Alive"]:
                place = ray_cluster.pinned(node["NodeID"])
                watch = actor.options(num_cpus=0, scheduling_strategy=place).remote(self._prefix, watched)
                self._nodes.append(_RecordingNode(node["NodeID"], node["NodeManagerHostname"], watch))
        asked = [(node, node.watch.python_path.remote()) for node in self._nodes]
        for node, answer in asked:
            path = self._get(node, answer, _READY_S)
            if node in self._nodes:
                self._paths.add(path)
        if not self._nodes:
            self._on_message("no node of the Ray cluster can be watched: the report is of this process alone")

    def recording(self, options: RecordingOptions) -> RecordingOptions:
        """The options with which the program's process hands its recording on to its job's workers."""
        settings = {**options.settings, ray_jobs.SETTING: self._variables(options)}
        return replace(options, extensions=[*options.extensions, "unstall.child.ray_jobs"], settings=settings)

    def _variables(self, options: RecordingOptions) -> dict[str, str]:
        """The workers' environment variables; ``${X}`` is for Ray to fill in on the node."""
        above = [] if self._paths <= {None, ""} else ["${PYTHONPATH}"]
        return {
            "PYTHONPATH": os.pathsep.join([str(BOOTSTRAP), *above]),
            environment.RUN_DIR: f"{self._prefix}${{{RAYLET}}}",
            environment.OPTIONS: options.for_child(),
        }

    def diagnosis(self, own: DiagnosedRun, asked: Asked) -> DiagnosedRun:
        """The run, by what was seen on all nodes: of the ranks where there are some, else of the longest loop."""
        answers = [(node, node.watch.finish.remote(asked)) for node in list(self._nodes)]
        seen = {node.id: (node, answer) for node, call in answers if (answer := self._get(node, call, _JUDGE_S))}
        of_ranks = {id: answer.part for id, (_, answer) in seen.items() if answer.part is not None}
        own_steps = 0 if own.measured is None else int(own.measured.chosen.sum())
        if of_ranks:
            best = min(of_ranks, key=lambda id: min(of_ranks[id].numbers))
        else:
            best = max(seen, key=lambda id: seen[id][1].steps, default="")
            if not best or seen[best][1].steps <= own_steps:
                return own
        node = seen[best][0]
        base: DiagnosedRun | None = self._get(node, node.watch.diagnosis.remote(), _JUDGE_S)
        if base is None:
            return own
        if not of_ranks:
            steps = sum(answer.steps > 0 for _, answer in seen.values())
            others = f"; loops ran on {steps} nodes, this one made the most steps" if steps > 1 else ""
            return base.noting(f"the loop ran on the Ray node {node.name}{others}")
        return self._together(base, [answer for id, (_, answer) in seen.items() if id in of_ranks and id != best])

    def _together(self, base: DiagnosedRun, others: list[NodeAnswer]) -> DiagnosedRun:
        """As ``--gather`` puts parts together."""
        from unstall.benchmark.gather import parts
        from unstall.benchmark.gather.store import MemoryStore
        from unstall.runs.gather import Gathering

        store = MemoryStore()
        for answer in others:
            assert answer.part is not None
            parts.publish(store, answer.part, answer.stacks, secrets.token_hex(4))
        return Gathering(store, since=None, wait_s=0.0, on_message=self._on_message).gather(base).diagnosis

    def close(self) -> None:
        """Leave nothing on the nodes, and the cluster."""
        for node, answer in [(node, node.watch.close.remote()) for node in list(self._nodes)]:
            self._get(node, answer, _END_S)
            self._ray.kill(node.watch)
        self._ray.shutdown()

    def _get(self, node: _RecordingNode, call: Any, patience_s: float) -> Any:
        """The answer of a node; None where there is none, and then it is told and the node left out."""
        from ray.exceptions import GetTimeoutError, RayError, RayTaskError

        try:
            return self._ray.get(call, timeout=patience_s)
        except RayTaskError as error:
            reason = " ".join(str(error.cause).split())
        except GetTimeoutError:
            reason = f"no answer within {patience_s:.0f} s"
        except RayError as error:
            reason = type(error).__name__
        self._on_message(f"the Ray node {node.name} is not seen: {reason}")
        self._nodes = [other for other in self._nodes if other.id != node.id]
        return None


@contextlib.contextmanager
def open_nodes(options: RecordingOptions, on_message: MessageHandler) -> Iterator[Nodes]:
    """Watches on the nodes of the cluster, for as long as this is open. Raises Refused where no cluster answers."""
    own = dict(os.environ)  # Ray changes it, and it is the program's
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, RELAYED)  # for Ray's threads: signals are the main thread's
    try:
        nodes = Nodes(ray_cluster.connect("--ray"), on_message)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.environ.clear()
        os.environ.update(own)
    try:
        nodes.open(options)
        yield nodes
    finally:
        nodes.close()
