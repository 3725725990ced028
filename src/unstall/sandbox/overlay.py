"""Whether children can run on an overlay here, and what it takes: tried out once when the sandbox opens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from unstall.sandbox.mounts import mount_of, plan, read_mounts

_ENTER = Path(__file__).with_name("enter.py")
_PATIENCE_S = 60.0
_LISTENING = 0x00010000  # __SO_ACCEPTCON in /proc/net/unix
_TRIAL = "import sys; open(sys.argv[1], 'w').close()"


@dataclass
class Overlays:
    """The way in, and what to say of it."""

    entrance: list[str]
    """The words to put before a command."""
    note: str
    privileged: bool
    """Root's, that can do more than an ordinary user's."""


def prepare(home: Path, folder: Path, keep: Sequence[Path], reasons: list[str]) -> Overlays | None:
    """Lay out the plan in ``home`` and try it on a file; None when it does not work, the reason added to the list.

    ``folder`` is the program's working tree.
    """
    if sys.platform != "linux":
        reasons.append("overlays need Linux")
        return None
    for privileged in (True, False) if os.geteuid() == 0 else (False,):
        _write_plan(home, folder, keep, privileged)
        failure = _try(home)
        if failure is None:
            return Overlays(_entrance(home), _note(home, privileged), privileged)
        reasons.append(failure)
    return None


def _write_plan(home: Path, folder: Path, keep: Sequence[Path], privileged: bool) -> None:
    mounts = read_mounts()
    facts = {
        "privileged": privileged,
        "home": str(home),
        "keep": [str(path) for path in keep],
        "steps": [list(asdict(step).values()) for step in plan(mounts, privileged=privileged)],
        "sockets": _sockets(),
        "reach": _writable(folder),
    }
    (home / "plan.json").write_text(json.dumps(facts))


def _entrance(home: Path) -> list[str]:
    return [sys.executable, "-I", "-S", str(_ENTER), str(home / "plan.json")]


def _try(home: Path) -> str | None:
    """Write a file inside that must not be there afterwards: why that did not go well, None when it did."""
    witness = home.parent / f".{home.name}.trial"
    (home / "notes" / "readonly.json").unlink(missing_ok=True)
    command = [*_entrance(home), sys.executable, "-I", "-S", "-c", _TRIAL, str(witness)]
    try:
        trial = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if witness.exists():
        witness.unlink()
        return "what was written in an overlay was written for real"
    if trial.returncode != 0:
        lines = trial.stderr.strip().splitlines() or [f"exit code {trial.returncode}"]
        return lines[-1].removeprefix("unstall: the sandbox could not be entered: ")
    return None


def _note(home: Path, privileged: bool) -> str:
    """One line: what is in force, where it writes, where it is stricter than the machine."""
    mount = mount_of(str(home), read_mounts())
    where = "memory" if mount is not None and mount.kind == "tmpfs" else str(home.parent)
    namespaces = "a mount namespace" if privileged else "user and mount namespaces"
    note = f"every experiment writes to an overlay of its own ({namespaces}; layers in {where})"
    try:
        readonly = json.loads((home / "notes" / "readonly.json").read_text())
    except (OSError, ValueError):
        readonly = []
    return f"{note}; read-only inside: {', '.join(readonly)}" if readonly else note


def _writable(folder: Path) -> list[str]:
    """Folders that programs write to, as real paths: working tree, home, the temporary ones, and where links lead."""
    known = [folder, Path.home(), Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]
    try:
        known += [path for path in folder.iterdir() if path.is_symlink()]
    except OSError:
        pass
    real = [path.resolve() for path in known]
    return sorted({str(path) for path in real if path.is_dir() and os.access(path, os.W_OK)})


def _sockets() -> list[str]:
    """Paths of the unix sockets that somebody listens on: unix(7), proc_net(5)."""
    found = set()
    try:
        lines = Path("/proc/net/unix").read_text(errors="surrogateescape").splitlines()[1:]
    except OSError:
        return []
    for line in lines:
        words = line.split(maxsplit=7)
        if len(words) == 8 and words[7].startswith("/"):
            flags, datagram = int(words[3], 16), words[4] == "0002"
            if flags & _LISTENING or datagram:
                found.add(words[7])
    return sorted(path for path in found if os.path.exists(path))
