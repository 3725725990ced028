"""Libraries that are known by their class names alone, as none of their builds runs here: DALI and vLLM."""

from __future__ import annotations

from types import SimpleNamespace

from unstall.child.seams import other_loaders, vllm
from unstall.child.tap import Tap
from unstall.records.vocabulary import Tick


def ticks(recorded, kind):
    return Tap(recorded.path).ticks[kind]


def test_the_iterators_of_dali_count_each_batch_once(recorded):
    class Base:
        def __next__(self):
            raise NotImplementedError

    class Generic(Base):
        def __next__(self):
            return "batch"

    class Own(Generic):
        def __next__(self):
            return super().__next__() + " of mine"

    Base.__module__, Generic.__module__ = "nvidia.dali.plugin.base_iterator", "nvidia.dali.plugin.pytorch"
    module = SimpleNamespace(_DaliBaseIterator=Base, __name__=Base.__module__)
    other_loaders.TARGETS["nvidia.dali.plugin.base_iterator"](module)
    assert next(Own()) == "batch of mine" and next(Generic()) == "batch"
    assert recorded.names() == ["~data.next"] * 2 and ticks(recorded, Tick.DATA) == 2


def test_a_call_of_vllm_is_one_request_for_all_of_its_prompts(recorded):
    class LLM:
        def generate(self, prompts):
            return [prompt.upper() for prompt in prompts]

        def chat(self, messages):
            return self.generate(messages)

    vllm.TARGETS["vllm.entrypoints.llm"](SimpleNamespace(LLM=LLM))
    assert LLM().generate(["a", "b"]) == ["A", "B"] and LLM().chat(["c"]) == ["C"]
    assert recorded.names() == ["~generate"] * 2 and recorded.spans()["arg"].tolist() == [2, 1]
    assert ticks(recorded, Tick.REQUEST) == 2
