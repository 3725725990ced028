"""Fork trials from one process that has imported torch: ``fork_server.py SOCKET MODULE...``.

Run as a script by the program's own interpreter, outside of the sandbox; each fork enters a layer of its own, and
becomes the program. To the program it is a process that has just been started: what was imported before is out of
sight until it imports it itself, and is there at once then. What the program sets before that import could have made
it another one (variables of the environment, cores, another place to find it): such a fork says why, and ends.

Each line on the socket asks for one fork, as :class:`Request` has it. The answers are lines: ``ready``; a process id;
an exit code and the seconds of processor time that the fork has used.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import importlib
import importlib.util
import json
import os
import runpy
import signal
import socket
import sys
import threading
import types
from importlib.machinery import ModuleSpec, SourceFileLoader

TYPE_CHECKING = False  # as typing's, without the import
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(os.path.dirname(_HERE))
_BOOTSTRAP = os.path.join(_PACKAGE, "child", "bootstrap")
UNFIT = "unfit.txt"
"""In a trial's folder: why its program cannot be forked."""


class Request:
    """What one fork is to become."""

    def __init__(self, fields: dict[str, Any]):
        self.words: list[str] = fields["words"]
        """The program's command line: an interpreter, then a script or ``-m`` and a module, then its arguments."""
        self.env: dict[str, str] = fields["env"]
        self.folder: str = fields["folder"]
        """The trial's, which stays writable for real."""
        self.output: str = fields["output"]
        """The file that takes what it prints."""
        self.layer: str = fields["layer"]
        """How to enter the sandbox, as enter.py reads it."""
        self.manifest: str | None = fields["manifest"]
        """The sources to be put in their places, as put_sources.py reads it."""


def serve(channel: socket.socket) -> Request:
    """Fork as often as the parent asks; returns in each fork, with what it is to become."""
    channel.sendall(b"ready\n")
    with channel.makefile("r") as lines:
        for line in lines:
            pid = os.fork()
            if not pid:
                return Request(json.loads(line))
            channel.sendall(b"%d\n" % pid)
            _, status, used = os.wait4(pid, 0)
            channel.sendall(b"%d %f\n" % (os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime))
    os._exit(0)


class Entrance:
    """The sandbox's entrance and the trial's other scripts: imported before the first fork, and out of sight in all."""

    def __init__(self) -> None:
        before, path = set(sys.modules), sys.path[:]
        self.enter = _load("enter", os.path.join(_PACKAGE, "sandbox", "enter.py"))
        self.put_sources = _load("put_sources", os.path.join(_HERE, "put_sources.py"))
        self.bootstrap = _load("unstall_bootstrap", os.path.join(_BOOTSTRAP, "sitecustomize.py"))
        sys.path[:] = path
        for name in set(sys.modules) - before:
            if (getattr(sys.modules[name], "__file__", None) or "").startswith(_PACKAGE):
                del sys.modules[name]

    def open(self, request: Request) -> None:
        """Be in a layer of one's own, with the changed sources in place, and the program's environment."""
        with open(request.layer) as file:
            plan = json.load(file)
        environment = {os.fsencode(name): os.fsencode(value) for name, value in request.env.items()}
        self.enter.Entrance(plan, request.words, environment).open()
        if request.manifest:
            self.put_sources.place(request.manifest)
        os.environ.clear()
        os.environ.update(request.env)


class Hidden:
    """Modules that were imported before, out of sight until the program imports them: a meta path finder."""

    def __init__(self, names: Sequence[str], folder: str):
        """``names``: of packages, each of which imports those before it."""
        self.folder, self.order = folder, list(names)
        self.cores = os.sched_getaffinity(0)
        self.packages: dict[str, dict[str, Any]] = {
            name: {
                each: module for each, module in sys.modules.items() if each == name or each.startswith(f"{name}.")
            }
            for name in names
        }  # fmt: skip
        for modules in self.packages.values():
            for name in modules:
                del sys.modules[name]
        sys.meta_path.insert(0, self)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname not in self.packages:
            return None
        found = next(filter(None, (finder.find_spec(fullname, path, target) for finder in self.others())), None)
        if found is None:
            return None
        spec = ModuleSpec(fullname, _Loader(self), origin=found.origin)  # type: ignore[arg-type]  # it need not be one
        spec.submodule_search_locations = found.submodule_search_locations
        return spec

    def others(self) -> list[Any]:
        """The finders that find a module for themselves."""
        return [
            finder for finder in sys.meta_path
            if finder is not self and hasattr(finder, "find_spec") and not hasattr(finder, "install_loaded")
        ]  # fmt: skip

    def take(self, spec: ModuleSpec) -> dict[str, Any]:
        """The modules of a package that the program imports now."""
        if os.sched_getaffinity(0) != self.cores:
            self.end(f"its cores are chosen before {spec.name} is imported")
        modules = self.packages.pop(spec.name)
        if spec.origin != modules[spec.name].__spec__.origin:
            self.end(f"{spec.name} is found in another place")
        return modules

    def before(self, name: str) -> list[str]:
        """The packages that a package imports itself: those before it."""
        return [other for other in self.order[: self.order.index(name)] if other in self.packages]

    def watch_environment(self) -> None:
        """End when the program changes its environment before it has imported them all."""
        for name in ("putenv", "unsetenv"):
            self._watch(name, getattr(os, name))

    def _watch(self, name: str, original: Any) -> None:
        def changed(variable: Any, *value: Any) -> None:
            if self.packages:
                self.end(f"{os.fsdecode(variable)} is set before {' and '.join(self.packages)} is imported")
            setattr(os, name, original)
            original(variable, *value)

        setattr(os, name, changed)

    def end(self, why: str) -> None:
        """Say why the program has to be started in the ordinary way, and end."""
        with open(os.path.join(self.folder, UNFIT), "w") as file:
            file.write(why)
        os._exit(0)


