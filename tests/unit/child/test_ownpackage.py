"""The name ``unstall`` in a program that is watched: the program's, while all that is ours still finds its way."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import unstall
from unstall.benchmark.launcher import BOOTSTRAP

RUN_IN_THE_PROGRAM = {
    "unstall.child.gpu_window": ["unstall.child"],
    "unstall.child.data.extension": [
        "unstall.child.data.measuring",
        "unstall.child.data.reading",
        "unstall.child.data.tracing",
    ],
    "unstall.child.trial.extension": ["unstall.child.trial"],
    "unstall.child.experiments.engine": ["unstall.child.experiments.interventions", "unstall.child.experiments.replay"],
}
"""By extension, the rooms or modules that the program may import later."""


@pytest.fixture
def python(tmp_path):
    """Runs code in a watched interpreter and returns what it printed; ``path`` is its PYTHONPATH."""
    recording = tmp_path / "recording"
    recording.mkdir()

    def run(code, *, path=(), extensions=()):
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, [BOOTSTRAP, *path])),
            "UNSTALL_RUN_DIR": str(recording),
            "UNSTALL_OPTIONS": json.dumps({"extensions": list(extensions), "settings": {}}),
        }
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert not (recording / "bootstrap-error.txt").exists()
        return done.stdout.splitlines()

    return run


@pytest.mark.parametrize("extension", RUN_IN_THE_PROGRAM)
def test_what_runs_in_the_program_needs_not_the_name(python, tmp_path, extension):
    (tmp_path / "unstall.py").write_text("print('theirs')\n")
    out = python(
        "import unstall, importlib, pkgutil\n"
        "from unstall.child import ownpackage\n"
        f"for name in {RUN_IN_THE_PROGRAM[extension]}:\n"
        "    with ownpackage.ours():\n"
        "        room = importlib.import_module(name)\n"
        "    for module in pkgutil.walk_packages(getattr(room, '__path__', ()), name + '.'):\n"
        "        if 'bootstrap' not in module.name:\n"
        "            importlib.import_module(module.name)\n"
        "print(unstall.__file__)\n",
        extensions=[extension],
    )
    assert out == ["theirs", str(tmp_path / "unstall.py")]


def test_a_look_at_what_is_kept_needs_no_unstall_in_the_programs_environment(python, tmp_path):
    (tmp_path / "program.py").write_text(
        "from unstall.child.recording import native\n"
        "from unstall.child.watcher import PROBE, Watcher\n"
        "facts = []\n"
        "watcher = Watcher(lambda kind, **fact: facts.append((kind, fact)), {'flops': False})\n"
        "watcher(native.intern('~no seam'), PROBE, None, None)\n"
    )
    out = python(
        "import sys\n"
        "class OfAnotherEnvironment:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'unstall':\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, OfAnotherEnvironment())\n"
        "from program import facts\n"
        "print([kind for kind, _ in facts], 'unstall' in sys.modules)\n"
    )
    assert out == ["['site', 'probe', 'window'] False"]


def test_the_programs_own_unstall_reaches_the_recorder_that_runs(python, tmp_path):
    copy = tmp_path / "copy"
    (copy / "unstall" / "child").mkdir(parents=True)
    (copy / "unstall" / "__init__.py").write_text("print('another copy')\n")
    (copy / "unstall" / "child" / "bootstrap").symlink_to(BOOTSTRAP)
    out = python("import unstall\nwith unstall.span('mine'): pass\nprint(unstall.__file__)", path=[copy])
    assert out == [str(Path(unstall.__file__))]
    assert list((tmp_path / "recording").glob("rec-*.bin"))


def test_a_module_that_a_pth_file_imported_stays(python, tmp_path):
    """As one would by ``import unstall`` in it; here the customizing module of the user's does it."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "unstall.py").write_text("theirs = True\n")
    (folder / "sitecustomize.py").write_text("import unstall\n")
    assert python("import sys; print(sys.modules['unstall'].theirs)", path=[folder]) == ["True"]


def test_each_process_has_one_such_finder(python):
    out = python(
        "import multiprocessing, sys\n"
        "print(sum(type(finder).__name__ == 'OwnPackage' for finder in sys.meta_path))\n"
        "print('unstall' in sys.modules)\n"
    )
    assert out == ["1", "False"]
