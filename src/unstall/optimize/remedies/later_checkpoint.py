"""Checkpoints written while training goes on: a copy is taken at once, a thread writes it, none is lost at exit."""

from __future__ import annotations

import ast
from pathlib import Path

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.sources import SourceError, Sources
from unstall.records.measurements import Site
from unstall.text.units import percent

NAME = "later-checkpoint"
AREA: Area = "communication"
EXACTNESS: Exactness = "exact"

_MIN_SHARE = 0.03
_REMOVED = 0.7  # of the time to write: the copy stays on the step's path
_SEAM = "~callback.torch.save"
_FILE_MODULES = ("shutil.", "os.replace", "os.rename", "os.link", "os.symlink")
_NEEDS_THE_FILE = ("rename", "TemporaryDirectory", "upload", "upload_file", "log_artifact", "load_state_dict")
IMPORTS = ("atexit", "concurrent.futures", "copy")
DEFINITIONS = (
    '''class _LaterSaver:
    """Writes checkpoints while training goes on: one at a time, in order, and the last before the program ends."""

    def __init__(self):
        self.pool = concurrent.futures.ThreadPoolExecutor(1)
        self.pending = None
        atexit.register(self.wait)

    def save(self, state, path):
        self.wait()
        self.pending = self.pool.submit(torch.save, copy.deepcopy(state), path)

    def wait(self):
        pending, self.pending = self.pending, None
        if pending is not None:
            pending.result()
''',
    "_later = _LaterSaver()\n",
)


def propose(case: Case) -> list[Proposal] | Unfit:
    """The calls of ``torch.save`` in the loop, where nothing needs the file at once."""
    seconds = sum(value for name, value in case.measurement.callbacks.items() if name.endswith("torch.save"))
    share = seconds / case.measurement.step.mean
    if share < _MIN_SHARE:
        return Unfit(f"writing checkpoints takes {percent(share)} of the step")
    if case.cores < 2:
        return Unfit("there is no other core to write with")
    reason = "the call that writes is not in the program's own code"
    for site in case.measurement.sites:
        path = case.user_file(site.file)
        if site.seam != _SEAM or path is None:
            continue
        try:
            sources = with_later_save(case.sources, path, site)
        except SourceError as error:
            reason = str(error)
            continue
        return [
            Proposal(
                NAME, f"torch.save in {site.function} ({path.name}:{site.line}) in a thread", EXACTNESS,
                predicted_without(share, _REMOVED), f"writing checkpoints takes {percent(share)} of the step",
                sources=sources, key=f"{path.name}:{site.function}",
            )
        ]  # fmt: skip
    return Unfit(reason)


def with_later_save(sources: Sources, path: Path, site: Site) -> Sources:
    """The sources with the call replaced. Raises SourceError where something may need the file at once."""
    needing = needs_the_file(sources.text(path))
    if needing is not None:
        raise SourceError(f"{path.name} calls {needing}, which may need the file at once")
    found = rewrite.Found(sources.parse(path))
    calls = [
        call
        for call in found.nodes(cst.Call)
        if rewrite.name_of(call) == "torch.save"
        and found.place(call).start.line <= site.line <= found.place(call).end.line
    ]
    if len(calls) != 1 or len(calls[0].args) != 2 or any(arg.keyword is not None for arg in calls[0].args):
        raise SourceError(f"the call of torch.save in {site.function} is not a plain one")
    changed = calls[0].with_changes(func=cst.parse_expression("_later.save"))
    module = rewrite.replaced(found.module, calls[0], changed)
    for definition in reversed(DEFINITIONS):
        module = rewrite.with_definition(module, definition)
    for name in IMPORTS:
        module = rewrite.with_import(module, name)
    return sources.with_module(path, rewrite.with_import(module, "torch"))


def needs_the_file(text: str) -> str | None:
    """A call in the module that may read or move a file that was just written."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name.startswith(_FILE_MODULES) or name.rpartition(".")[2] in _NEEDS_THE_FILE or name == "torch.load":
                return name
    return None
