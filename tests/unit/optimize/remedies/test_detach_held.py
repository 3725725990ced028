"""What is held from step to step without its graph, and only where nothing goes backward through it."""

from __future__ import annotations

import pytest

from unstall.optimize.remedies.detach_held import with_detached
from unstall.optimize.sources import SourceError, Sources

LOOP = """import torch


def train(model, batches, optimizer):
    total, losses, kept = 0.0, [], dict()
    for step, x in enumerate(batches):
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        {line}  # for the report
    return total / len(batches), losses


def main(model):
    loss, _ = train(model, [1], None)
    print(loss)
"""


def changed(tmp_path, text, line=10):
    path = tmp_path / "train.py"
    path.write_text(text)
    return with_detached(Sources(), path, line).bytes_of(path).decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("losses.append(loss)", "losses.append(loss.detach())"),
        ("total += loss", "total += loss.detach()"),
        ("total += loss.item() if step else loss", "total += loss.item() if step else loss.detach()"),
        ("total += loss * len(x)", "total += (loss * len(x)).detach()"),
        ("total = total + loss", "total = total + loss.detach()"),
        ("total = loss + total", "total = loss.detach() + total"),
        ("kept[step] = loss", "kept[step] = loss.detach()"),
        ("kept.losses.insert(0, model(x))", "kept.losses.insert(0, model(x).detach())"),
    ],
)
def test_only_what_is_held_is_detached(tmp_path, before, after):
    text = LOOP.replace("{line}", before)
    assert changed(tmp_path, text) == LOOP.replace("{line}", after)


@pytest.mark.parametrize(
    "before", ["losses.append((loss, x))", "print(loss)", "losses = [loss]", "total += loss.item()", "total *= loss"]
)
def test_what_is_not_known_is_left_alone(tmp_path, before):
    with pytest.raises(SourceError, match="in a way that is known"):
        changed(tmp_path, LOOP.replace("{line}", before))


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("total += loss", "total.backward()"),
        ("losses.append(loss)", "torch.stack(losses).sum().backward()"),
        ("losses.append(loss)", "mean = sum(losses)\n    half = mean / 2\n    half.backward()"),
        ("losses.append(loss)", "torch.autograd.grad(losses[0], x)"),
        ("self.losses.append(loss)", "torch.autograd.backward([one for one in self.losses])"),
    ],
)
def test_what_is_gone_backward_through_keeps_its_graph(tmp_path, line, after):
    text = LOOP.replace("{line}", line).replace("    return total", f"    {after}\n    return total")
    with pytest.raises(SourceError, match="backward"):
        changed(tmp_path, text)


def test_what_a_function_gives_back_is_followed(tmp_path):
    text = LOOP.replace("{line}", "losses.append(loss)").replace("print(loss)", "_.backward()")
    with pytest.raises(SourceError, match="line 16"):
        changed(tmp_path, text)
