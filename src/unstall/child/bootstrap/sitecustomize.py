"""Python imports this at start-up of every interpreter that `unstall run` starts, and then runs the program.

Its folder is first on PYTHONPATH, so it also reaches loader workers, ranks and sub-processes. It must never raise,
print, or leave a trace in the program: it takes its folder off sys.path and gives way to any other sitecustomize.
"""

import os
import sys


def _start(here: str) -> None:
    import importlib
    import importlib.util

    package = os.path.dirname(os.path.dirname(here))
    # From its own place, whatever interpreter this is and whatever unstall its site-packages hold.
    spec = importlib.util.spec_from_file_location(
        "unstall", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["unstall"] = module
    spec.loader.exec_module(module)
    # What to do in the program: record it, unless the parent names another part of unstall.
    importlib.import_module(os.environ.get("UNSTALL_CHILD", "unstall.child.main")).start()


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
if os.environ.get("UNSTALL_RUN_DIR"):
    try:
        _start(_here)
    except Exception as _error:
        try:
            with open(os.path.join(os.environ["UNSTALL_RUN_DIR"], "bootstrap-error.txt"), "a") as _file:
                _file.write(f"{type(_error).__name__}: {_error}\n")
        except OSError:
            pass
_give_way(_here)
