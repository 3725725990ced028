"""Attention that no fused operator computes."""

from __future__ import annotations

from unstall.diagnose.attention import WrittenOut
from unstall.diagnose.model_causes.base import Suspects, TimedLine
from unstall.diagnose.patterns.base import UsualRemedy
from unstall.threshold import Range


class Attention(TimedLine):
    """Scores, mask, softmax and sum are separate operators."""

    name = "attention"
    cured_by_a_line = True
    by_hand = "call scaled_dot_product_attention, with the mask as attn_mask or is_causal"
    calibration = Range(0.8, 1.0, 1.2, "its lines were timed, in one early step")
    usual_remedy = UsualRemedy(
        "fused attention", Range(0.3, 0.65, 1.0, "the products stay: 0.65 and 0.67 (docs/real-programs.md)")
    )

    def line(self, suspects: Suspects) -> WrittenOut | None:
        return suspects.attention

    def advice(self, suspects: Suspects) -> str:
        return "one fused operator: torch.nn.functional.scaled_dot_product_attention"
