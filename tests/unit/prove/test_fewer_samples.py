"""What both do with fewer samples in each epoch, from runs of programs that are made up."""

from __future__ import annotations

from functools import partial

import pytest
from made_up_proofs import is_watched, make_account, make_run, prove, seeded


def shortened(plan, steps=24, epochs=2):
    """An account of a run whose epochs are shorter where the plan asks for that."""
    return make_account(steps=steps, shortened=epochs if "shorter" in plan else 0)


def test_a_change_that_drops_the_last_batch_is_told_where_the_data_are_shorter():
    def dropped(plan):
        return seeded(plan, seconds=5.0, account=shortened(plan, steps=22 if "shorter" in plan else 24))

    proof, runs = prove(lambda plan: seeded(plan, account=shortened(plan)), dropped)
    assert proof.verdict == "different" and proof.first_difference.detail == "22 instead of 24"
    assert "with fewer samples in each epoch" in proof.reason and {} not in runs.plans


def test_how_many_samples_are_left_out_is_drawn_and_one_where_the_original_takes_no_other():
    def original(plan, most, **given):
        left_out = plan.get("shorter", {}).get("samples", 0)
        account = shortened(plan) | {"batches": [[16, ""]] * 24}
        return seeded(plan, account=account, status=int(left_out > most), **given)

    def drawn(most: int) -> int:
        proof, _ = prove(partial(original, most=most), partial(original, most=most, seconds=5.0))
        assert proof.verdict == "proven"
        (told,) = (line for line in proof.known_by if "fewer samples" in line)
        return int(told.split()[-6])

    numbers = {drawn(16) for _ in range(20)}
    assert len(numbers) > 4 and min(numbers) >= 2 and max(numbers) <= 14
    assert drawn(1) == 1


def test_a_change_that_fails_where_the_data_are_shorter_is_different():
    def fails(plan):
        short = "shorter" in plan
        return seeded(plan, seconds=5.0, status=int(short), account=None if short else shortened(plan))

    proof, _ = prove(lambda plan: seeded(plan, account=shortened(plan)), fails)
    assert proof.verdict == "different" and proof.first_difference.place == "exit code"


def test_shorter_data_are_compared_where_seeds_cannot_be_changed_too():
    def dropped(plan):
        return make_run(seconds=5.0, account=shortened(plan, steps=22 if "shorter" in plan else 24))

    proof, _ = prove(lambda plan: make_run(account=shortened(plan)), dropped)
    assert proof.verdict == "different" and "seeds" not in proof.reason


@pytest.mark.parametrize("status", [0, 1])
def test_a_side_that_orders_its_data_itself_or_an_original_that_fails_is_compared_with_the_data_as_they_are(status):
    def original(plan):
        return seeded(plan, account=shortened(plan), status=status if "shorter" in plan else 0)

    def changed(plan):
        return seeded(plan, seconds=5.0, account=shortened(plan, epochs=0))

    proof, runs = prove(original, changed)
    assert proof.verdict == "proven" and any("seeds changed by" in line for line in proof.known_by)
    notes = [line for line in proof.known_by if "fewer samples" in line]
    assert [line.split(" with")[0] for line in notes] == ["not compared"] * (status == 0)
    assert [plan for plan in runs.plans if (plan.get("seed") or {}).get("shift") and is_watched(plan)]


def by_datasets(plan):
    return bool(plan.get("shorter", {}).get("datasets"))


@pytest.mark.parametrize(("rows", "verdict"), [(15, "different"), (16, "proven"), (14, "proven")])
def test_a_sampler_of_its_own_is_compared_where_datasets_say_that_they_have_less(rows, verdict):
    """The original takes 14 a step then; one that takes 16 as always does not ask the datasets."""

    def original(plan):
        return seeded(
            plan, account=make_account(shortened=int("shorter" in plan), rows=14 if by_datasets(plan) else 16)
        )

    def changed(plan):
        taken = rows if by_datasets(plan) else 16
        return seeded(plan, seconds=5.0, account=make_account(shortened=int(by_datasets(plan)), rows=taken))

    proof, _ = prove(original, changed)
    assert proof.verdict == verdict
    assert any("orders its samples itself" in line for line in proof.known_by) == (rows == 16)
