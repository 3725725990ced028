"""Attention that no fused operator computes."""

from __future__ import annotations

from unstall.diagnose.blame import culprit_at
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.model_causes.base import ModelCause, Suspects
from unstall.diagnose.patterns.base import UsualRemedy
from unstall.records.report import Culprit
from unstall.threshold import Range


class Attention(ModelCause):
    """Scores, mask, softmax and sum are separate operators."""

    name = "attention"
    sure = True
    by_hand = "call scaled_dot_product_attention, with the mask as attn_mask or is_causal"
    calibration = Range(0.8, 1.0, 1.2, "its lines were timed, in one early step")
    usual_remedy = UsualRemedy(
        "fused attention", Range(0.3, 0.65, 1.0, "the products stay: 0.65 and 0.67 (docs/real-programs.md)")
    )

    def is_found(self, host: HostFeatures, suspects: Suspects) -> bool:
        return suspects.attention is not None

    def waste_s(self, host: HostFeatures, suspects: Suspects) -> float:
        assert suspects.attention is not None
        return suspects.attention.share * host.step_s

    def culprit(self, host: HostFeatures, suspects: Suspects) -> Culprit | None:
        attention = suspects.attention
        assert attention is not None
        return culprit_at(attention.frame.file, attention.frame.line, attention.share)

    def evidence(self, host: HostFeatures, suspects: Suspects) -> list[str]:
        assert suspects.attention is not None
        return [suspects.attention.sentence]

    def advice(self, suspects: Suspects) -> str:
        return "one fused operator: torch.nn.functional.scaled_dot_product_attention"
