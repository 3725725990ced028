"""Which line of a loop hands the model its batch."""

import pytest
from factory import Source

from unstall.diagnose.dataflow import hands_batch, waiting_calls

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


CALLS = """
def runge_kutta(f, t, dt, y):
    k1 = f(t, y)  # k1
    k2 = f(t + dt / 2, y + dt / 2 * k1)  # k2
    k3 = f(t + dt / 2, y + dt / 2 * k2)  # k3
    return y + dt / 6 * (k1 + 2 * k2 + k3)

def denoise(model, x):
    for t in range(50):
        noise = model(x, t)  # denoise
        x = x - 0.1 * noise

def roll(model, x, n):
    for _ in range(n):
        token = pick(model(x).argmax(-1))  # roll
        x = cat([x, token])

def score(model, items):
    scores, total = [], 0
    for item in items:
        total = total + loss(model(item))  # total
        scores = cat([scores, model(item.float())])  # cat
        scores.append(model(prepare(item)))  # append

def lose(model, batch):
    return model(batch)  # alone
"""


@pytest.mark.parametrize(
    ("calls", "waiting"),
    [
        (["# k1", "# k2", "# k3"], ["# k2", "# k3"]),
        (["# denoise"], ["# denoise"]),
        (["# roll"], ["# roll"]),
        (["# total", "# cat", "# append"], []),
        (["# alone", "# k2"], []),
    ],
)
def test_calls_that_work_on_the_result_of_another_wait_for_it(tmp_path, calls, waiting):
    source = Source(tmp_path / "calls.py", CALLS)
    lines = {mark: source.line(mark) for mark in calls}
    found = waiting_calls(source.file, frozenset(lines.values()))
    assert [mark for mark, line in lines.items() if line in found] == waiting


def test_a_file_that_is_gone_has_no_waiting_calls(tmp_path):
    assert waiting_calls(str(tmp_path / "gone.py"), frozenset({1})) == frozenset()
