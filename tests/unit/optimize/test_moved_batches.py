"""What a loop copies to a device, as far as its source tells, and where it does not."""

from __future__ import annotations

import ast
import textwrap

import pytest

from unstall.optimize.batches import NotClear, innermost, is_plain, moves, scope_of, source_of


def moved(header, body, *, before="", after=""):
    """(key, device) of each copy in a loop, in a function."""
    text = f"def train(loader, device):\n    {before or 'pass'}\n    for {header}:\n"
    text += textwrap.indent(textwrap.dedent(body).strip(), " " * 8) + f"\n    {after or 'pass'}\n"
    tree = ast.parse(text)
    loop = innermost(tree, 4)
    return [(one.key, one.device) for one in moves(scope_of(tree, loop), loop)]


@pytest.mark.parametrize(
    ("header", "body", "found"),
    [
        ("x, y in loader", "x, y = x.to(device), y.to(device)\nmodel(x)", [(0, "device"), (1, "device")]),
        ("x, y in loader", "x = x.cuda(non_blocking=True)\nmodel(x, y)", [(0, '"cuda"')]),
        ("i, (x, y) in enumerate(loader)", "a = x.to(self.device)\nmodel(a, x.shape, len(x))", [(0, "self.device")]),
        ("x in loader", "x = x.to(device=device, non_blocking=True)", [(None, "device")]),
        ("batch in loader", "x = batch['image'].to('cuda:1')\nn = batch['name']", [("image", '"cuda:1"')]),
        ("batch in loader", "x, y = batch\nx, y = x.cuda(0), y.cuda(0)", [(0, "0"), (1, "0")]),
        ("batch in loader", "x, y = batch[0].to(device), batch[1].to(device)", [(0, "device"), (1, "device")]),
        ("batch in loader", "batch = [v.to(device) for v in batch]\nmodel(batch[0])", [(None, "device")]),
        ("batch in loader", "batch = {k: v.to(device) for k, v in batch.items()}", [(None, "device")]),
        ("x, y in loader", "loss = model(scaled(x.to(device, memory_format=m)))", [(0, "device")]),
    ],
)
def test_what_is_copied_once_and_used_there(header, body, found):
    assert moved(header, body) == found


@pytest.mark.parametrize(
    ("header", "body", "why"),
    [
        ("x, y in loader", "model(x)", "no part"),
        ("x, y in loader", "x = x.to(torch.float16)", "no part"),
        ("x, y in loader", "x = x.to(device, torch.float16)", "no part"),
        ("x, y in loader", "x = x.to('cpu')", "no part"),
        ("x, y in loader", "x = x.float().to(device)", "no part"),
        ("x, y in loader", "print(x.mean())\nx = x.to(device)", "before it is copied"),
        ("x, y in loader", "a = x.to(device)\nx.numpy()", "before it is copied"),
        ("x, y in loader", "x = x + 1\nx = x.to(device)", "before it is copied"),
        ("x, y in loader", "if y:\n    x = x.to(device)", "under a condition"),
        ("x, y in loader", "x = x.to(device) if y else x", "under a condition"),
        ("x, y in loader", "z = y and x.to(device)", "under a condition"),
        ("x, y in loader", "x, y = x.to(device), y.to(other_device)", "different devices"),
        ("x, y in loader", "device = y\nx = x.to(device)", "set in the loop"),
        ("batch in loader", "x = batch['image'].to(device)\nkeep(batch)", "as a whole"),
        ("batch in loader", "x = batch['image'].to(device)\nshow(batch['image'])", "before it is copied"),
        ("batch in loader", "batch['image'] = batch['image'].to(device)", "is set"),
        ("i in enumerate(loader)", "x = i[1].to(device)", "one name"),
        ("obj.x in loader", "obj.x = obj.x.to(device)", "no name"),
    ],
)
def test_where_more_is_done_it_is_left_alone(header, body, why):
    with pytest.raises(NotClear, match=why):
        moved(header, body)


def test_the_last_batch_may_be_used_after_the_loop():
    with pytest.raises(NotClear, match="after the loop"):
        moved("x, y in loader", "a = x.to(device)", after="show(x)")
    assert moved("x, y in loader", "x = x.to(device)", after="show(x)")
    assert moved("x, y in loader", "a = x.to(device)", after="for x in other: show(x)")


def test_the_innermost_loop_of_the_lines_own_function():
    tree = ast.parse(
        "for epoch in e:\n    for x in loader:\n        a(x)\n        def f():\n            b(x)\n    c()\n"
    )
    assert innermost(tree, 3).lineno == 2
    assert innermost(tree, 6).lineno == 1
    assert innermost(tree, 5) is None and innermost(tree, 1) is None


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("loader", True),
        ("self.loaders.train", True),
        ("tqdm(loader, leave=False)", True),
        ("tqdm.tqdm(loader)", True),
        ("zip(a, b)", False),
        ("iter(loader)", False),
        ("loaders[0]", False),
    ],
)
def test_what_is_iterated_from_its_beginning(source, plain):
    loop = ast.parse(f"for i, x in enumerate({source}, 1):\n    pass\n").body[0]
    assert ast.unparse(source_of(loop)) == source
    assert is_plain(source_of(loop)) is plain
