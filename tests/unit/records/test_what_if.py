"""The answers that are no report: what they are as JSON, and as data for the page."""

import msgspec

from unstall.records.what_if import DataRate, DataReport, WhatIf, WhatIfReport


def test_predictions_read_back_as_they_were():
    answer = WhatIf(
        changes="8 workers",
        step_s=0.02,
        low=0.018,
        high=0.023,
        speedup=2.0,
        speedup_low=1.7,
        speedup_high=2.2,
        bottleneck="forward",
    )
    made = WhatIfReport(
        run="r", command=["train.py"], recorded_step_s=0.04, answers=[answer], elasticities={"data": 0.7}
    )
    assert msgspec.json.decode(made.to_json(), type=WhatIfReport) == made
    assert msgspec.json.decode(made.to_json())["known_by"] == "predicted"


def test_what_was_not_measured_of_a_loader_is_absent():
    made = DataReport(
        command=["train.py"],
        loader={"workers": 2},
        stages=[],
        rates=[DataRate(workers=0, error="killed")],
        ceiling_items_per_s=None,
        model_items_per_s=None,
        conclusion="nothing",
    )
    assert msgspec.json.decode(made.to_json())["rates"] == [{"workers": 0, "error": "killed"}]
