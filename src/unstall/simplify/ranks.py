"""Programs of several ranks that torchrun starts: one rank alone, and a second program at the same time."""

from __future__ import annotations

import socket
from pathlib import PurePath

_MODULES = ("torch.distributed.run", "torch.distributed.launch")
_PROCESSES = ("--nproc-per-node", "--nproc_per_node")
_PORT = ("--master-port", "--master_port")
_OWN_MEETING = ("--standalone", "--rdzv")  # these find a port by themselves, or are told where to meet


def alone(line: list[str]) -> list[str] | None:
    """The command line with one rank; None where it is not torchrun's, or has one already."""
    at = _launcher(line)
    if at is None:
        return None
    changed = _replaced(line, at, _PROCESSES, "1")
    return changed if changed != line else None


def at_another_port(line: list[str], port: int | None = None) -> list[str]:
    """The command line for a second program at the same time: its ranks meet at a port of their own."""
    at = _launcher(line)
    if at is None or any(word.startswith(_OWN_MEETING) for word in line[at + 1 :]):
        return line
    text = str(port or _free_port())
    return _replaced(line, at, _PORT, text) or [*line[: at + 1], f"{_PORT[0]}={text}", *line[at + 1 :]]


def _launcher(line: list[str]) -> int | None:
    """Where the word is that torchrun's own options follow."""
    for at, word in enumerate(line):
        if PurePath(word).name == "torchrun" or (word in _MODULES and at and line[at - 1] == "-m"):
            return at
    return None


def _replaced(line: list[str], at: int, names: tuple[str, ...], value: str) -> list[str] | None:
    """The line with another value of an option of torchrun's; None where it is not given."""
    changed = list(line)
    for index in range(at + 1, len(line)):
        name, equals, _ = line[index].partition("=")
        if name in names and equals:
            changed[index] = f"{name}={value}"
            return changed
        if name in names and index + 1 < len(line):
            changed[index + 1] = value
            return changed
    return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
