"""Record a part of the running program: the same recorder, seams and watch as `unstall run`, from inside."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
import weakref
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from unstall import environment
from unstall.benchmark.rundir import RunDir
from unstall.child import main as child
from unstall.child import recording
from unstall.child.plugins import declared

if TYPE_CHECKING:
    from unstall.records.report import Report


class Profile:
    """``with unstall.profile() as run: ...``, then ``run.report()``."""

    def __init__(self) -> None:
        self._report: Report | None = None
        self._running = False
        self._began = 0.0

    def __enter__(self) -> Profile:
        """Begin to record. Raises RuntimeError when a recording of this kind is under way already."""
        from unstall.benchmark.session import Session

        self._directory = _begin_recording()
        if _owned(self._directory):  # whether or not a report is asked for
            weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)
        self._started = datetime.now(timezone.utc)
        self._began = time.monotonic()
        self._session = Session(os.getpid(), self._directory)
        self._running = True
        self._thread = threading.Thread(target=self._watch, name="unstall watch", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._running = False
        self._thread.join()
        self._observation = self._session.finish()
        _end_recording()

    def report(self) -> Report:
        """The report of what ran inside the block. Raises RuntimeError before the block has ended."""
        if self._running or not self._began:
            raise RuntimeError("report() is for after the `with unstall.profile() as run:` block")
        if self._report is None:
            from unstall.benchmark.launcher import ProgramExit
            from unstall.diagnose.run_report import make_report
            from unstall.notebook import show_reports

            show_reports()
            directory = RunDir(self._directory.name, self._directory, None)
            outcome = ProgramExit(0, self._observation)
            diagnosis = make_report(sys.argv[:], directory, self._started, outcome, since=self._began)
            self._report = diagnosis.report
            if _owned(self._directory):
                directory.discard_recordings()
        return self._report

    def _watch(self) -> None:
        while self._running:
            self._session.poll()
            time.sleep(self._session.poll_s)


_own_directory: Path | None = None
_installed: child.Child | None = None


def _begin_recording() -> Path:
    """Open a recording of this process, unless `unstall run` has; returns where it lies."""
    global _own_directory, _installed
    given = os.environ.get(environment.RUN_DIR)
    if given and recording.opened_by is not None:
        return Path(given)
    if _own_directory is not None:
        raise RuntimeError("unstall.profile() is already recording: one block at a time")
    _own_directory = Path(tempfile.mkdtemp(prefix="unstall-"))
    if _installed is None:
        _installed = child.Child(str(_own_directory), {"parent": os.getppid(), "plugins": declared()})
        child.allow_tracing()
        child.install(_installed)
    else:
        _installed.move(str(_own_directory))
    _installed.open()
    return _own_directory


def _end_recording() -> None:
    global _own_directory
    if _own_directory is not None and _installed is not None:
        _installed.close()
        _own_directory = None


def _owned(directory: Path) -> bool:
    return str(directory) != os.environ.get(environment.RUN_DIR)
