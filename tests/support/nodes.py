"""Two simulated machines: each with a network, a host name and a monotonic clock of its own. Root only."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator

ADDRESS = "10.77.9.1"
"""Of the first one; the second's ends with 2."""


class NotPossible(Exception):
    """Namespaces cannot be made here."""


@contextlib.contextmanager
def two_nodes() -> Iterator[Callable[[int, float], list[str]]]:
    """What runs a command on one of them: (which, seconds that its clock is ahead) → the words before the command's.

    Raises NotPossible.
    """
    if os.geteuid() or not all(map(shutil.which, ("ip", "unshare"))):
        raise NotPossible("two nodes are simulated by root, with ip and unshare")
    mark = uuid.uuid4().hex[:6]
    names, links = [f"node-{mark}-{i}" for i in (0, 1)], [f"v{mark}{i}" for i in (0, 1)]
    added: list[str] = []

    def words(i: int, ahead_s: float) -> list[str]:
        start = ["ip", "netns", "exec", names[i], "unshare", "--uts", "--time", "--monotonic", str(ahead_s), "--fork"]
        script = f'hostname {names[i]}; export GLOO_SOCKET_IFNAME={links[i]}; exec "$@"'
        return [*start, "sh", "-c", script, "sh"]

    try:
        for name in names:
            _run(f"ip netns add {name}")
            added.append(name)
        _run(f"ip link add {links[0]} netns {names[0]} type veth peer name {links[1]} netns {names[1]}")
        for i, (name, link) in enumerate(zip(names, links)):
            for command in (f"addr add 10.77.9.{i + 1}/24 dev {link}", f"link set {link} up", "link set lo up"):
                _run(f"ip -n {name} {command}")
        _run("unshare --time --monotonic 1 true")
    except (OSError, subprocess.CalledProcessError) as error:
        _remove(added)
        raise NotPossible(f"namespaces cannot be made here: {error}") from error
    try:
        yield words
    finally:
        _remove(added)


def _run(command: str) -> None:
    subprocess.run(command.split(), check=True, capture_output=True)


def _remove(names: list[str]) -> None:
    for name in names:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
