"""What is published: a wheel that needs no compiler, and a source distribution that makes the same one."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import site
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("gcc"), reason="wheels are built with a C compiler"),
]

ROOT = Path(__file__).parents[2]
PROGRAM = """
import time
import unstall

for step in unstall.steps(range(40)):
    with unstall.span("forward"):
        time.sleep(0.005)
print("done")
"""
TRAINING = """
import torch

model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(40):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
print("done")
"""


def call(*command, cwd, **environment):
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build_wheel(source, folder):
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    call(*pip, "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder, source, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The files of the repository, and nothing that was built from them."""
    folder = tmp_path_factory.mktemp("tree") / "unstall"
    ignored = shutil.ignore_patterns(".*", "build", "dist", "site", "data", "runs", "*.egg-info", "*.so", "__pycache__")
    shutil.copytree(ROOT, folder, ignore=lambda where, names: ignored(where, names) - _source(where))
    return folder


def _source(where):
    """Folders of the package may be called as what is built is."""
    return {"data", "runs", "build", "site"} if Path(where).is_relative_to(ROOT / "src") else set()


@pytest.fixture(scope="module")
def wheel(tree, tmp_path_factory):
    return build_wheel(tree, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The interpreter of an environment with this wheel, and what it depends on from this one."""
    folder = tmp_path_factory.mktemp("environment")
    call(sys.executable, "-m", "venv", folder, cwd=folder)
    python = folder / "bin" / "python"
    call(python, "-m", "pip", "install", "--no-index", "--no-deps", wheel, cwd=folder, PATH=str(folder / "bin"))
    packages = call(python, "-c", "import site; print(site.getsitepackages()[0])", cwd=folder).strip()
    Path(packages, "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    return python


@pytest.mark.parametrize("program", [PROGRAM, TRAINING], ids=["plain", "torch"])
def test_a_wheel_watches_a_program_without_a_compiler(python, tmp_path, program):
    if "torch" in program:
        pytest.importorskip("torch")
    (tmp_path / "program.py").write_text(program)
    environment = {"PATH": str(python.parent), "PYTHONPATH": ""}
    imported = "import unstall.child._recorder as c; print(c.__file__)"
    assert str(python.parents[1]) in call(python, "-c", imported, cwd=tmp_path, **environment)
    said = call(python.parent / "unstall", "run", "--json", "report.json", "program.py", cwd=tmp_path, **environment)
    assert "done" in said
    run = json.loads((tmp_path / "report.json").read_text())["run"]
    assert run["steps"] >= 20  # the first are warm-up
    assert not [note for note in run["notes"] if "recorder" in note]  # that it is the one in Python


def test_a_wheel_has_no_source_of_c_and_both_libraries(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.endswith((".c", ".h"))]
    assert len([name for name in names if name.endswith(".so")]) == 2
    assert {name for name in names if not name.startswith(("unstall/", "unstall-"))} == {"_unstall.py"}


def test_a_wheel_has_every_file_of_the_package(wheel, tree):
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("unstall/")}
    files = [path for path in (tree / "src/unstall").rglob("*") if path.is_file() and path.suffix not in (".c", ".h")]
    assert {path.relative_to(tree / "src").as_posix() for path in files} - packed == set()


def test_the_source_distribution_makes_the_same_wheel(tree, wheel, tmp_path):
    code = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    call(sys.executable, "-c", code, tmp_path, cwd=tree)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    (source,) = (path for path in tmp_path.iterdir() if path.is_dir())
    folder = tmp_path / "wheel"
    folder.mkdir()
    assert contents(build_wheel(source, folder)) == contents(wheel)


def contents(wheel):
    """A hash of each file; of libraries, which hold their build folder, and of the list of all, the name only."""
    with zipfile.ZipFile(wheel) as packed:
        return {
            name: "" if name.endswith((".so", "RECORD")) else hashlib.sha256(packed.read(name)).hexdigest()
            for name in packed.namelist()
        }
