"""Whether children can run on an overlay here, and how: tried once when the sandbox opens."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from unstall.sandbox.mountinfo import KERNEL, mount_of, read_mounts
from unstall.sandbox.mounts import plan
from unstall.sandbox.thresholds import PROOF_S

_ENTER = Path(__file__).with_name("enter.py")
_PROOF = Path(__file__).with_name("proof.py")
NO_NETWORK = "no network of its own: "  # as enter.py has it
_LISTENING = 0x00010000  # __SO_ACCEPTCON in /proc/net/unix


@dataclass
class Overlays:
    """How to enter overlays, and what to tell the user about them."""

    entrance: list[str]
    """The words to put before a command."""
    note: str
    privileged: bool
    """Root's, that can do more than an ordinary user's."""
    shared_network: str
    """Why programs are in this machine's network; empty where each has one of its own."""


def prepare(
    home: Path, folder: Path, keep: Sequence[Path], reasons: list[str], shared_network: str = ""
) -> Overlays | None:
    """Lay out the plan in ``home`` and try it; None when it does not work, the reason added to the list.

    ``folder`` is the program's working tree; ``shared_network`` says why no network of its own is wanted.
    """
    if sys.platform != "linux":
        reasons.append("overlays need Linux")
        return None
    reach = _writable(folder)
    for privileged in (True, False) if os.geteuid() == 0 else (False,):
        readonly = _write_plan(home, reach, keep, privileged, shared_network)
        failure = _try(home, reach, keep)
        if failure is not None and failure.startswith(NO_NETWORK):
            shared_network = failure.removeprefix(NO_NETWORK)
            readonly = _write_plan(home, reach, keep, privileged, shared_network)
            failure = _try(home, reach, keep)
        if failure is None:
            return Overlays(_entrance(home), _note(home, readonly, privileged), privileged, shared_network)
        reasons.append(failure)
    return None


def _write_plan(
    home: Path, reach: Sequence[str], keep: Sequence[Path], privileged: bool, shared_network: str
) -> dict[str, list[str]]:
    """Write down what to do at the entrance; the folders that will be read-only, with those below that will not."""
    layout = plan(read_mounts(), privileged=privileged, reach=reach)
    facts = {
        "privileged": privileged,
        "network": "shared" if shared_network else "own",
        "home": str(home),
        "keep": [str(path) for path in keep],
        "steps": [list(asdict(step).values()) for step in layout.steps],
        "sockets": _sockets(),
        "reach": reach,
    }
    (home / "plan.json").write_text(json.dumps(facts))
    return layout.readonly


def _entrance(home: Path) -> list[str]:
    return [sys.executable, "-I", "-S", str(_ENTER), str(home / "plan.json")]


def _try(home: Path, reach: Sequence[str], keep: Sequence[Path]) -> str | None:
    """Write files inside that must not be there afterwards: why that did not go well, None when it did."""
    name = f".{home.name}.probe"
    reachable = [*reach, str(home.parent)]
    written = [str(path) for path in (*keep, home / "notes")]
    mounted = [mount.path for mount in read_mounts() if mount.kind not in KERNEL and os.path.isdir(mount.path)]
    before = {folder: os.stat(folder) for folder in [*reachable, *mounted]}
    probed: list[str] = []
    try:
        failure = _write_probes(home, name, reachable, written, probed)
    finally:
        folders = dict.fromkeys([*before, *probed])
        real = [folder for folder in folders if _remove(os.path.join(folder, name), before.get(folder))]
    return f"what was written to {real[0]} in an overlay was written for real" if real else failure


def _write_probes(
    home: Path, name: str, reachable: Sequence[str], written: Sequence[str], probed: list[str]
) -> str | None:
    """Let a child write a file of this name wherever it can, and list the folders in ``probed``; what went wrong."""
    (home / "notes" / "readonly.json").unlink(missing_ok=True)
    probes = [sys.executable, "-I", "-S", str(_PROOF), name, json.dumps(reachable), json.dumps(written)]
    try:
        trial = subprocess.run([*_entrance(home), *probes], capture_output=True, text=True, timeout=PROOF_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if trial.returncode != 0:
        lines = trial.stderr.strip().splitlines() or [f"exit code {trial.returncode}"]
        return lines[-1].removeprefix("unstall: the sandbox could not be entered: ")
    probed += json.loads(trial.stdout)
    return None


def _remove(path: str, folder: os.stat_result | None) -> bool:
    """Remove a file, and give its folder the times that it had; whether it was there."""
    if not os.path.lexists(path):
        return False
    with contextlib.suppress(OSError):
        os.unlink(path)
        if folder is not None:
            os.utime(os.path.dirname(path), ns=(folder.st_atime_ns, folder.st_mtime_ns))
    return True


def _note(home: Path, planned: dict[str, list[str]], privileged: bool) -> str:
    """One line: what is in force, where it writes, where it is stricter than the machine."""
    mount = mount_of(str(home), read_mounts())
    where = "memory" if mount is not None and mount.kind == "tmpfs" else str(home.parent)
    namespaces = "a mount namespace" if privileged else "user and mount namespaces"
    note = f"every experiment writes to its own overlay ({namespaces}; layers in {where})"
    try:
        degraded = json.loads((home / "notes" / "readonly.json").read_text())
    except (OSError, ValueError):
        degraded = []
    parts = {**{path: [] for path in degraded}, **planned}
    readonly = [f"{path} except {' and '.join(but)}" if but else path for path, but in parts.items()]
    return f"{note}; read-only inside: {', '.join(readonly)}" if readonly else note


def _writable(folder: Path) -> list[str]:
    """Folders that programs write to, as real paths: working tree, home, the temporary ones, and where links lead."""
    candidates = [folder, Path.home(), Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]
    try:
        candidates += [path for path in folder.iterdir() if path.is_symlink()]
    except OSError:
        pass
    real = [path.resolve() for path in candidates]
    return sorted({str(path) for path in real if path.is_dir() and os.access(path, os.W_OK)})


def _sockets() -> list[str]:
    """Paths of the unix sockets that somebody listens on: unix(7), proc_net(5)."""
    paths = set()
    try:
        lines = Path("/proc/net/unix").read_text(errors="surrogateescape").splitlines()[1:]
    except OSError:
        return []
    for line in lines:
        words = line.split(maxsplit=7)
        if len(words) == 8 and words[7].startswith("/"):
            flags, datagram = int(words[3], 16), words[4] == "0002"
            if flags & _LISTENING or datagram:
                paths.add(words[7])
    return sorted(path for path in paths if os.path.exists(path))
