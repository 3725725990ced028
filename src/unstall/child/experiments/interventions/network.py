"""HTTP requests are answered from the record: no packet is sent, and no time spent waiting for one.

At the calls of the common clients: requests, httpx, urllib.request. Each call site has its own answers, as
a stub has, so that a request for an image gets an image. Asynchronous clients are not covered.
"""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any
from urllib.response import addinfourl

from unstall.child.experiments import functions, replay
from unstall.child.experiments.interventions.replacing import ReplacingIntervention

if TYPE_CHECKING:
    from unstall.records.measurements import Measurement
    from unstall.records.report import Report


class Response(addinfourl):
    """A response of urllib, read from memory."""

    def __init__(self, body: bytes, headers: Any, url: str | None, status: int, reason: str | None):
        super().__init__(io.BytesIO(body), headers, url or "", status)
        self.reason = reason

    def getheader(self, name: str, default: Any = None) -> Any:
        """As http.client's."""
        return self.headers.get(name, default)

    def getheaders(self) -> list[tuple[str, str]]:
        """As http.client's."""
        return list(self.headers.items())


class NetworkIntervention(ReplacingIntervention):
    """Without arguments."""

    name = component = "network"
    title = "without the network: HTTP answers from the record"
    touches_data = True
    calls = (
        ("requests.sessions", "Session.send"),
        ("httpx", "Client.send"),
        ("urllib.request", "OpenerDirector.open"),
    )

    @classmethod
    def share(cls, report: Report, measurement: Measurement) -> float:
        """The largest share of a phase's part in the step, or of making a batch, that waits for the network."""
        loader, step_s = measurement.loader, measurement.step.mean or 1.0
        making = loader.service_network_s / loader.service_s if loader is not None and loader.service_s else 0.0
        return max([making, *(phase.network_s / step_s for phase in report.phases)])

    def stand_in(self) -> functions.StandIn:
        sites = replay.Sites(lambda: replay.Ring(collecting_s=self.engine.collecting_s))

        def stand_in(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            ring = sites.ring(sys._getframe(functions.TRAMPOLINE).f_back)
            if ring.ready:
                return _give_again(ring.answer(args, kwargs))
            self.engine.board.count_real_call()
            stored = _stored(original(*args, **kwargs))
            ring.record(stored)
            return _give_again(stored)

        return stand_in


def _stored(response: Any) -> Any:
    """What of a response can be given again: that of requests and httpx, once read; of others the bytes."""
    if hasattr(response, "content"):
        if hasattr(response, "read"):  # httpx
            response.read()
        else:
            _ = response.content
        return response
    if not hasattr(response, "read"):
        return response
    url = response.geturl() if hasattr(response, "geturl") else None
    reason = getattr(response, "reason", None)
    return (response.read(), response.headers, url, response.status, reason)


def _give_again(stored: Any) -> Any:
    return Response(*stored) if isinstance(stored, tuple) else stored


INTERVENTION = NetworkIntervention
