"""One connection kept open for many requests, where each request opens its own: ``requests.get`` → a session's."""

from __future__ import annotations

from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.shares import hot_lines, of_loading
from unstall.optimize.sources import SourceError, Sources

NAME = "keep-alive"
AREA: Area = "communication"
EXACTNESS: Exactness = "exact"

_MIN_SHARE = 0.03
_REMOVED = 0.4  # of the time on the network: opening a connection is a round trip, as the request is
_METHODS = ("get", "head", "post", "put", "patch", "delete", "options", "request")
_NAME = "_kept_session"
IMPORTS = ("http.cookiejar", "os", "requests", "threading")
DEFINITIONS = (
    "_kept = threading.local()\n",
    '''def _kept_session():
    """This thread's open connections; a forked process opens its own. Cookies are not kept, as without a session."""
    if getattr(_kept, "process", None) != os.getpid():
        _kept.process, _kept.session = os.getpid(), requests.Session()
        _kept.session.cookies.set_policy(http.cookiejar.DefaultCookiePolicy(allowed_domains=[]))
    return _kept.session
''',
)


def propose(case: Case) -> list[Proposal] | Unfit:
    """The files that make requests one by one while samples are loaded."""
    share = network_share(case)
    if share < _MIN_SHARE:
        return Unfit(f"loading from the network takes {share:.1%} of the step")
    reason = "no call of requests.get or its kin was found in the program's own code"
    found = []
    for path in dict.fromkeys([*(path for path, _, _ in hot_lines(case)), *_loader_files(case)]):
        try:
            sources, count = with_session(case.sources, path)
        except SourceError as error:
            reason = str(error)
            continue
        if count:
            calls = "call" if count == 1 else "calls"
            found.append(
                Proposal(
                    NAME, f"{count} {calls} of requests in {path.name} on connections kept open", EXACTNESS,
                    predicted_without(share, _REMOVED), f"the network takes {share:.0%} of the step",
                    sources=sources, key=path.name,
                )
            )  # fmt: skip
    return found or Unfit(reason)


def network_share(case: Case) -> float:
    """Share of the step that waiting for the network holds up, while samples are loaded."""
    loader = case.measurement.loader
    if loader is None or not loader.service_s:
        return 0.0
    return of_loading(case) * min(1.0, loader.service_network_s / loader.service_s)


def _loader_files(case: Case) -> list[Path]:
    paths = [case.user_file(loader["getitem_file"]) for loader in case.probe.loaders]
    return [path for path in paths if path is not None]


def with_session(sources: Sources, path: Path) -> tuple[Sources, int]:
    """The sources with a file's requests made by a session of each thread, and how many calls that changes."""
    module = sources.parse(path)
    clash = rewrite.clashing(module, (*(name.partition(".")[0] for name in IMPORTS), _NAME, "_kept"))
    if clash:
        raise SourceError(f"{path.name} uses the name {clash} for something else")
    calls = [node for node in rewrite.walk(module) if isinstance(node, cst.Call) and _method(node)]
    if not calls:
        return sources, 0
    changed = rewrite.with_calls(module, calls, _of_session)
    for definition in reversed(DEFINITIONS):
        changed = rewrite.with_definition(changed, definition)
    for name in IMPORTS:
        changed = rewrite.with_import(changed, name)
    return sources.with_module(path, changed), len(calls)


def _method(call: cst.Call) -> str | None:
    """``get`` of ``requests.get(...)``; None for another call."""
    head, _, method = rewrite.name_of(call).rpartition(".")
    return method if head == "requests" and method in _METHODS else None


def _of_session(call: cst.Call) -> cst.Call:
    """``requests.get(...)`` → ``_kept_session().get(...)``."""
    session = cst.parse_expression(f"{_NAME}()")
    return call.with_changes(func=cst.Attribute(session, cst.Name(_method(call) or "")))
