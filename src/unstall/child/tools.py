"""Other people's profilers on request, around the user's program and in its main process only.

Runs inside the program: standard library only at import; the tools themselves are imported when
asked for, from the program's own environment.
"""

from __future__ import annotations

import _thread
import contextlib
import importlib
import itertools
import marshal
import os
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

_Function = tuple[str, int, str]  # file, line, name
_Calls = tuple[int, int, float, float]  # calls, primitive calls, own seconds, cumulative seconds
_Stats = dict[_Function, tuple[int, int, float, float, dict[_Function, _Calls]]]

Stop = Callable[[], None]


def start(name: str, run_dir: str) -> Stop:
    """Start a profiler by name, to write its results into `run_dir` when it is stopped.

    Args:
        name: ``cprofile`` (writes ``profile-<pid>.pstats``), ``pyinstrument``
            (``pyinstrument-<pid>.html``, ``.txt`` and ``.pyisession``) or ``memray``
            (``memray-<pid>.bin``).
        run_dir: an existing directory.

    Returns:
        What stops the profiler and writes its results; calling it again does nothing, nor does it
        in a process forked meanwhile. It never raises: what went wrong is put in ``<name>.error``.
        In a worker process nothing is started, and there is nothing to stop.

    Raises:
        RuntimeError: the tool is unknown, not installed or cannot start; one line says what to do.
    """
    kind = _TOOLS.get(name)
    if kind is None:
        raise RuntimeError(f"no profiler is called {name!r}; there are {', '.join(sorted(_TOOLS))}")
    if _is_worker_process():
        return lambda: None
    try:
        tool = kind(Path(run_dir))
        stop = _once(name, Path(run_dir), tool.finish)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=tool.abandon)
        tool.begin()  # at the very last, so that it sees as little of this as can be
    except RuntimeError:
        raise
    except Exception as error:
        raise RuntimeError(f"{name} could not be started: {error}") from error
    return stop


def _once(name: str, run_dir: Path, finish: Stop) -> Stop:
    owner = os.getpid()
    lock = threading.Lock()  # held for good by the first call

    def stop() -> None:
        if os.getpid() != owner or not lock.acquire(blocking=False):
            return
        try:
            finish()
        except Exception as error:  # the program's own exit must not suffer from it
            with contextlib.suppress(OSError):
                (run_dir / f"{name}.error").write_text(f"{error}\n", encoding="utf-8")

    return stop


