"""The parent's end of the relay (relay.py)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from unstall.processes import APART

_RELAY = Path(__file__).with_name("relay.py")


class RelayProcess:
    """Passes on what experiments say to this machine's services; it ends with this process."""

    def __init__(self, home: Path):
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_RELAY), str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            **APART,
        )

    def wait_until_ready(self) -> bool:
        """Whether it listens."""
        assert self._process.stdout is not None
        return self._process.stdout.readline() == b"ready\n"

    def lines(self) -> list[str]:
        """What went through it so far: a line for each address, the busiest first, and one for what found no way."""
        totals = self._totals()
        traffic: dict[str, dict[str, int]] = totals.get("traffic", {})
        busiest = sorted(traffic.items(), key=lambda item: -item[1]["connections"])
        lines = [f"reached from the experiments: {_describe(name, counts)}" for name, counts in busiest]
        if totals.get("unreachable"):
            lines.append(
                f"no way out: {totals['unreachable']} connections or datagrams to other machines, of code that is not"
                " watched; --allow-network-writes lets them through"
            )
        return lines

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    def _totals(self) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()
            totals: dict[str, Any] = json.loads(self._process.stdout.readline())
        except (OSError, ValueError):  # somebody has ended it
            return {}
        return totals


def _describe(name: str, counts: dict[str, int]) -> str:
    connections = counts["connections"]
    text = f"{name} ({connections} connection{'s' * (connections != 1)}"
    if counts["sent"] or counts["received"]:
        text += f", {counts['sent']:,} bytes sent, {counts['received']:,} received"
    return text + ")"
