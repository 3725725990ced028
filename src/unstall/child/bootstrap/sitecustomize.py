"""Python imports this at start-up of every interpreter that unstall starts, and then runs the program.

Its folder is first on PYTHONPATH, so it also reaches loader workers, ranks and sub-processes. It must never raise,
print, or leave a trace in the program: it takes its folder off sys.path and gives way to any other sitecustomize.
What to do in the process is said by the environment: guard it (a sandbox), record it, or run another part of unstall.
"""

import os
import sys


def _start(here: str, module: str, errors: str) -> None:
    """Start a part of unstall in this process; what goes wrong is a line in the file ``errors``."""
    import importlib

    try:
        _find_unstall(here)
        importlib.import_module(module).start()
    except Exception as error:
        try:
            with open(errors, "a") as file:
                file.write(f"{module} did not start: {type(error).__name__}: {error}\n")
        except OSError:
            pass


def _find_unstall(here: str) -> None:
    """Import the package from its own place, whatever interpreter this is and whatever its site-packages hold."""
    import importlib.util

    if "unstall" in sys.modules:
        return
    package = os.path.dirname(os.path.dirname(here))
    spec = importlib.util.spec_from_file_location(
        "unstall", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"there is no package in {package}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["unstall"] = module
    spec.loader.exec_module(module)


def _give_way(here: str) -> None:
    """Import the sitecustomize that would have been found without this one, if there is one."""
    mine = sys.modules.pop("sitecustomize", None)
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        if mine is not None:
            sys.modules.setdefault("sitecustomize", mine)


_here = os.path.dirname(os.path.abspath(__file__))
_sandbox, _recording = os.environ.get("UNSTALL_SANDBOX"), os.environ.get("UNSTALL_RUN_DIR")
if _sandbox:
    _start(_here, "unstall.child.sandbox.start", os.path.join(_sandbox, "notes", f"refused-{os.getpid()}.txt"))
if _recording:
    _start(
        _here, os.environ.get("UNSTALL_CHILD", "unstall.child.main"), os.path.join(_recording, "bootstrap-error.txt")
    )
_give_way(_here)
