"""Which functions may run a little later, and which may not."""

from __future__ import annotations

import textwrap

import pytest

from unstall.optimize.deferring import NotDeferrable, examine


def read(source, name="log"):
    text = textwrap.dedent(source)
    line = next(number for number, one in enumerate(text.splitlines(), 1) if f"def {name}(" in one)
    return examine(text, name, line)


def test_what_only_writes_what_it_is_given_may_run_later():
    found = read("""
        import json

        def log(path, step, loss):
            record = {"loss": loss.item()}
            record["step"] = step
            with open(path, "a") as file:
                file.write(json.dumps(record))
    """)
    assert (found.name, found.first_line, found.shared, found.waiting) == ("log", 4, (), ())


LOGGER = """
import json

class Logger:
    def __init__(self, path, every, model):
        self.file = open(path, "w")
        self.every = every
        self.model = model
        self.lines = []

    def log(self, step, loss):
        if step % self.every == 0:
            self.lines.append(step)
            self.file.write(self.text(loss))

    def text(self, loss):
        return json.dumps(loss.item())

    def close(self):
        self.file.close()


def main(logger):
    for step in range(9):
        logger.log(step, 1)
    logger.close()
"""


def test_methods_that_may_look_at_what_was_done_wait_for_it():
    found = read(LOGGER)
    lines = LOGGER.splitlines()
    assert found.shared == ("self",)
    assert [lines[line - 1].strip() for line in found.waiting] == ["def close(self):"]
    with pytest.raises(NotDeferrable, match=r"self\.model"):
        read(LOGGER.replace("loss.item()", "self.model.size()"))
    with pytest.raises(NotDeferrable, match="sets lines"):
        read(LOGGER + "    print(logger.lines)\n")
    with pytest.raises(NotDeferrable, match=r"is a nn\.Module"):
        read(LOGGER.replace("class Logger:", "class Logger(nn.Module):"))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return step", "gives something back"),
        ("print(step)", "print"),
        ("loss.backward()", "loss"),
        ("model.eval()", "model"),
        ("history.append(step)", "history"),
        ("rows = history\n    rows.append(step)", "rows"),
        ("for layer in model.modules():\n        layer.train()", "layer"),
        ("model.best = step", "model"),
        ("history['x'] = step", "history"),
        ("record = random.random()", "random"),
        ("record = time.time()", "time"),
        ("global best\n    best = step", "depend"),
        ("raise ValueError(step)", "depend"),
        ("total = len(losses.copy())", "losses"),
        ("yield step", "generator"),
        ("model.weight.data.zero_()", "model"),
        ("dist.all_reduce(loss)", "dist"),
        ("helper(history)", "rows"),
    ],
)
def test_what_may_not(body, reason):
    source = f"""
import random, time

losses = []

def helper(rows):
    rows.append(1)

def log(model, history, step, loss):
    {body}
"""
    with pytest.raises(NotDeferrable, match=reason):
        read(source)


PLOT = """
import matplotlib.pyplot as plt

plt.style.use("ggplot")

def log(folder, values):
    figure, axes = plt.subplots()
    axes.plot(values)
    figure.savefig(folder / "fit.png")
    plt.close(figure)
"""


def test_pyplot_only_where_all_of_it_is_in_the_function():
    assert read(PLOT).name == "log"
    with pytest.raises(NotDeferrable, match="pyplot"):
        read(PLOT + "\nplt.plot([1])\n")


def test_a_summary_writer_is_shared_and_not_copied():
    found = read("""
        def log(writer, model, step):
            for name, parameter in model.named_parameters():
                writer.add_histogram(name, parameter, step)
    """)
    assert found.shared == ("writer",)
