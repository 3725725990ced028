"""Other profilers on request: started in the main process, stopped once, never in the way."""

from __future__ import annotations

import os
import pstats
import subprocess
import sys
import textwrap

import pytest

from unstall.child import tools

# What the bootstrap does: start the tool while Python starts, stop it at exit.
BOOTSTRAP = """
import atexit, os
if "TOOL" in os.environ:
    from unstall.child import tools
    atexit.register(tools.start(os.environ["TOOL"], os.environ["RUN_DIR"]))
"""

PROGRAM = """
import os, sys

def square(i):
    return i * i

def work():
    return sum(map(square, range(1000)))

def main():
    for _ in range(3):
        work()
    pid = os.fork()
    if pid == 0:
        work()
        sys.exit(0)  # runs what is registered for the exit, in the fork too
    os.waitpid(pid, 0)
    print("done")

if __name__ == "__main__":
    main()
    sys.exit(3)
"""


@pytest.fixture
def run(tmp_path):
    """Run a program with a tool started in it; returns the finished process and the run directory."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(BOOTSTRAP)
    source = os.path.dirname(os.path.dirname(os.path.dirname(tools.__file__)))
    run_dir = tmp_path / "a run"
    run_dir.mkdir()

    def start(tool, program=PROGRAM, **environment):
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(program))
        done = subprocess.run(
            [sys.executable, str(script)],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join((str(site), source)),
                "TOOL": tool,
                "RUN_DIR": str(run_dir),
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return done, run_dir

    return start


def test_cprofile_tells_of_the_program_and_not_of_unstall(run):
    done, run_dir = run("cprofile")
    assert (done.returncode, done.stdout, done.stderr) == (3, "done\n", "")
    (file,) = run_dir.iterdir()
    assert file.name.startswith("profile-") and file.suffix == ".pstats"
    stats = pstats.Stats(str(file)).stats
    calls = {name: entry[1] for (_, _, name), entry in stats.items()}
    assert (calls["main"], calls["work"], calls["square"]) == (1, 3, 3000)
    package = os.path.dirname(os.path.dirname(tools.__file__))
    assert not [where for where in stats if where[0].startswith(package)]


def test_pyinstrument_writes_a_page_and_a_text(run):
    pytest.importorskip("pyinstrument")
    program = "import time\n\ndef busy():\n    end = time.time() + 0.3\n    while time.time() < end:\n        sum(range(1000))\n\nbusy()\n"
    done, run_dir = run("pyinstrument", program)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(file.suffix for file in run_dir.iterdir()) == [".html", ".pyisession", ".txt"]
    (text,) = run_dir.glob("*.txt")
    assert "busy" in text.read_text(encoding="utf-8")


def test_memray_writes_one_recording(run):
    pytest.importorskip("memray")
    done, run_dir = run("memray")
    assert (done.returncode, done.stdout, done.stderr) == (3, "done\n", "")
    (file,) = run_dir.iterdir()
    assert file.name.startswith("memray-") and file.stat().st_size > 0


def test_spawned_workers_are_left_alone(run):
    program = """
    import multiprocessing

    def double(i):
        return 2 * i

    if __name__ == "__main__":
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            print(pool.map(double, range(3)))
    """
    done, run_dir = run("cprofile", program)
    assert (done.returncode, done.stdout) == (0, "[0, 2, 4]\n"), done.stderr
    assert len(list(run_dir.iterdir())) == 1


def test_a_directory_that_vanished_does_not_touch_the_program(run):
    program = "import os, shutil\nshutil.rmtree(os.environ['RUN_DIR'])\nprint('done')\n"
    done, _ = run("cprofile", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_stopping_twice_writes_once_and_says_what_went_wrong(tmp_path):
    calls = []

    def finish():
        calls.append(1)
        raise OSError("no space left")

    stop = tools._once("cprofile", tmp_path, finish)
    stop()
    stop()
    assert calls == [1]
    assert (tmp_path / "cprofile.error").read_text() == "no space left\n"


@pytest.mark.parametrize("name, module", [("memray", "memray"), ("pyinstrument", "pyinstrument")])
def test_a_missing_tool_says_in_one_line_what_to_install(monkeypatch, tmp_path, name, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(RuntimeError, match=f"-m pip install {module}$") as raised:
        tools.start(name, str(tmp_path))
    assert "\n" not in str(raised.value)


def test_an_unknown_tool_is_refused(tmp_path):
    with pytest.raises(RuntimeError, match="no profiler is called 'perf'; there are cprofile"):
        tools.start("perf", str(tmp_path))


# ---------------------------------------------------------------- unstall's own functions left out

OWN = (tools.__file__, 1, "seam")
START = (tools.__file__, 2, "start")
LOOP, INIT, LOAD, LOCK = (("train.py", i, name) for i, name in enumerate(("loop", "init", "load", "x")))
BUILTIN = ("~", 0, "<built-in method posix.getpid>")


def test_callers_are_joined_through_what_is_left_out():
    stats = {
        LOOP: (1, 1, 0.1, 5.0, {}),
        INIT: (1, 1, 0.1, 1.0, {}),
        OWN: (4, 4, 0.2, 4.0, {LOOP: (3, 3, 0.15, 3.0), INIT: (1, 1, 0.05, 1.0)}),
        LOAD: (4, 4, 3.8, 3.8, {OWN: (4, 4, 3.8, 3.8)}),
    }
    kept = tools.without_bootstrap(stats)
    assert set(kept) == {LOOP, INIT, LOAD}
    assert kept[LOAD][:4] == (4, 4, 3.8, 3.8)
    assert kept[LOAD][4][LOOP] == pytest.approx((3, 3, 2.85, 2.85))
    assert kept[LOAD][4][INIT] == pytest.approx((1, 1, 0.95, 0.95))


def test_what_unstall_did_for_itself_is_left_out():
    stats = {
        START: (1, 1, 0.1, 0.5, {}),
        LOCK: (2, 1, 0.1, 0.4, {START: (1, 1, 0.1, 0.4), LOCK: (1, 1, 0.1, 0.1)}),
        BUILTIN: (1, 1, 0.1, 0.1, {}),
        LOOP: (1, 1, 1.0, 1.0, {}),
        LOAD: (2, 2, 1.0, 1.0, {LOOP: (1, 1, 0.5, 0.5), START: (1, 1, 0.5, 0.5)}),
    }
    kept = tools.without_bootstrap(stats)
    assert set(kept) == {LOOP, LOAD}
    assert set(kept[LOAD][4]) == {LOOP}


def test_a_profile_without_unstall_in_it_stays_what_it_was():
    stats = {
        LOOP: (1, 1, 0.1, 5.0, {}),
        LOAD: (4, 4, 3.8, 3.8, {LOOP: (4, 4, 3.8, 3.8)}),
        BUILTIN: (1, 1, 0.1, 0.1, {LOAD: (1, 1, 0.1, 0.1)}),
    }
    assert tools.without_bootstrap(stats) == stats
