"""Sync-bound: reading results of a device back."""

from __future__ import annotations

import pytest
from patterncase import TRAINING, check, match


@pytest.mark.parametrize("seam, cause", [("~sync.item", "item"), ("~sync.cpu", "copy"), ("~sync.nonzero", "shape")])
def test_sync_bound_names_the_call(code, seam, cause):
    finding = check(
        match("sync-bound", {**TRAINING, "sync": 0.1}, sites=[code.site(seam, "suppress", "# suppress")]), "sync-bound"
    )
    assert (finding.cause, finding.culprit.function) == (cause, "suppress")
