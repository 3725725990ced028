"""recompute-bound: what an earlier call has computed already is computed again."""

from __future__ import annotations

import msgspec

from unstall.child.seams import modules, transformers
from unstall.child.user_files import is_program_file
from unstall.diagnose import health
from unstall.diagnose.blame import culprit_at
from unstall.diagnose.callers import callers_of
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.patterns.base import Features, Pattern, UsualRemedy, at, of_step, part
from unstall.diagnose.placing import Placed, count, leading_phase
from unstall.diagnose.positions import HOST_PLACES
from unstall.diagnose.program_frames import short
from unstall.diagnose.thresholds import CALLED_OP_S, OUTRANKS_GROWTH, SEEN, TIE, WEIGHT_S, WORTH
from unstall.records.model import ModelMeasurement
from unstall.records.observations import Frame
from unstall.records.report import Finding
from unstall.records.run import Utilization
from unstall.records.vocabulary import BACKWARD, FORWARD, OTHER
from unstall.text.units import bytes_, seconds
from unstall.threshold import Range

CHECKPOINTING = "checkpointing"
_CACHE = "leave the key-value cache on: no use_cache=False, in generate() or in a config"
_KEEP = "compute it once and keep the result: before the loop, in the state of a request, or where weights are loaded"
_ONCE_A_STEP = "compute it once in a step, and use the result wherever it is needed"
_KEEP_ACTIVATIONS = (
    "turn activation checkpointing off while memory holds all activations (gradient_checkpointing=False in "
    "Transformers), or for some of the layers"
)
_ONCE = (
    "compute the features of all samples once, before the first epoch, and train what learns on these: unless samples "
    "are augmented at random, or never come again"
)


