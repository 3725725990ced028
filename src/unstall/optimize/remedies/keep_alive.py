"""One connection kept open for many requests, where each request opens its own.

``requests.get`` → a session's; ``urllib.request.urlopen`` → the same on connections of ``http.client`` that stay open.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.shares import hot_lines, of_loading
from unstall.optimize.sources import SourceError, Sources
from unstall.text.units import percent

NAME = "keep-alive"
AREA: Area = "communication"
EXACTNESS: Exactness = "exact"

_MIN_SHARE = 0.03
_REMOVED = 0.4  # of the time on the network: opening a connection is a round trip, as the request is
_METHODS = ("get", "head", "post", "put", "patch", "delete", "options", "request")
_NAME = "_kept_session"
_OPEN = "_urlopen"
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

OPENER_IMPORTS = ("http.client", "os", "threading", "urllib.error", "urllib.parse", "urllib.request")
OPENER_DEFINITIONS = (
    "_kept_open = threading.local()\n",
    '''class _KeptAnswer(http.client.HTTPResponse):
    """An answer that knows whether it was read to its end: if not, the rest would be taken for the next answer."""

    whole = True

    def close(self):
        self.whole = self.whole and self.isclosed()
        super().close()
''',
    '''class _KeptConnections(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Does for urlopen what its own handlers do, on connections that stay open."""

    def __init__(self):
        super().__init__()
        self.kept = {}

    def do_open(self, kind, request, **options):
        through_proxy = urllib.parse.urlsplit(request.full_url).netloc != request.host
        if request.get_method() != "GET" or request.data is not None or through_proxy:
            return super().do_open(kind, request, **options)
        key = kind, request.host, request.timeout
        connection, last = self.kept.pop(key, (None, None))
        if connection is not None and last.isclosed() and last.whole:
            try:
                return self.ask(key, connection, request)
            except TimeoutError:
                raise
            except (OSError, http.client.HTTPException):
                pass  # the server has closed it meanwhile
        return self.ask(key, kind(request.host, timeout=request.timeout, **options), request)

    def ask(self, key, connection, request):
        connection.response_class = _KeptAnswer
        headers = {name.title(): value for name, value in request.header_items()}
        try:
            try:
                connection.request("GET", request.selector, headers=headers)
            except OSError as error:
                raise urllib.error.URLError(error)
            answer = connection.getresponse()
        except BaseException:
            connection.close()
            raise
        answer.url, answer.msg = request.full_url, answer.reason
        if len(self.kept) >= 16:
            self.kept.pop(next(iter(self.kept)))  # the one that was used longest ago
        self.kept[key] = connection, answer
        return answer
''',
    '''def _urlopen(*args, **kwargs):
    """The same as urlopen, on this thread's open connections; a forked process opens its own."""
    if getattr(_kept_open, "process", None) != os.getpid():
        _kept_open.process, _kept_open.opener = os.getpid(), urllib.request.build_opener(_KeptConnections)
    return _kept_open.opener.open(*args, **kwargs)
