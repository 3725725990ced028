"""Python imports this at start-up of every interpreter in the sandbox; then the next sitecustomize, if there is one.

It must never raise or print, and takes its folder off sys.path.
"""

import os
import sys


def _start(here: str) -> None:
    import importlib
    import importlib.util

    if "unstall" not in sys.modules:
        package = os.path.abspath(os.path.join(here, *[os.pardir] * 3))
        # From its own place, whatever interpreter this is and whatever unstall its site-packages hold.
        spec = importlib.util.spec_from_file_location(
            "unstall", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
        )
        if spec is None or spec.loader is None:
            return
        module = importlib.util.module_from_spec(spec)
        sys.modules["unstall"] = module
        spec.loader.exec_module(module)
    importlib.import_module("unstall.child.sandbox.start").start()


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
if os.environ.get("UNSTALL_SANDBOX"):
    try:
        _start(_here)
    except Exception as _error:
        try:
            with open(os.path.join(os.environ["UNSTALL_SANDBOX"], "notes", f"refused-{os.getpid()}.txt"), "a") as _file:
                _file.write(f"nothing: the sandbox's watch did not start: {type(_error).__name__}: {_error}\n")
        except OSError:
            pass
_give_way(_here)
