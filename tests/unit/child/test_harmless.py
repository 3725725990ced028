"""What is in C cannot end the program that it runs in, nor give a free-threaded one its GIL back."""

from __future__ import annotations

import importlib.util
import os
import runpy
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path

import pytest
import setuptools
from recorders import load

ROOT = Path(__file__).parents[3]
BUILT = [
    spec.origin
    for name in ("unstall.child._recorder", "unstall.trace._scan")
    if (spec := importlib.util.find_spec(name)) and spec.origin
]
ENDS_A_PROCESS = (b"Py_FatalError", b"_Py_FatalErrorFunc", b"abort", b"exit", b"_exit", b"__assert_fail", b"raise")
free_threaded = pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a GIL")


def run(program):
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("path", BUILT)
def test_nothing_that_ends_a_process_is_called(path):
    symbols = Path(path).read_bytes().split(b"\0")
    assert b"malloc" in symbols or b"calloc" in symbols  # so the names of what is called are among them
    assert not [name for name in ENDS_A_PROCESS if name in symbols]


def test_recursion_beyond_the_stack_is_an_exception(tmp_path):
    load("native")
    done = run(f"""
import sys
from unstall.child import _recorder
_recorder.open({str(tmp_path / "rec-1.bin")!r})
sys.setrecursionlimit(10_000_000)

@_recorder.span
def deep(level):
    return deep(level - 1) if level else 0

try:
    print(deep(100_000))
except RecursionError:
    print("RecursionError")
print(deep(100))
""")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() in (["RecursionError", "0"], ["0", "0"])


def test_threads_that_end_leave_no_descriptors(recorder):
    work = recorder.api.wrap(time.sleep, "harmless.sleep")

    def start_threads():
        for _ in range(8):
            thread = threading.Thread(target=lambda: [work(0.025) for _ in range(2)])
            thread.start()
            thread.join()
        return len(os.listdir("/proc/self/fd"))

    work(0.025)  # so long that the kernel is asked how long a thread waited for a core
    work(0.025)
    assert start_threads() == start_threads()


def test_free_threaded_python_gets_the_recorder_in_python():
    done = run("""
import sys
sys.abiflags = "t"
from unstall.child import recording
from unstall.child.sandbox import audit
audit.listen({"mine": print})
sys.audit("mine", "heard")
print(recording.NATIVE, any("_recorder" in name for name in sys.modules))
""")
    assert done.stdout.split() == ["heard", "False", "False"], done.stderr


@pytest.mark.parametrize("flags, names", [("", {"_recorder", "_scan"}), ("t", {"_scan"})])
def test_the_recorder_is_not_built_for_free_threaded_python(monkeypatch, flags, names):
    built = {}
    monkeypatch.setattr(setuptools, "setup", lambda **given: built.update(given))
    monkeypatch.setattr(sys, "abiflags", flags)
    monkeypatch.chdir(ROOT)
    runpy.run_path("setup.py")
    assert {extension.name.rpartition(".")[2] for extension in built["ext_modules"]} == names


@free_threaded
def test_a_watched_program_keeps_its_gil_off(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import sys, unstall\nwith unstall.span('work'):\n    print('GIL', sys._is_gil_enabled())\n")
    command = [sys.executable, "-m", "unstall", "run", str(program)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert "GIL False" in done.stdout, done.stderr


@free_threaded
def test_reading_a_trace_keeps_the_gil_off():
    done = run(
        "import sys, ctypes\nfrom unstall.trace.library import library\nprint(bool(library()), sys._is_gil_enabled())"
    )
    assert done.stdout.split() == ["True", "False"], done.stderr
