"""Checks that help to find errors, turned off: PyTorch's tuning guide lists its own under "Disable debugging APIs"."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from unstall.diagnose.debugging_aids import ANOMALY, DISTRIBUTIONS, ENVIRONMENT
from unstall.optimize.context import RemedyContext
from unstall.optimize.everywhere import changed_everywhere
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.source.edit import Edit, is_true, keyword, with_keyword
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.files import Sources
from unstall.optimize.source.module import SourceModule
from unstall.optimize.source.toplevel import with_statement_after_imports
from unstall.text.units import percent

_SWITCH, _AROUND = ANOMALY.switched_by
_OPTION = "detect_anomaly"
"""Lightning's argument of a trainer."""
_MAKE = ("gymnasium.make", "gymnasium.make_vec")


class DisableDebugging(Remedy):
    """Where your own code turns them on, or what makes them can be told to leave them out."""

    name = "disable-debugging"
    brief = "autograd's anomaly detection, or the checks of torch.distributions or of gymnasium, are turned off"
    needs = "a call in your own code that turns it on, or that makes what is checked"
    patterns = ("debugging-bound",)
    exactness = "output-changing"
    """An error that a check would tell of is not told of any more."""

    def propose(self, context: RemedyContext) -> list[Proposal]:
        finding = next((each for each in context.report.findings if each.pattern in self.patterns), None)
        off = _OFF.get(finding.cause or "") if finding is not None else None
        if finding is None or off is None:
            raise NotApplicable("no checks that can be turned off take a noticeable share of the step")
        sources, place = off(context)
        share = finding.share or 0.0
        return [
            Proposal(
                f"{finding.cause} off ({place})",
                speedup_without(share),
                f"it takes {percent(share)} of the step",
                sources=sources,
                key=finding.cause or "",
            )
        ]


def _without_anomaly_detection(context: RemedyContext) -> tuple[Sources, str]:
    return changed_everywhere(
        context, _anomaly_edits, "the program's own code turns anomaly detection on by no plain True"
    )


def _without_checked_environments(context: RemedyContext) -> tuple[Sources, str]:
    return changed_everywhere(
        context, _environment_edits, "the program's own code makes no environment by gymnasium.make()"
    )


def _without_checked_arguments(context: RemedyContext) -> tuple[Sources, str]:
    path, module, torch = context.script_with("torch")
    unchecked = f"{torch}.distributions.Distribution.set_default_validate_args(False)"
    tree = with_statement_after_imports(module.tree, unchecked)
    return context.sources.with_module(path, tree), f"after the imports of {path.name}"


_OFF: dict[str, Callable[[RemedyContext], tuple[Sources, str]]] = {
    ANOMALY.cause: _without_anomaly_detection,
    DISTRIBUTIONS.cause: _without_checked_arguments,
    ENVIRONMENT.cause: _without_checked_environments,
}


def _anomaly_edits(module: SourceModule) -> Iterator[tuple[cst.CSTNode, Edit]]:
    """What turns anomaly detection on in a file."""
    for call in module.all(cst.Call):
        if _turns_on(call, module.name(call)):
            yield call, _switched_off
        elif is_true(keyword(call, _OPTION)):
            yield call, lambda node: with_keyword(node, _OPTION, "False")


def _turns_on(call: cst.Call, name: str) -> bool:
    """Whether a call turns anomaly detection on, and can be written so that it turns it off."""
    library, _, function = name.rpartition(".")
    if not library.startswith("torch.autograd"):
        return False
    if function == _SWITCH:
        return is_true(keyword(call, "mode") or next(iter(call.args), None))
    return function == _AROUND and isinstance(call.func, cst.Attribute)


def _switched_off(call: cst.Call) -> cst.Call:
    """``set_detect_anomaly(False)`` of the one or the other; both are contexts as well."""
    off = cst.Arg(cst.Name("False"))
    function = call.func
    if isinstance(function, cst.Attribute):
        function = function.with_changes(attr=cst.Name(_SWITCH))
    return call.with_changes(func=function, args=[off])


def _environment_edits(module: SourceModule) -> Iterator[tuple[cst.CSTNode, Edit]]:
    """What makes environments in a file."""
    for call in module.all(cst.Call):
        if module.name(call) in _MAKE:
            yield call, lambda node: with_keyword(node, "disable_env_checker", "True")


REMEDY = DisableDebugging()
