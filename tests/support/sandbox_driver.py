"""Runs a command in a sandbox from a process of its own, as root or as an ordinary user, and finds what it left."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import unstall

SOURCE = Path(unstall.__file__).parents[1]
NOBODY = 65534

_DRIVER = """
import json, os, subprocess, sys
from pathlib import Path
source, words, options = sys.argv[1:]
sys.path.insert(0, source)
from unstall.sandbox import open_sandbox
told = []
with open_sandbox(Path.cwd(), [], on_message=told.append, **json.loads(options)) as sandbox:
    print(json.dumps({"home": str(sandbox._home), "force": sandbox.force, "told": told}), flush=True)
    done = subprocess.run(sandbox.command(json.loads(words)), env=sandbox.environment(dict(os.environ)))
print(json.dumps({"status": done.returncode, "told": told}), flush=True)
"""


class SandboxDriver:
    """A folder, and an interpreter and a user to run programs there with."""

    def __init__(self, ordinary, group=NOBODY):
        self.python, self.drop = sys.executable, []
        self.ordinary = ordinary
        self.base = Path(tempfile.mkdtemp())
        self.base.chmod(0o755)
        self.work = self.base / "work"
        self.work.mkdir()
        if ordinary:
            self._become_ordinary(group)
        if not self._has_overlay():
            self.close()
            pytest.skip("an overlay is not possible here: namespaces are not allowed")

    def _become_ordinary(self, group):
        python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
        if os.geteuid() != 0 or not shutil.which("setpriv") or python is None:
            pytest.skip("only root can become another user")
        self.python = python
        self.drop = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--groups", str(group)]
        os.chown(self.work, NOBODY, NOBODY)
        looks = "import sys; sys.path.insert(0, sys.argv[1]); import unstall; assert sys.version_info >= (3, 10)"
        if subprocess.run([*self.drop, python, "-c", looks, str(SOURCE)], capture_output=True).returncode != 0:
            self.close()
            pytest.skip("no interpreter here that another user can run")

    def _has_overlay(self):
        started = self.start(["true"])
        output, _ = started.communicate(timeout=60)
        assert '"force": "overlay"' in output or "SandboxError: nothing here can keep" in output, output
        return started.returncode == 0

    def start(self, words, **options):
        """Start a command; the first line of stdout is of the open sandbox, the last of the closed one."""
        env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", HOME=str(self.work))
        return subprocess.Popen(
            [*self.drop, self.python, "-c", _DRIVER, str(SOURCE), json.dumps(words), json.dumps(options)],
            cwd=self.work,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, words, **options):
        """The facts of the open sandbox, of the closed one, and all that was printed."""
        started = self.start(words, **options)
        output, _ = started.communicate(timeout=100)
        assert started.returncode == 0, output
        lines = output.splitlines()
        return {**json.loads(lines[0]), **json.loads(lines[-1]), "output": output}

    def close(self):
        shutil.rmtree(self.base, ignore_errors=True)


def running(word):
    """The processes that have this word in their command lines."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.fsencode(word) in (process / "cmdline").read_bytes().split(b"\0"):
                found.add(int(process.name))
    return found


def wait_until(condition, seconds=15):
    """Whether it has come true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
