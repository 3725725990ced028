"""Ctrl-C ends `unstall optimize` in every phase, whatever the program does about it; and so do two."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest
from programs import READINGS as PROGRAM
from sandbox_driver import running, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.serial, pytest.mark.timeout(200)]

_ENDS_WITHIN_S = 2.0
_STUBBORN = "import signal\nfor number in (signal.SIGINT, signal.SIGTERM):\n    signal.signal(number, signal.SIG_IGN)\n"

_PHASES = {
    "imports": "",
    "first run": "diagnosing the program as it is",
    "reference": "what the original computes, twice",
    "trial": "trying ",
}


@pytest.mark.parametrize(("to_all", "again"), [(False, True), (True, False)], ids=["twice to it alone", "once to all"])
@pytest.mark.parametrize("phase", _PHASES)
def test_it_ends_at_once_and_leaves_nothing(tmp_path, phase, to_all, again):
    name = f"train_{time.monotonic_ns()}.py"
    (tmp_path / name).write_text(_STUBBORN + PROGRAM)
    (tmp_path / "tmp").mkdir()
    log = tmp_path / "stderr"
    with log.open("wb") as stderr:
        started = subprocess.Popen(
            [sys.executable, "-m", "unstall", "optimize", "--no-sandbox", name],
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )
    try:
        assert wait_until(lambda: _PHASES[phase] in log.read_text() or started.poll() is not None, 100)
        if phase != "imports":
            assert wait_until(lambda: running(name) - {started.pid}, 60)
        time.sleep(0.5)
        send = os.killpg if to_all else os.kill
        began = time.monotonic()
        send(started.pid, signal.SIGINT)
        if again:
            time.sleep(0.2)
            with contextlib.suppress(ProcessLookupError):
                send(started.pid, signal.SIGINT)
        status = started.wait(60)
        seconds = time.monotonic() - began
    finally:
        started.kill()
    assert status == 130, log.read_text()
    assert "Traceback" not in log.read_text()
    assert seconds < _ENDS_WITHIN_S, log.read_text()
    assert wait_until(lambda: not running(name), 5)
    gone = wait_until(lambda: not list((tmp_path / "tmp").glob("unstall-*")), 5)
    assert gone, sorted(map(str, (tmp_path / "tmp").rglob("*")))
