"""Transfer-bound: copies to a device."""

from __future__ import annotations

import pytest
from patterncase import TRAINING, check, loader, match


@pytest.mark.parametrize("pinned, cause", [(False, "pageable"), (True, "blocking")])
def test_transfer_bound_tells_pageable_from_blocking_copies(pinned, cause):
    finding = check(
        match("transfer-bound", {**TRAINING, "transfer": 0.1}, loader=loader(pin_memory=pinned)), "transfer-bound"
    )
    assert finding.cause == cause
