"""``--on ray``: trials and experiments on a Ray cluster.

One node at a time has them all, so that what is compared was timed on one machine; an actor takes all of its cores and
GPUs, so that no other task of Ray's runs beside. Where the node is lost, the call that it was at begins anew on another
one, and what other calls had found before stands. The program, its data and unstall must be on every node, in the same
places: a shared file system, or one image.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any

from unstall.optimize.comparison import TrialFailed
from unstall.optimize.equivalence import Unobservable
from unstall.optimize.trial_runner import TrialNotPossible
from unstall.runs import ray_cluster
from unstall.runs.errors import Failed, Refused

MessageHandler = Callable[[str], None]
Open = Callable[[MessageHandler], AbstractContextManager[Any]]
"""Opens what the calls work with, on the node that they run on; it gets where its messages go."""

_ANSWERS = (Failed, Refused, TrialFailed, TrialNotPossible, Unobservable)
"""Errors that are an answer."""
_LOOK_S = 0.3
_CLOSE_S = 20.0
_MOST_LOSSES = 2  # of one node


class NoNode(TrialFailed):
    """The cluster has no node left; the message is one line."""


class _Lost(Exception):
    """The node, or the process on it, is gone."""


@dataclass(frozen=True)
class _TrialNode:
    """One of the cluster's."""

    id: str
    name: str
    cpus: float
    gpus: float


class NodeActor:
    """What runs on the node, as an actor: holds what was opened there, and calls functions with it."""

    def __init__(self, folder: str, variables: Mapping[str, str], mailbox: Any):
        """``folder``, ``variables``: of the command; Ray's own number of threads and GPUs would be the program's."""
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(folder)
        self.mailbox = mailbox
        self.stack = ExitStack()
        self.opened: Any = None

    def open(self, open: Open) -> tuple[Any, Exception | None]:
        """Open what :meth:`do` works with."""
        try:
            self.opened = self.stack.enter_context(open(self.send_message))
            return None, None
        except _ANSWERS as error:
            return None, error

    def do(self, function: Callable[..., Any], arguments: Any, options: Any) -> tuple[Any, Exception | None]:
        """Call a function with it: what it returns, or the error that is its answer."""
        try:
            return function(self.opened, *arguments, **options), None
        except _ANSWERS as error:
            return None, error

    def send_message(self, message: object) -> None:
        """Send a message to the command, while a function runs."""
        self.mailbox.put(message)

    def close(self) -> None:
        """Put all in order on the node."""
        self.stack.close()


class OnRay:
    """Calls functions with what ``open`` opens on a node of the cluster.

    ``on_progress`` gets what functions there say by the way; ``wait`` sleeps between two looks at a call.
    """

    suspended_s = 0.0

    def __init__(
        self,
        open: Open,
        on_message: MessageHandler,
        on_progress: Callable[[Any], None] | None,
        wait: Callable[[float], None],
    ):
        """Raises Refused where Ray is not installed, or no cluster answers."""
        self._ray = ray_cluster.connect("--on ray")
        self._open, self._on_message = open, on_message
        self._on_progress: Callable[[Any], None] = on_progress or on_message
        self._wait = wait
        self._losses: Counter[str] = Counter()
        self._node: _TrialNode | None = None
        self._actor: Any = None
        self._is_busy = False
        self.moves: list[str] = []
        """What happened to nodes, a line each."""
        from ray.util.queue import Queue

        here = self._ray.get_runtime_context().get_node_id()
        self._mailbox = Queue(actor_options={"num_cpus": 0, "scheduling_strategy": ray_cluster.pinned(here)})

    def do(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """What the function returns, called on the node; on another one where that is lost.

        Raises NoNode where none is left.
        """
        while True:
            try:
                if self._actor is None:
                    self._begin()
                return self._answer(self._actor.do.remote(function, arguments, options))
            except _Lost as error:
                self._leave(str(error))

    def close(self) -> None:
        """Put all in order, here and on the node; a node that is at work is left at once."""
        from ray.exceptions import RayError

        if self._actor is not None:
            if not self._is_busy:
                with contextlib.suppress(RayError):
                    self._ray.get(self._actor.close.remote(), timeout=_CLOSE_S)
            self._ray.kill(self._actor)
        self._mailbox.shutdown(force=True)
        self._ray.shutdown()

    def _begin(self) -> None:
        """Take a node for itself, and open there."""
        self._node = node = self._next()
        self._on_message(f"on the Ray node {node.name}, once all of its {node.cpus:g} cores are free")
        actor = self._ray.remote(NodeActor).options(
            num_cpus=node.cpus, num_gpus=node.gpus, scheduling_strategy=ray_cluster.pinned(node.id), max_restarts=0
        )
        self._actor = actor.remote(os.getcwd(), dict(os.environ), self._mailbox)
        self._answer(self._actor.open.remote(self._open))

    def _next(self) -> _TrialNode:
        """The strongest of the nodes that were lost the least: a process may be lost by itself. Raises NoNode."""
        nodes = [
            _TrialNode(
                node["NodeID"], node["NodeManagerHostname"], node["Resources"]["CPU"], node["Resources"].get("GPU", 0)
            )
            for node in self._ray.nodes()
            if node["Alive"] and node["Resources"].get("CPU") and self._losses[node["NodeID"]] < _MOST_LOSSES
        ]
        if not nodes:
            raise NoNode("no node of the Ray cluster is left")
        return max(nodes, key=lambda node: (-self._losses[node.id], node.gpus, node.cpus, node.id))

    def _answer(self, call: Any) -> Any:
        """Wait for a call, pass on what it says meanwhile. Raises _Lost where the node is gone before its end."""
        from ray.exceptions import RayError, RayTaskError

        self._is_busy = True
        done: list[Any] = []
        try:
            while not done:
                self._wait(_LOOK_S)
                done, _ = self._ray.wait([call], timeout=0)
                self._pass_on()
            value, error = self._ray.get(call)
        except RayTaskError:
            raise  # an error of ours
        except RayError as error:
            raise _Lost(type(error).__name__) from error
        self._is_busy = False
        if error is not None:
            raise error
        return value

    def _pass_on(self) -> None:
        for _ in range(self._mailbox.qsize()):
            self._on_progress(self._mailbox.get())

    def _leave(self, why: str) -> None:
        """Do without the node from now on."""
        assert self._node is not None
        line = f"the Ray node {self._node.name} is lost ({why}): its interrupted work starts again"
        self._on_message(line)
        self.moves.append(line)
        self._losses[self._node.id] += 1
        self._ray.kill(self._actor)
        self._actor, self._is_busy = None, False


@contextlib.contextmanager
def open_on_ray(
    open: Open,
    on_message: MessageHandler,
    on_progress: Callable[[Any], None] | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> Iterator[OnRay]:
    """A place on the cluster, put in order at the end. Raises Refused."""
    place = OnRay(open, on_message, on_progress, wait)
    try:
        yield place
    finally:
        place.close()
