"""Requests of generate(): what counts them, how long prefill and decode take, and whether a cache is used."""

from __future__ import annotations

import numpy as np
import pytest
from spanfactory import Recording, check_loop, loop_of, train_step

from unstall.benchmark import generation

MODEL = 7


def request(r, *, tokens, prompt=8, sequences=2, cached=True, prefill=0.04, decode=0.01, seen=True):
    """A call of generate(), and 5 ms of the program's own before the next."""
    with r.span("~generate", arg=sequences):
        for number in range(tokens):
            given = prompt if number == 0 else 1 if cached else prompt + number
            if seen:
                r.do("~generate.inputs", arg=sequences << 32 | given)
            r.do("~forward", prefill if number == 0 else decode, arg=MODEL)
    r.spend(0.005)


def measured(r):
    process = r.process()
    loop = loop_of(r)
    return generation.measure(process, loop, np.ones(len(loop), dtype=bool))


def test_a_step_is_a_request_and_not_a_token():
    r = Recording()
    for _ in range(5):
        request(r, tokens=6)
    loop = loop_of(r)
    check_loop(loop)
    assert (loop.kind, len(loop)) == ("request", 4)
    assert loop.durations.mean() == pytest.approx(0.04 + 5 * 0.01 + 0.005)


def test_a_training_that_generates_now_and_then_is_counted_by_its_optimizer():
    r = Recording()
    for _ in range(4):
        for _ in range(5):
            train_step(r, model=MODEL)
        request(r, tokens=6)
    assert loop_of(r).kind == "optimizer"
    assert measured(r) is None


def test_prefill_is_told_from_decode():
    r = Recording()
    for _ in range(5):
        request(r, tokens=6)
    mean = measured(r)
    assert (mean.sequences, mean.prompt_tokens, mean.new_tokens, mean.longest_input) == (2, 8, 6, 1)
    assert mean.prefill_s == pytest.approx(0.04)
    assert mean.decode_s == pytest.approx(5 * 0.01)
    assert mean.cached


def test_without_the_cache_inputs_grow_from_call_to_call():
    r = Recording()
    for prompt in (8, 20, 8, 20, 8):
        request(r, tokens=6, prompt=prompt, cached=False)
    mean = measured(r)
    assert not mean.cached
    assert mean.longest_input == pytest.approx((8 + 20) / 2 + 5)


@pytest.mark.parametrize("tokens", [1, 2])
def test_requests_of_a_token_or_two(tokens):
    r = Recording()
    for _ in range(4):
        request(r, tokens=tokens)
    mean = measured(r)
    assert (mean.new_tokens, mean.cached) == (tokens, True)
    assert mean.decode_s == pytest.approx((tokens - 1) * 0.01)


def test_a_version_whose_calls_are_not_seen_has_requests_all_the_same():
    r = Recording()
    for _ in range(5):
        request(r, tokens=6, seen=False)
    assert loop_of(r).kind == "request"
    assert measured(r) is None