class RecomputeBound(Pattern):
    """Operators are given the values that they were given before; or a part that learns nothing sees each sample again.

    Or a model generates text without its cache, and goes through all the other tokens again for each new one.
    """

    name = "recompute-bound"
    brief = "what was computed before is computed again"
    causes = ("kv-cache", "same-inputs", "frozen-part", CHECKPOINTING)
    phases = (FORWARD.name,)
    advice = _KEEP
    by_hand = (
        ("kv-cache", _CACHE),
        ("same-inputs", _KEEP),
        ("frozen-part", _ONCE),
        (CHECKPOINTING, _KEEP_ACTIVATIONS),
    )
    calibration = (
        (CHECKPOINTING, None, Range(0.7, 1.1, 1.5, "one program, in both forms: 1.1 and 1.2")),
        (
            "same-inputs",
            None,
            Range(0.6, 1.2, 3.2, "few early cycles say how operators are divided: four programs, 0.8 to 3.1"),
        ),
    )
    usual_remedies = (
        (
            CHECKPOINTING,
            UsualRemedy(
                "activations kept",
                Range(0.0, 0.05, 0.4, "nothing is computed again; what is kept is written and read"),
            ),
        ),
        (
            "kv-cache",
            UsualRemedy(
                "the key-value cache",
                Range(0.0, 0.05, 0.2, "each token is gone through once; keys and values are copied"),
            ),
        ),
        (
            "same-inputs",
            UsualRemedy(
                "the result kept",
                Range(0.0, 0.02, 0.3, "it is looked up; some is computed again because the rest changes seldom"),
            ),
        ),
        (
            "frozen-part",
            UsualRemedy(
                "features computed once",
                Range(0.0, 0.1, 0.6, "they are computed once, in one epoch of several, and read from then on"),
            ),
        ),
    )

    def on_host(self, host: HostFeatures) -> Finding | None:
        """By a model's inputs, call for call, or by what operators were given in a few early cycles."""
        frozen, again = self._by_frozen_parts(host), self._from_same_inputs(host)
        # Of a part that learns nothing all recurs where the samples do: it is the part that is to be named.
        first, second = (frozen, again) if health.nearly_all_recurs(host) else (again, frozen)
        return self._without_cache(host) or first or second or self._checkpointed(host)

    def _checkpointed(self, host: HostFeatures) -> Finding | None:
        """By the stack samples in what torch.utils.checkpoint computes again."""
        samples = host.blame.recomputed
        share = count(samples) / max(host.blame.total, 1)
        headroom = host.headroom_without(share * host.step_s)
        if headroom < SEEN:
            return None
        memory, evidence = host.measurement.memory, []
        if memory.rss_peak and memory.available and not host.measurement.model.on_gpu:
            evidence = [f"the run takes {bytes_(memory.rss_peak)} at most, of {bytes_(memory.available)}"]
        return self.finding(
            cause=CHECKPOINTING,
            culprit=host.blame.main_culprit(samples),
            share=share,
            phases=(BACKWARD.name,),
            headroom=headroom,
            evidence=[
                f"{of_step(share, share * host.step_s)}, is forward again in backward, to save memory",
                *evidence,
            ],
            advice=[_KEEP_ACTIVATIONS],
        )

    def _from_same_inputs(self, host: HostFeatures) -> Finding | None:
        again = host.measurement.recomputation
        if again is None or not again.frames or not health.computes_again(host):
            return None
        if health.wastes_gradients(host):  # dropped first, as below; of a part that learns nothing all may recur
            return None
        calling_s = again.operators * CALLED_OP_S
        taken_s = min(again.share * host.step_s, again.seconds + again.backward_s + calling_s)
        headroom = host.headroom_without(taken_s)
        if headroom < SEEN:
            return None
        share, place = taken_s / host.step_s, again.frames[-1]
        through = [placed for placed in host.blame.main if _goes_through(placed, place)]
        phase = leading_phase(through, otherwise=FORWARD.name)
        culprit = culprit_at(place.file, place.line, share * again.there)
        # Who calls it twice with the same is to blame as much as what computes.
        callers = callers_of((place.file, culprit.function), through, host.blame.loops, host.blame.total)
        return self.finding(
            cause="same-inputs",
            culprit=msgspec.structs.replace(culprit, callers=callers),
            share=share,
            phases=(OTHER.name if phase in HOST_PLACES else phase,),
            headroom=headroom,
            evidence=[health.recomputed(host)],
            advice=[_ONCE_A_STEP if health.nearly_all_recurs(host) else _KEEP],
        )

    def _by_frozen_parts(self, host: HostFeatures) -> Finding | None:
        frozen = host.measurement.frozen
        taken_s = frozen.share * host.phase_s(FORWARD.name) if frozen is not None else 0.0
        headroom = host.headroom_without(taken_s)
        # Gradients that nothing uses are dropped first: that changes no result.
        if frozen is None or headroom < SEEN or health.wastes_gradients(host):
            return None
        share = taken_s / host.step_s
        own = culprit_at(frozen.file, frozen.line, share) if frozen.file and is_program_file(frozen.file) else None
        name = f"`{frozen.name}`" if frozen.name else f"the {frozen.type}"
        return self.finding(
            cause="frozen-part",
            culprit=own or host.caller(modules.FORWARD, share=share),
            share=share,
            headroom=headroom,
            confidence="medium",
            evidence=[
                f"{of_step(share, taken_s)}, is the forward pass of {name}, which learns nothing and comes before all "
                "that does: of the same sample it computes the same in each epoch"
            ],
            advice=[_ONCE],
        )

    def _without_cache(self, host: HostFeatures) -> Finding | None:
        """By inputs that grow by a token from call to call, and by what a call of one token would take."""
        generation = host.measurement.generation
        if generation is None or generation.cached or generation.new_tokens <= 1:
            return None
        a_token_s = generation.decode_s / (generation.new_tokens - 1)
        alone_s = min(_one_token_s(host.measurement.model), a_token_s)
        taken_s = min((1 - alone_s / a_token_s) * generation.decode_s, host.model_s)
        headroom = host.headroom_without(taken_s)
        if headroom < SEEN:
            return None
        share = taken_s / host.step_s
        return self.finding(
            cause="kv-cache",
            culprit=host.caller(transformers.REQUEST, share=share),
            share=share,
            headroom=headroom,
            confidence="high" if host.measurement.model.ops else "low",
            evidence=[
                f"the key-value cache is off: the model is given {generation.prompt_tokens:.0f} tokens for the first "
                f"new one, and one more for each, up to {generation.longest_input:.0f}",
                f"{of_step(share, taken_s)}, goes through earlier tokens again: a new one takes {seconds(a_token_s)} "
                f"after prefill, and would take about {seconds(alone_s)} alone",
            ],
            advice=[
                _CACHE,
                "a model that was loaded, or saved, with use_cache=False for its training generates without the cache "
                "too: set model.generation_config.use_cache = True",
            ],
        )

    def is_of_library(self, finding: Finding) -> bool:
        """Not where the program asked for it."""
        return finding.cause != CHECKPOINTING

    def rank(self, finding: Finding, features: Features) -> float:
        """A switch that is off comes before anything that is to be said of the model itself."""
        if finding.cause == "frozen-part":
            return min(finding.headroom, TIE * WORTH)  # whether samples come again as they are is not known
        if finding.cause != "kv-cache":
            return finding.headroom
        return max(finding.headroom, OUTRANKS_GROWTH) if finding.headroom >= WORTH else finding.headroom

    def condition(self, finding: Finding) -> str:
        """The cache is what is missing, or memory."""
        known = {"kv-cache": "with the cache", CHECKPOINTING: "with all activations kept"}
        return known.get(finding.cause or "", super().condition(finding))

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """Names the call of ``generate()``, or what is called with the same values."""
        if finding.cause == CHECKPOINTING:
            return f"{part(finding)} computes activations again, to save memory{at(finding.culprit)}"
        if finding.cause == "frozen-part":
            return f"{part(finding)} computes features that no training changes{at(finding.culprit)}"
        if finding.cause != "kv-cache":
            return f"{part(finding)} computes what was computed before, from the same values{at(finding.culprit)}"
        return f"{part(finding)} goes through earlier tokens again: the key-value cache is off{at(finding.culprit)}"


def _goes_through(placed: Placed, place: Frame) -> bool:
    return any((frame.file, short(frame.function)) == (place.file, place.function) for frame, _ in placed.program)


def _one_token_s(model: ModelMeasurement) -> float:
    """Seconds of a call of the model for one token: calling its operators, and going through its weights."""
    ops = (model.ops or 0.0) / max(model.forwards, 1.0)
    return ops * CALLED_OP_S + model.parameters * WEIGHT_S


PATTERN = RecomputeBound()
