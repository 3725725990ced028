"""How much of the machine others take: what is left of its busy time once one's own is taken out."""

import pytest

from unstall.benchmark.load import Load


@pytest.mark.parametrize(("forked_s", "cores"), [(0.0, 0.6), (4.0, 0.2), (9.0, 0.0)])
def test_others_took_what_is_neither_ones_own_nor_a_forks(monkeypatch, forked_s, cores):
    looks = iter([(100.0, 50.0), (112.0, 56.0)])
    monkeypatch.setattr(Load, "_now", lambda load: next(looks))
    assert Load().of_others(10.0, forked_s) == pytest.approx(cores)