def _is_worker_process() -> bool:
    """Whether multiprocessing made this process: a worker, a fork server or a resource tracker."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        return True
    # A spawned one learns its role only later; its command line tells at once.
    arguments = sys.orig_argv
    return any(flag == "-c" and code.startswith("from multiprocessing") for flag, code in itertools.pairwise(arguments))


def _require(module: str, option: str) -> types.ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise RuntimeError(
            f"{option} needs {module}, which {sys.executable} cannot import ({error}); "
            f"install it there with: {sys.executable} -m pip install {module}"
        ) from None


class _Tool(Protocol):
    """A profiler: made, begun, and finished by writing its results."""

    def __init__(self, run_dir: Path) -> None: ...
    def begin(self) -> None: ...
    def finish(self) -> None: ...
    def abandon(self) -> None:
        """Called in a forked process, which is not to be profiled."""


class _CProfile:
    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.profile = _require("cProfile", "--cprofile").Profile()
        self.begin = self.profile.enable
        self.abandon = self.profile.disable

    def finish(self) -> None:
        self.profile.disable()
        self.profile.create_stats()
        with open(self.run_dir / f"profile-{os.getpid()}.pstats", "wb") as file:
            marshal.dump(without_bootstrap(self.profile.stats), file)


class _Pyinstrument:
    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.profiler = _require("pyinstrument", "--pyinstrument").Profiler(async_mode="disabled")

    def begin(self) -> None:
        self.profiler.start()

    def finish(self) -> None:
        session = self.profiler.stop()
        stem = self.run_dir / f"pyinstrument-{os.getpid()}"
        session.save(stem.with_suffix(".pyisession"))
        text = self.profiler.output_text(unicode=True, color=False)
        stem.with_suffix(".txt").write_text(text, encoding="utf-8")
        stem.with_suffix(".html").write_text(self.profiler.output_html(), encoding="utf-8")

    def abandon(self) -> None:
        sys.setprofile(None)


class _Memray:
    def __init__(self, run_dir: Path) -> None:
        file = run_dir / f"memray-{os.getpid()}.bin"
        self.tracker = _require("memray", "--memory").Tracker(file, follow_fork=False)

    def begin(self) -> None:
        # memray cuts off from a thread's stacks as many frames as it is started under: those of the start-up here,
        # but those of the program's main module, and more, afterwards. So it is started from another thread.
        failure: list[BaseException] = []
        done = _thread.allocate_lock()
        done.acquire()

        def enter() -> None:
            try:
                self.tracker.__enter__()
            except BaseException as error:
                failure.append(error)
            finally:
                done.release()

        _thread.start_new_thread(enter, ())
        done.acquire()
        if failure:
            raise failure[0]

    def finish(self) -> None:
        self.tracker.__exit__(None, None, None)

    def abandon(self) -> None:
        """It sees to forks itself."""


_TOOLS: dict[str, type[_Tool]] = {
    "cprofile": _CProfile,
    "pyinstrument": _Pyinstrument,
    "memray": _Memray,
}


# --------------------------------------------------------------------------- cProfile's numbers


def without_bootstrap(stats: dict[Any, Any]) -> _Stats:
    """The statistics as ``python -m cProfile`` gives them: without unstall's own functions.

    What the program called through a function of unstall's is put down to that function's callers,
    in proportion to how often each of them called it; what unstall did for itself is left out.
    """
    dropped = _on_own_account(stats)
    kept: _Stats = {}
    for function, (*totals, callers) in stats.items():
        theirs = {caller: made for caller, made in callers.items() if caller not in dropped}
        if function in dropped or _is_bootstrap(function) or (function[0] == "~" and not theirs):
            continue  # what is built in and was called by nobody was called before the program
        kept[function] = (*totals, _real_callers(stats, theirs, frozenset({function})))
    return kept


def _is_bootstrap(function: _Function) -> bool:
    return function[0].startswith((_PACKAGE, "<frozen site>"))


def _on_own_account(stats: dict[Any, Any]) -> set[_Function]:
    """Unstall's functions that the program did not call, and what only those call."""
    dropped = {function for function in stats if _is_bootstrap(function) and not stats[function][4]}
    grew = bool(dropped)
    while grew:
        more = {
            function
            for function, (*_, callers) in stats.items()
            if function not in dropped and callers and callers.keys() <= dropped | {function}
        }
        dropped |= more
        grew = bool(more)
    return dropped


def _real_callers(
    stats: dict[Any, Any], callers: dict[_Function, _Calls], passed: frozenset[_Function]
) -> dict[_Function, _Calls]:
    """The callers, with each function of unstall's replaced by those who called it."""
    real: dict[_Function, _Calls] = {}
    for caller, calls in callers.items():
        if not _is_bootstrap(caller):
            _add_calls(real, caller, calls)
        elif caller not in passed and caller in stats:
            through = _real_callers(stats, stats[caller][4], passed | {caller})
            total = sum(part[0] for part in through.values())
            for origin, part in through.items():
                _add_calls(real, origin, _scaled(calls, part[0] / total if total else 0.0))
    return real


def _scaled(calls: _Calls, share: float) -> _Calls:
    total, primitive, own, cumulative = calls
    return round(total * share), round(primitive * share), own * share, cumulative * share


def _add_calls(callers: dict[_Function, _Calls], caller: _Function, calls: _Calls) -> None:
    was = callers.get(caller, (0, 0, 0.0, 0.0))
    callers[caller] = (
        was[0] + calls[0],
        was[1] + calls[1],
        was[2] + calls[2],
        was[3] + calls[3],
    )
