"""recompute-bound: what an earlier call has computed already is computed again."""

from __future__ import annotations

from unstall.child.seams import transformers
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.patterns.base import Features, Pattern, UsualRemedy, at, of_step, part
from unstall.diagnose.thresholds import CALLED_OP_S, OUTRANKS_GROWTH, SEEN, WEIGHT_S, WORTH
from unstall.records.measurements import ModelMeasurement
from unstall.records.report import Finding, Utilization
from unstall.records.vocabulary import FORWARD
from unstall.text.units import seconds
from unstall.threshold import Range

_REMEDY = "leave the key-value cache on: no use_cache=False, in generate() or in a config"


class RecomputeBound(Pattern):
    """A model generates text without its cache: for each new token it goes through all the others again."""

    name = "recompute-bound"
    brief = "what was computed before is computed again"
    causes = ("kv-cache",)
    phases = (FORWARD.name,)
    advice = _REMEDY
    by_hand = (("kv-cache", _REMEDY),)
    usual_remedies = (
        (
            "kv-cache",
            UsualRemedy(
                "the key-value cache",
                Range(0.0, 0.05, 0.2, "each token is gone through once; keys and values are copied"),
            ),
        ),
    )

    def on_host(self, host: HostFeatures) -> Finding | None:
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
                _REMEDY,
                "a model that was loaded, or saved, with use_cache=False for its training generates without the cache "
                "too: set model.generation_config.use_cache = True",
            ],
        )

    def rank(self, finding: Finding, features: Features) -> float:
        """A switch that is off comes before anything that is to be said of the model itself."""
        return max(finding.headroom, OUTRANKS_GROWTH) if finding.headroom >= WORTH else finding.headroom

    def condition(self, finding: Finding) -> str:
        """The cache is what is missing."""
        return "with the cache"

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """Names the call of ``generate()``."""
        return f"{part(finding)} goes through earlier tokens again: the key-value cache is off{at(finding.culprit)}"


def _one_token_s(model: ModelMeasurement) -> float:
    """Seconds of a call of the model for one token: calling its operators, and going through its weights."""
    ops = (model.ops or 0.0) / max(model.forwards, 1.0)
    return ops * CALLED_OP_S + model.parameters * WEIGHT_S


PATTERN = RecomputeBound()