''',
)


def propose(case: Case) -> list[Proposal] | Unfit:
    """The files that make requests one by one while samples are loaded."""
    share = network_share(case)
    if share < _MIN_SHARE:
        return Unfit(f"loading from the network takes {percent(share)} of the step")
    reason = "no call of requests.get or its kin, nor of urlopen, was found in the program's own code"
    found = []
    for path in dict.fromkeys([*(path for path, _, _ in hot_lines(case)), *_loader_files(case)]):
        for library, change in (("requests", with_session), ("urlopen", with_opener)):
            try:
                sources, count = change(case.sources, path)
            except SourceError as error:
                reason = str(error)
                continue
            if count:
                calls = "call" if count == 1 else "calls"
                found.append(
                    Proposal(
                        NAME, f"{count} {calls} of {library} in {path.name} on connections kept open", EXACTNESS,
                        predicted_without(share, _REMOVED), f"the network takes {percent(share)} of the step",
                        sources=sources, key=f"{path.name}:{library}",
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
    calls = [node for node in rewrite.walk(module) if isinstance(node, cst.Call) and _method(node)]
    return _with_calls(sources, path, module, calls, _of_session, IMPORTS, DEFINITIONS, (_NAME, "_kept"))


def with_opener(sources: Sources, path: Path) -> tuple[Sources, int]:
    """The sources with a file's calls of urlopen on connections of each thread, and how many calls that changes.

    Left as they are: calls with certificates of their own. Raises SourceError where the file sets an opener of its own
    for urlopen, or means something else by the name as well.
    """
    module = sources.parse(path)
    names = _names_of_urlopen(path, module)
    calls = [node for node in rewrite.walk(module) if isinstance(node, cst.Call) and _opens(node, names)]
    return _with_calls(
        sources, path, module, calls, lambda call: call.with_changes(func=cst.Name(_OPEN)), OPENER_IMPORTS,
        OPENER_DEFINITIONS, (_OPEN, "_kept_open", "_KeptAnswer", "_KeptConnections"),
    )  # fmt: skip


def _method(call: cst.Call) -> str | None:
    """``get`` of ``requests.get(...)``; None for another call."""
    head, _, method = rewrite.name_of(call).rpartition(".")
    return method if head == "requests" and method in _METHODS else None


def _of_session(call: cst.Call) -> cst.Call:
    """``requests.get(...)`` → ``_kept_session().get(...)``."""
    session = cst.parse_expression(f"{_NAME}()")
    return call.with_changes(func=cst.Attribute(session, cst.Name(_method(call) or "")))


def _names_of_urlopen(path: Path, module: cst.Module) -> set[str]:
    """The dotted names that a file has for ``urllib.request.urlopen``. Raises SourceError, see with_opener."""
    tree = ast.parse(module.code)
    found, others = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {f"{one.asname or one.name}.urlopen" for one in node.names if one.name == "urllib.request"}
        elif isinstance(node, ast.ImportFrom):
            for one in node.names:
                whole, name = f"{node.module}.{one.name}", one.asname or one.name
                if whole == "urllib.request.urlopen":
                    found.add(name)
                elif whole == "urllib.request":
                    found.add(f"{name}.urlopen")
                else:
                    others.add(name)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            others.add(node.name)
        elif isinstance(node, ast.arg):
            others.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            others.add(node.id)
    if found and "install_opener" in module.code:
        raise SourceError(f"{path.name} gives urlopen an opener of its own")
    clash = others & {name.partition(".")[0] for name in found}
    if clash:
        raise SourceError(f"{path.name} uses the name {min(clash)} for something else")
    return found


def _opens(call: cst.Call, names: set[str]) -> bool:
    """Whether a call is urlopen's with what an opener's ``open`` takes as well: URL, data, timeout."""
    plain = [arg for arg in call.args if arg.keyword is None]
    named = [arg.keyword.value for arg in call.args if arg.keyword is not None]
    return (
        rewrite.name_of(call) in names
        and 1 <= len(plain) <= 3
        and set(named) <= {"data", "timeout"}
        and not any(arg.star for arg in call.args)
    )


def _with_calls(
    sources: Sources, path: Path, module: cst.Module, calls: Sequence[cst.Call],
    change: Callable[[cst.Call], cst.BaseExpression], imports: Sequence[str], definitions: Sequence[str],
    names: Sequence[str],
) -> tuple[Sources, int]:  # fmt: skip
    """The sources with these calls changed, with the definitions that they need, and how many calls they are."""
    if not calls:
        return sources, 0
    clash = rewrite.clashing(module, (*(name.partition(".")[0] for name in imports), *names))
    if clash:
        raise SourceError(f"{path.name} uses the name {clash} for something else")
    changed = rewrite.with_calls(module, calls, change)
    for definition in reversed(definitions):
        changed = rewrite.with_definition(changed, definition)
    for name in imports:
        changed = rewrite.with_import(changed, name)
    return sources.with_module(path, changed), len(calls)