class _Loader:
    """Gives a module back that was hidden, with all below it, as if it had just been executed."""

    def __init__(self, hidden: Hidden):
        self.hidden = hidden
        self.modules: dict[str, Any] = {}
        self.spec: Any = None

    def create_module(self, spec: ModuleSpec) -> Any:
        self.modules = self.hidden.take(spec)
        module = self.modules[spec.name]
        self.spec = module.__spec__
        return module

    def exec_module(self, module: Any) -> None:
        module.__spec__ = self.spec
        for name in self.hidden.before(self.spec.name):
            importlib.import_module(name)
        below = {name: each for name, each in self.modules.items() if each is not module}
        sys.modules.update(below)
        finders: list[Any] = [finder for finder in sys.meta_path if hasattr(finder, "install_loaded")]
        for finder in finders:  # unstall's, that install something after an import
            for name in filter(finder.targets.__contains__, below):
                finder.install(name, below[name])


def become(request: Request, entrance: Entrance, preloaded: Sequence[str]) -> None:
    """Run the program, in this process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _redirect(request.output)
    try:
        entrance.open(request)
    except OSError as error:
        print(f"unstall: the sandbox could not be entered: {error}", file=sys.stderr, flush=True)
        os._exit(entrance.enter._STATUS)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # as in any new process
    hidden = Hidden([name for name in preloaded if name in sys.modules], request.folder)
    entrance.bootstrap.start_parts(_BOOTSTRAP)
    hidden.watch_environment()
    os._exit(ended(request.words))


def ended(words: Sequence[str]) -> int:
    """Run the program to its end; its exit code.

    Its threads have ended then, what it has registered has been called, and what it has printed is written. The
    interpreter need not be taken down: in a fork that touches, and so copies, all that was imported before.
    """
    status = 0
    try:
        run(words)
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]  # as the interpreter does first of all
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # closed, or put away
            stream.flush()
    return status & 0xFF


def run(words: Sequence[str]) -> None:
    """What ``python script ...`` and ``python -m module ...`` do after start-up."""
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __annotations__={})
    sys.modules["__main__"] = main
    sys.orig_argv[:] = words
    if words[1] == "-m":
        sys.argv[:] = ["-m", *words[3:]]
        sys.path[0] = os.getcwd()
        runpy._run_module_as_main(words[2])  # type: ignore[attr-defined]  # that is what -m calls
        return
    script = os.path.abspath(words[1])
    sys.argv[:] = words[1:]
    sys.path[0] = os.path.dirname(os.path.realpath(script))
    main.__dict__.update(__file__=script, __cached__=None, __loader__=SourceFileLoader("__main__", script))
    with open(script, "rb") as file:
        code = compile(file.read(), script, "exec", dont_inherit=True)
    exec(code, main.__dict__)


def _redirect(output: str) -> None:
    """Nothing on stdin; all that is printed in a file."""
    for path, flags, descriptors in ((os.devnull, os.O_RDONLY, (0,)), (output, os.O_WRONLY | os.O_APPEND, (1, 2))):
        opened = os.open(path, flags)
        for descriptor in descriptors:
            os.dup2(opened, descriptor)
        os.close(opened)


def _load(name: str, path: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _preload(modules: Sequence[str]) -> None:
    """Import them and write nothing, not even their byte code."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    for name in modules:
        importlib.import_module(name)
    sys.dont_write_bytecode = before


def main(descriptor: int, modules: Sequence[str]) -> None:
    """Be the server, and then, in each of its forks, the program."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    entrance = Entrance()
    _preload(modules)
    with socket.socket(fileno=descriptor) as channel:
        request = serve(channel)
    become(request, entrance, list(dict.fromkeys(name.partition(".")[0] for name in modules)))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
