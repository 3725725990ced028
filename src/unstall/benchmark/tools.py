"""Other people's profilers on request, around the user's program and in its main process only.

Runs inside the program: standard library only at import; the tools themselves are imported when asked
for, from the program's own environment.
"""

from __future__ import annotations

import contextlib
import importlib
import marshal
import os
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

_Function = tuple[str, int, str]  # file, line, name
_Calls = tuple[int, int, float, float]  # primitive calls, calls, own seconds, cumulative seconds
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
        What stops the profiler and writes its results; calling it again does nothing, nor does it in
        a process forked meanwhile. It never raises: what went wrong is put in ``<name>.error``. In a
        worker process nothing is started, and there is nothing to stop.

    Raises:
        RuntimeError: the tool is unknown, not installed or cannot start; one line says what to do.
    """
    begin = _TOOLS.get(name)
    if begin is None:
        raise RuntimeError(f"no profiler is called {name!r}; there are {', '.join(sorted(_TOOLS))}")
    if _is_worker_process():
        return lambda: None
    try:
        finish, abandon = begin(Path(run_dir))
    except RuntimeError:
        raise
    except Exception as error:
        raise RuntimeError(f"{name} could not be started: {error}") from error
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=abandon)
    return _once(name, Path(run_dir), finish)


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
    return any(
        flag == "-c" and code.startswith("from multiprocessing")
        for flag, code in zip(arguments, arguments[1:])
    )


def _require(module: str, option: str) -> types.ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise RuntimeError(
            f"{option} needs {module}, which {sys.executable} cannot import ({error}); "
            f"install it there with: {sys.executable} -m pip install {module}"
        ) from None


def _no_action() -> None:
    """What a tool needs in a forked process that leaves it alone by itself."""


# --------------------------------------------------------------------------- the tools


def _start_cprofile(run_dir: Path) -> tuple[Stop, Stop]:
    profile = _require("cProfile", "--cprofile").Profile()

    def finish() -> None:
        profile.disable()
        profile.create_stats()
        with open(run_dir / f"profile-{os.getpid()}.pstats", "wb") as file:
            marshal.dump(without_bootstrap(profile.stats), file)

    profile.enable()
    return finish, profile.disable


def _start_pyinstrument(run_dir: Path) -> tuple[Stop, Stop]:
    pyinstrument = _require("pyinstrument", "--pyinstrument")
    profiler = pyinstrument.Profiler(async_mode="disabled")

    def finish() -> None:
        session = profiler.stop()
        stem = run_dir / f"pyinstrument-{os.getpid()}"
        session.save(stem.with_suffix(".pyisession"))
        stem.with_suffix(".txt").write_text(profiler.output_text(unicode=True), encoding="utf-8")
        stem.with_suffix(".html").write_text(profiler.output_html(), encoding="utf-8")

    profiler.start()
    return finish, lambda: sys.setprofile(None)


def _start_memray(run_dir: Path) -> tuple[Stop, Stop]:
    memray = _require("memray", "--memory")
    tracker = memray.Tracker(run_dir / f"memray-{os.getpid()}.bin", follow_fork=False)
    tracker.__enter__()
    return lambda: tracker.__exit__(None, None, None), _no_action


_TOOLS: dict[str, Callable[[Path], tuple[Stop, Stop]]] = {
    "cprofile": _start_cprofile,
    "pyinstrument": _start_pyinstrument,
    "memray": _start_memray,
}


# --------------------------------------------------------------------------- cProfile's numbers


def without_bootstrap(stats: dict[Any, Any]) -> _Stats:
    """The statistics as ``python -m cProfile`` gives them: without unstall's own functions.

    What the program called through a function of unstall's is put down to that function's callers,
    in proportion to how often each of them called it; what unstall did for itself is left out.
    """
    dropped = _on_own_account(stats)
    kept: _Stats = {}
    for function, (primitive, calls, own, cumulative, callers) in stats.items():
        if function in dropped or _is_bootstrap(function):
            continue
        total: _Calls = (primitive, calls, own, cumulative)
        for caller in dropped & callers.keys():
            total = _subtract(total, callers[caller])
        theirs = {caller: made for caller, made in callers.items() if caller not in dropped}
        kept[function] = (*total, _real_callers(stats, theirs, frozenset({function})))
    return kept


def _is_bootstrap(function: _Function) -> bool:
    return function[0].startswith(_PACKAGE)


def _on_own_account(stats: dict[Any, Any]) -> set[_Function]:
    """Unstall's functions that the program did not call, and all that was called by them alone."""
    dropped = {function for function in stats if _is_bootstrap(function) and not stats[function][4]}
    found = bool(dropped)
    while found:
        more = {
            function
            for function, (_, calls, _, _, callers) in stats.items()
            if function not in dropped
            and sum(made[1] for who, made in callers.items() if who in dropped or who == function)
            >= calls
            and not dropped.isdisjoint(callers)
        }
        dropped |= more
        found = bool(more)
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
            total = sum(part[1] for part in through.values())
            for origin, part in through.items():
                _add_calls(real, origin, _scaled(calls, part[1] / total if total else 0.0))
    return real


def _subtract(calls: _Calls, part: _Calls) -> _Calls:
    primitive, total, own, cumulative = (max(0, a - b) for a, b in zip(calls, part))
    return int(primitive), int(total), own, cumulative


def _scaled(calls: _Calls, share: float) -> _Calls:
    primitive, total, own, cumulative = calls
    return round(primitive * share), round(total * share), own * share, cumulative * share


def _add_calls(callers: dict[_Function, _Calls], caller: _Function, calls: _Calls) -> None:
    was = callers.get(caller, (0, 0, 0.0, 0.0))
    callers[caller] = (
        was[0] + calls[0],
        was[1] + calls[1],
        was[2] + calls[2],
        was[3] + calls[3],
    )
