"""What of a sample's making is kept, and what not."""

from __future__ import annotations

import os
import textwrap

import pytest
from optimize_builders import make_module

from unstall.optimize.remedies.cache_samples import find_head, with_cache
from unstall.optimize.source.errors import AnalysisRefused

FRAME = """
import random

calls = []

def draw(size):
    return random.randrange(size)

class Numbers:
    def __init__(self, n):
        self.n = n
        self.train = True

    def __len__(self):
        return self.n

    def work(self, index):
        calls.append(index) if False else None
        return index * index

    def transform_later(self):
        self.mode = "late"

    def __getitem__(self, index):
{body}
"""


def head_of(body):
    text = FRAME.replace("{body}", textwrap.indent(textwrap.dedent(body).strip(), " " * 8))
    line = next(number for number, one in enumerate(text.splitlines(), 1) if "def __getitem__" in one)
    return text, line, find_head(make_module(text), line)


def test_the_steady_part_ends_where_random_numbers_begin():
    _, _, head = head_of("""
        value = int(str(index))
        size = value + 1
        if self.train:
            size += draw(3)
        return size, value
    """)
    assert (len(head.statements), head.is_whole_method, head.keeps) == (2, False, ("value", "size"))


def test_the_whole_method_may_be_steady():
    _, _, head = head_of("value = self.n + int(index)\nreturn value")
    assert head.is_whole_method and len(head.statements) == 2


@pytest.mark.parametrize(
    "body",
    [
        "value = random.random()\nreturn value",
        "value = self.unknown(index)\nreturn value",
        "value = len(self.mode)\nreturn value + draw(2)",
        "print(index)\nreturn int(index)",
        "self.seen.append(len([index]))\nreturn draw(2)",
        "return index",
    ],
)
def test_what_may_differ_or_does_more_is_left_alone(body):
    with pytest.raises(AnalysisRefused):
        head_of(body)


def test_the_written_cache_gives_the_same_and_works_once():
    text, line, _ = head_of("""
        value = self.work(int(index))
        size = [value]
        size.append(draw(3))
        return size, value
    """)
    text = text.replace("calls.append(index) if False else None", "self.made = getattr(self, 'made', 0) + 1")
    tree = with_cache(find_head(make_module(text), line))
    space: dict = {}
    exec(compile(tree.code, "numbers_module.py", "exec"), space)
    dataset = space["Numbers"](5)
    folder = dataset.samples_kept.folder
    assert [dataset[3][1], dataset[3][1], dataset[4][1]] == [9, 9, 16]
    assert dataset.made == 2 and len(os.listdir(folder)) == 2
    del dataset
    assert not os.path.exists(folder)


@pytest.mark.parametrize(
    "make",
    [
        "torch.arange(6).reshape(2, 3)",
        "torch.rand(4, 3).T",
        "torch.rand(3, dtype=torch.bfloat16)",
        "torch.rand(3, requires_grad=True)",
        "torch.view_as_complex(torch.rand(2, 2)).conj()",
        "torch.eye(3).to_sparse()",
        "torch.tensor(True)",
        "torch.nn.Parameter(torch.rand(2))",
    ],
)
def test_tensors_come_back_as_they_were(make):
    torch = pytest.importorskip("torch")
    from unstall.optimize.runtime.sample_cache import _SampleCache

    sample = eval(make, {"torch": torch})
    cache = _SampleCache()
    cache.get(lambda index: {"x": [sample], "label": "cat"}, 3)
    back = cache.get(None, 3)
    (tensor,) = back["x"]
    assert back["label"] == "cat" and type(tensor) is type(sample) and tensor.dtype == sample.dtype
    assert tensor.layout == sample.layout and tensor.requires_grad == sample.requires_grad
    assert torch.equal(tensor.to_dense(), sample.to_dense())
    if not sample.requires_grad:
        assert tensor.zero_() is tensor, "it may be changed in place"


DATACLASS = """
import dataclasses


@dataclasses.dataclass{arguments}
class Squares:
    n: int
    made: int = 0

    def __post_init__(self):
        self.limit = self.n

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        return int(str(index)) ** 2
"""


def test_a_dataclass_keeps_its_samples_from_its_post_init_on():
    text = DATACLASS.format(arguments="(eq=False)")
    changed = with_cache(find_head(make_module(text), 16)).code
    assert "        self.limit = self.n\n        self.samples_kept = _SampleCache()\n" in changed
    space: dict = {}
    exec(changed, space)
    squares = space["Squares"](5)
    assert [squares[3], squares[3], squares[4]] == [9, 9, 16]


@pytest.mark.parametrize("arguments", ["(frozen=True)", "(slots=True)"])
def test_a_dataclass_that_takes_no_further_attributes_is_left_alone(arguments):
    text = DATACLASS.format(arguments=arguments).replace("self.limit = self.n", "pass")
    with pytest.raises(AnalysisRefused, match="no __init__"):
        find_head(make_module(text), 16)
