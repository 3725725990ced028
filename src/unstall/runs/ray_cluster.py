"""A connection to a running Ray cluster. Ray is imported only here and in what uses this."""

from __future__ import annotations

import logging
import os
import signal
import socket
from typing import Any

from unstall.runs.errors import Refused

_REACH_S = 5.0
_NO_CLUSTER = "no Ray cluster answers: start one with `ray start --head`, or say where it is in RAY_ADDRESS"


def connect(option: str) -> Any:
    """Ray, connected to the cluster of RAY_ADDRESS, else to this machine's. Raises Refused.

    ``option``: of the command, that asks for Ray.
    """
    try:
        import ray
    except ImportError:
        raise Refused(f"{option} needs Ray, in the version of your cluster: pip install ray") from None
    _reach(os.environ.get("RAY_ADDRESS", ""))
    handler = signal.getsignal(signal.SIGTERM)  # Ray takes it
    try:
        ray.init(address="auto", log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
    except ConnectionError as error:
        raise Refused(_NO_CLUSTER) from error
    finally:
        signal.signal(signal.SIGTERM, handler)
    return ray


def pinned(node: str) -> Any:
    """What places an actor on that node, by its id, and nowhere else."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node, soft=False)


def _reach(address: str) -> None:
    """See whether anybody listens there: Ray would try for minutes. Raises Refused."""
    host, _, port = address.rpartition(":")
    if "://" in address:
        raise Refused(f"RAY_ADDRESS is {address}: give the address of the cluster's head, host:port")
    if host and port.isdigit():
        try:
            socket.create_connection((host.strip("[]"), int(port)), _REACH_S).close()
        except (OSError, OverflowError) as error:
            raise Refused(f"at {address} {_NO_CLUSTER}") from error
