"""Which line of a loop hands the model its batch."""

import pytest
from factory import Source

from unstall.diagnose.dataflow import hands_batch

TEXT = """
def fit(model, loader, store):
    for epoch in range(10):
        schedule(epoch)  # epoch
        for batch in loader():  # head
            batch = normalise(batch)  # normalise
            model(batch)  # over an iterable

def count(model, store):
    for step in range(100):
        keys = store.draw(step)  # keys
        rate = warm_up(step)  # rate
        rows = store.rows(keys)  # rows
        with store.open(rows) as x:
            for part in x.split(4):
                model(part)  # counted
        store.close()  # close

def forever(model, store):
    while not store.done:
        x, y = store.next()  # next
        log(x)  # log
        loss(model(x), y)  # forever

def adapt(model, store):
    for step in range(100):
        learner = model.clone()  # clone
        chunk = store.draw(step)  # chunk
        learner.learn(loss(learner(chunk.float())))  # adapted

def train_step(model):
    x = make()  # alone
    return model(x)  # in no loop
"""


@pytest.fixture
def code(tmp_path):
    return Source(tmp_path / "loops.py", TEXT)


@pytest.mark.parametrize(
    ("snippet", "call", "hands"),
    [
        ("# head", "# over an iterable", True),
        ("# normalise", "# over an iterable", False),
        ("# epoch", "# over an iterable", False),
        ("# keys", "# counted", True),
        ("# rows", "# counted", True),
        ("# rate", "# counted", False),
        ("# close", "# counted", False),
        ("# next", "# forever", True),
        ("# log", "# forever", False),
        ("# clone", "# adapted", False),
        ("# chunk", "# adapted", True),
        ("# alone", "# in no loop", False),
    ],
)
def test_what_the_model_works_on_is_made_where_its_value_comes_from(code, snippet, call, hands):
    assert hands_batch(code.file, code.line(snippet), code.line(call)) is hands


@pytest.mark.parametrize("text", ["", "def broken(:\n    x = 1\n"])
def test_a_file_that_says_nothing_hands_no_batch(tmp_path, text):
    assert not hands_batch(Source(tmp_path / "odd.py", text).file, 1, 2)
    assert not hands_batch(str(tmp_path / "gone.py"), 1, 2)
