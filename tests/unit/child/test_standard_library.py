"""What runs in the user's process starts where nothing but Python itself is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import unstall

IMPORT_ALL = """
import importlib, pkgutil, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "unstall"}:
            raise ImportError(f"{name} is not of the standard library")

sys.meta_path.insert(0, Blocker())
sys.path.insert(0, sys.argv[1])
import unstall.child
for module in pkgutil.walk_packages(unstall.child.__path__, "unstall.child."):
    if ".bootstrap" not in module.name:
        importlib.import_module(module.name)
print("records" if "unstall.records.report" in sys.modules else "alone")
"""


def test_every_module_of_the_child_is_imported_with_the_standard_library_alone():
    folder = str(Path(unstall.__file__).parent.parent)
    done = subprocess.run([sys.executable, "-I", "-c", IMPORT_ALL, folder], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("alone\n", "")


def test_what_starts_in_every_process_imports_no_ctypes():
    folder = str(Path(unstall.__file__).parent.parent)
    code = "import sys; sys.path.insert(0, sys.argv[1]); import unstall.child.watcher; print('ctypes' in sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, folder], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("False\n", "")
