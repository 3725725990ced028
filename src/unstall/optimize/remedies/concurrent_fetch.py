"""The samples of a batch fetched at the same time, by threads, where each one waits for the network or a disk."""

from __future__ import annotations

import ast
from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.purity import Purity, attributes_read, names
from unstall.optimize.remedies.loader_workers import main_loader
from unstall.optimize.shares import of_loading
from unstall.optimize.sources import SourceError, Sources
from unstall.text.units import percent

NAME = "concurrent-fetch"
AREA: Area = "communication"
EXACTNESS: Exactness = "exact"

_MIN_SHARE = 0.03
_THREADS = 16
IMPORTS = ("concurrent.futures", "os")
DEFINITIONS = (
    "_fetchers = {}\n",
    f'''def _fetch_all(function, indices):
    """The results in the order of the indices; each process has threads of its own."""
    if os.getpid() not in _fetchers:
        _fetchers[os.getpid()] = concurrent.futures.ThreadPoolExecutor({_THREADS})
    return list(_fetchers[os.getpid()].map(function, indices))
''',
)


def propose(case: Case) -> list[Proposal] | Unfit:
    """``__getitems__`` for the main loader's dataset, when making a sample is mostly waiting."""
    loader = main_loader(case)
    measured = case.measurement.loader
    if loader is None or measured is None or not loader["map_style"] or not measured.service_s:
        return Unfit("there is no map-style dataset in the main loop")
    together = min(_THREADS, int(loader["batch_size"] or 1))
    if together < 2:
        return Unfit("batches are of one sample")
    blocked = min(1.0, max(measured.service_blocked_s, measured.service_network_s) / measured.service_s)
    share = of_loading(case) * blocked
    if share < _MIN_SHARE:
        return Unfit(f"waiting for the network or a disk takes {percent(share)} of the step")
    path = case.user_file(loader["getitem_file"])
    if path is None:
        return Unfit(f"the samples of {loader['dataset']} are not made in the program's own code")
    try:
        line = int(loader["getitem_line"])
        cls = unsafe_to_share(case.sources.text(path), line)
        sources = with_threads(case.sources, path, line)
    except SourceError as error:
        return Unfit(str(error))
    return [
        Proposal(
            NAME, f"the samples of a batch of {cls} ({path.name}:{line}) fetched by threads", EXACTNESS,
            predicted_without(share, 1 - 1 / together),
            f"waiting takes {percent(blocked)} of the making of a sample, {percent(share)} of the step",
            sources=sources, key=f"{path.name}:{cls}",
        )
    ]  # fmt: skip


def unsafe_to_share(text: str, line: int) -> str:
    """The class whose ``__getitem__`` begins on a line, when threads may run it at once.

    Raises SourceError where it may not: it draws random numbers (their order would change), sets what others read, or
    moves about in a file that is open for all.
    """
    tree = ast.parse(text)
    for cls in [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]:
        for method in cls.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__getitem__" and method.lineno == line:
                _check(tree, cls, method)
                return cls.name
    raise SourceError("the dataset's __getitem__ was not found in its file")


_ONE_AT_A_TIME = {"seek", "read", "readline", "readinto", "execute", "executemany", "fetchone", "fetchall", "cursor"}
"""Methods of an open file or a database: their object has one place that it is at."""


def _check(tree: ast.Module, cls: ast.ClassDef, method: ast.FunctionDef) -> None:
    if len(method.args.args) != 2 or method.decorator_list:
        raise SourceError(f"{cls.name}.__getitem__ takes more than an index")
    if any(isinstance(one, ast.FunctionDef) and one.name == "__getitems__" for one in cls.body):
        raise SourceError(f"{cls.name} fetches many samples at once already")
    purity = Purity(tree, cls)
    local = {argument.arg for argument in method.args.args} | set(names(method.body, ast.Store))
    if not all(purity.is_steady(statement, local) for statement in method.body):
        raise SourceError(f"{cls.name}.__getitem__ may not be run by several threads: {purity.reason}")
    if purity.written:
        raise SourceError(f"{cls.name}.__getitem__ sets {sorted(purity.written)[0]}")
    for node in ast.walk(cls):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _ONE_AT_A_TIME
            and ast.unparse(node.func.value).startswith("self.")
        ):
            raise SourceError(f"{cls.name} holds something open that threads cannot share ({ast.unparse(node.func)})")
    changing = attributes_read(method.body) & purity.changing_attributes()
    if changing:
        raise SourceError(f"{cls.name}.{sorted(changing)[0]} is changed while the program runs")


def with_threads(sources: Sources, path: Path, line: int) -> Sources:
    """The sources with a ``__getitems__`` beside the ``__getitem__`` that begins on a line. Raises SourceError."""
    module = sources.parse(path)
    clash = rewrite.clashing(module, ("concurrent", "os", "_fetchers", "_fetch_all"))
    if clash:
        raise SourceError(f"{path.name} uses the name {clash} for something else")
    found = rewrite.Found(module)
    method = found.function("__getitem__", line)
    if method is None:
        raise SourceError("the dataset's __getitem__ was not found again")
    text = "def __getitems__(self, indices):\n    return _fetch_all(self.__getitem__, indices)\n"
    added = cst.parse_statement(text, config=found.module.config_for_parsing)
    added = added.with_changes(leading_lines=[cst.EmptyLine(indent=False)])
    changed = rewrite.replaced(found.module, method, cst.FlattenSentinel([method, added]))
    for definition in reversed(DEFINITIONS):
        changed = rewrite.with_definition(changed, definition)
    for name in IMPORTS:
        changed = rewrite.with_import(changed, name)
    return sources.with_module(path, changed)
