"""Where the command ``unstall`` begins: outside the package, whose name a file of the user's on PYTHONPATH may have."""

from __future__ import annotations

import importlib.util
import os
import sys


def main() -> None:
    """Run the command by the package that lies beside this file."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "unstall")
    spec = importlib.util.spec_from_file_location(
        "unstall", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec is not None and spec.loader is not None
    sys.modules["unstall"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["unstall"])
    from unstall.cli.entry import main

    main()
