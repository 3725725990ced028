"""Python imports this at start-up of every interpreter that unstall starts, and then runs the program.

Its folder is first on PYTHONPATH, so it also reaches loader workers, ranks and sub-processes. It must never print, or
leave a trace in the program: it takes its folder off sys.path and gives way to any other sitecustomize.
What to do in the process is said by the environment: guard it (a sandbox), record it, or run another part of unstall.
"""

import os
import sys


def start(folder: str, module: str, errors: str, *arguments: str) -> None:
    """Call ``start(*arguments)`` of a part of unstall in this process; an error is a line in the file ``errors``.

    The name ``unstall`` is the package's only meanwhile: a program may have a module of its own by that name.
    """
    theirs = sys.modules.pop("unstall", None)
    try:
        import importlib

        _find_unstall(folder)
        importlib.import_module(module).start(*arguments)
        importlib.import_module("unstall.child.ownpackage").install()
    except Exception as error:
        try:
            with open(errors, "a") as file:
                file.write(f"{module} did not start: {type(error).__name__}: {error}\n")
        except OSError:
            pass
    finally:
        sys.modules.pop("unstall", None)
        if theirs is not None:
            sys.modules["unstall"] = theirs


def _find_unstall(folder: str) -> None:
    """Import the package from its own place, whatever interpreter this is and whatever its site-packages hold."""
    import importlib.util

    package = os.path.dirname(os.path.dirname(folder))
    spec = importlib.util.spec_from_file_location(
        "unstall", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"there is no package in {package}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["unstall"] = module
    spec.loader.exec_module(module)


def _chain_sitecustomize(folder: str) -> None:
    """Import the sitecustomize that would have been found without this one.

    Where there is none, Python must not find this one either: the error that says so is the one that it expects then.
    """
    sys.modules.pop("sitecustomize", None)
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != folder]
    sys.path_importer_cache.pop(folder, None)
    import sitecustomize  # type: ignore[import-not-found]  # noqa: F401


def start_parts(folder: str) -> None:
    """Start what the environment asks for."""
    sandbox, recording = os.environ.get("UNSTALL_SANDBOX"), os.environ.get("UNSTALL_RUN_DIR")
    if sandbox:
        start(folder, "unstall.child.sandbox.start", os.path.join(sandbox, "notes", f"refused-{os.getpid()}.txt"))
    if recording:
        errors = os.path.join(recording, "bootstrap-error.txt")
        start(folder, os.environ.get("UNSTALL_CHILD", "unstall.child.main"), errors)


def _start_up(folder: str) -> None:
    """What the environment asks for, and then the sitecustomize of somebody else."""
    start_parts(folder)
    _chain_sitecustomize(folder)


if __name__ == "sitecustomize":  # and not what runs it for ``start`` in a program that runs already
    _start_up(os.path.dirname(os.path.abspath(__file__)))
