"""What a frozen part of a model gives for a sample is kept for the next epoch."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import libcst as cst

from unstall.optimize.context import RemedyContext
from unstall.optimize.proposal import Lines, Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.source.edit import replaced
from unstall.optimize.source.errors import AnalysisRefused, NotApplicable, located
from unstall.optimize.source.module import SourceModule, dotted
from unstall.optimize.source.toplevel import with_runtime
from unstall.optimize.thresholds import KEPT_FEATURES_SAVE, LEAST_SHARE
from unstall.records.model import FrozenPart
from unstall.records.vocabulary import FORWARD
from unstall.text.units import percent

_NO_MODEL = ("torch.", "builtins.")


class KeepFeatures(Remedy):
    """The call of the largest part that learns nothing."""

    name = "keep-features"
    brief = (
        "what a part of a model that learns nothing gives for a sample is kept, up to a gigabyte, for the next epoch"
    )
    needs = (
        "a frozen part in eval mode on a CPU, called with one batch on a line of your own, and samples that come again"
    )
    patterns = ("recompute-bound", "compute-bound")
    exactness = "close"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        part = context.measurement.frozen
        if part is None:
            raise NotApplicable("every part of the model learns")
        context.refuse_one_pass()
        share = part.share * context.share(FORWARD.name)
        if share < LEAST_SHARE:
            raise NotApplicable(f"what learns nothing takes {percent(share)} of the step")
        path, line = _calling(context, part)
        module = context.sources.module(path)
        with located(path.name):
            call = _call(module, line, part)
        kept = cst.Call(cst.parse_expression("_KeptFeatures.of"), [cst.Arg(call.func), cst.Arg(call.args[0].value)])
        tree = with_runtime(replaced(module.tree, call, kept), "kept_features")
        return [
            Proposal(
                f"what {module.code(call.func)} gives for a sample is kept ({path.name}:{line})",
                speedup_without(share, KEPT_FEATURES_SAVE),
                f"it learns nothing, and takes {percent(share)} of the step",
                sources=context.sources.with_module(path, tree),
                needs_revisits=True,
                key=context.key(path, module.code(call.func)),
                lines=Lines.of(path, module, call),
            )
        ]


def _calling(context: RemedyContext, part: FrozenPart) -> tuple[Path, int]:
    """The line of the program's own that calls it most. Raises NotApplicable."""
    lines: Counter[tuple[Path, int]] = Counter()
    function = f"{part.type}.forward"
    for sample in context.measurement.samples:
        if sample.pid != context.measurement.main_pid or not sample.main_thread:
            continue
        is_it = (frame.file == part.file and frame.function.endswith(function) for frame in sample.frames)
        index = next((number for number, found in enumerate(is_it) if found), 0)
        above = [(context.user_file(frame.file), frame.line) for frame in sample.frames[:index]]
        own = [(path, line) for path, line in above if path is not None]
        if own:
            lines[own[-1]] += sample.count
    if not lines:
        raise NotApplicable(f"no line of the program's own calls {part.type}")
    return lines.most_common(1)[0][0]


def _call(module: SourceModule, line: int, part: FrozenPart) -> cst.Call:
    """The call on a line that may be it. Raises AnalysisRefused."""
    wanted = part.name.rpartition(".")[2]
    found = []
    for call in module.all(cst.Call):
        name, arguments = dotted(call.func), call.args
        is_plain = len(arguments) == 1 and not arguments[0].star and arguments[0].keyword is None
        is_it = name.rpartition(".")[2] == wanted if wanted else not module.name(call).startswith(_NO_MODEL)
        if module.is_on(call, line) and is_plain and name and is_it:
            found.append(call)
    if len(found) != 1:
        raise AnalysisRefused(f"line {line} does not call {part.name or part.type} with one batch alone")
    return found[0]


REMEDY = KeepFeatures()
