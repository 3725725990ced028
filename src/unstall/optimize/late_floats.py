"""The end of a sample's making that makes floats of bytes, element by element: what it computes, and what is left then.

``torch.from_numpy(image).float() / 255`` gives of each element the same whether it is done for one sample or for a
whole batch. So does what is often done next, ``(x - MEAN) / STD`` with constants of the module: they meet the last
dimensions of a batch as they met those of the sample.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from unstall.optimize.batches import Key, NotClear
from unstall.optimize.bindings import dotted, names_made
from unstall.optimize.purity import may_differ
from unstall.optimize.purity import names as names_of

_SINGLE = ("torch.float32", "torch.float", "np.float32", "'float32'")
_CASTS = ("to", "type", "astype")
_OPERATORS = {ast.Div: "/", ast.Mult: "*", ast.Sub: "-", ast.Add: "+"}
_METHODS = {"div": "/", "true_divide": "/", "divide": "/", "mul": "*", "multiply": "*", "sub": "-", "subtract": "-",
            "add": "+"}  # fmt: skip
_SHAPES = ("permute", "transpose", "swapaxes", "unsqueeze", "squeeze", "contiguous", "reshape", "view")
_AROUND = ("torch.from_numpy", "torch.as_tensor", "torch.tensor", "np.ascontiguousarray", "np.transpose",
           "np.moveaxis", "np.expand_dims")  # fmt: skip
_ARRAYS = ("np.array", "np.asarray")
_OF_CONSTANTS = ("view", "reshape", "unsqueeze", "float")


@dataclass(frozen=True)
class Step:
    """One operation on each element."""

    operator: str
    """``float``, or one of + - * /."""
    constant: str = ""
    """The right side, as source."""
    scalar: bool = True
    """Whether that is one number."""


@dataclass(frozen=True)
class Edit:
    """One expression's source in the place of another's; a statement without source is taken away."""

    node: ast.expr | ast.stmt
    source: str


@dataclass(frozen=True)
class LateFloats:
    """What may be done for the whole batch."""

    cls: str
    key: Key | None
    """Which part of the sample; None when it is all of it."""
    parts: int
    """Parts of the sample."""
    steps: tuple[Step, ...]
    edits: tuple[Edit, ...]
    """What makes the sample's part without them."""
    lines: tuple[int, int]
    """First and last of these."""

    def applied_to(self, name: str) -> str:
        """The steps as one expression of torch on a tensor of this name."""
        text, last = name, ""
        for step in self.steps:
            if step.operator == "float":
                text, last = f"({text}).float()" if last else f"{text}.float()", ""
                continue
            array = f"torch.as_tensor({step.constant}).to({name}.device, non_blocking=True)"  # else the host would wait
            right = step.constant if step.scalar else array
            left = f"({text})" if last in ("+", "-") and step.operator in "*/" else text
            text, last = f"{left} {step.operator} {right}", step.operator
        return text


def find(text: str, line: int) -> LateFloats:
    """The floats made last in the ``__getitem__`` that begins on a line. Raises NotClear."""
    tree = ast.parse(text)
    cls, method = _method(tree, line)
    last = method.body[-1]
    returns = [node for node in ast.walk(method) if isinstance(node, ast.Return)]
    if len(returns) != 1 or returns[0] is not last or returns[0].value is None:
        raise NotClear(f"{cls.name}.{method.name} returns from several places")
    reader = _Reader(text, tree, method)
    parts = list(_parts(returns[0].value))
    for key, part in parts:
        late = reader.of_part(part)
        if late is not None:
            steps, edits = late
            lines = [one.node.lineno for one in edits], [one.node.end_lineno or one.node.lineno for one in edits]
            return LateFloats(cls.name, key, len(parts), steps, edits, (min(lines[0]), max(lines[1])))
    raise NotClear(f"{cls.name}.{method.name} does not end by making floats of bytes")


def _method(tree: ast.Module, line: int) -> tuple[ast.ClassDef, ast.FunctionDef]:
    """``__getitem__``, or the method that makes the samples that it keeps."""
    for cls in tree.body:
        for method in cls.body if isinstance(cls, ast.ClassDef) else []:
            if isinstance(method, ast.FunctionDef) and method.name == "__getitem__" and method.lineno == line:
                assert isinstance(cls, ast.ClassDef)
                maker = next(
                    (one for one in cls.body if isinstance(one, ast.FunctionDef) and one.name == "_load_sample"), None
                )
                keeps = len(method.body) == 1 and "self._load_sample" in ast.unparse(method.body[0])
                return cls, (maker if maker is not None and keeps else method)
    raise NotClear("the dataset's class was not found at the top of its file")


def _parts(value: ast.expr) -> Iterator[tuple[Key | None, ast.expr]]:
    """The sample's parts with their places or names in it."""
    if isinstance(value, (ast.Tuple, ast.List)):
        yield from enumerate(value.elts)
    elif isinstance(value, ast.Dict):
        for key, part in zip(value.keys, value.values):
            if isinstance(key, ast.Constant) and isinstance(key.value, (str, int)):
                yield key.value, part
    else:
        yield None, value


@dataclass(frozen=True)
class _Chain:
    """An expression: what is left of it without the steps, and the steps, first to last."""

    left: str
    leaf: ast.expr
    """What the steps begin with."""
    steps: tuple[Step, ...] = ()
    is_wrapped: bool = False
    """Whether the elements are brought into another form on the way."""
    is_tensor: bool = False


class _Reader:
    """Reads one method from its end."""

    def __init__(self, text: str, tree: ast.Module, method: ast.FunctionDef):
        self.text = text
        self.method = method
        self.local = names_made(method) | {one.arg for one in method.args.args}
        self.constants = dict(_constants(tree))
        self.modules = {alias.asname or alias.name: alias.name for node in tree.body if isinstance(node, ast.Import)
                        for alias in node.names}  # fmt: skip
        self.numpy = next((name for name, module in self.modules.items() if module == "numpy"), None)

    def of_part(self, part: ast.expr) -> tuple[tuple[Step, ...], tuple[Edit, ...]] | None:
        """The steps that make a part, and what takes them away; None when it does not end in such steps.

        It goes back from the sample over the statements that make it, and takes as many as begin with whole numbers.
        """
        chain = self._chain(part)
        chains = [chain]
        seen: list[ast.AST] = [part]
        edits = [Edit(part, chain.left)] if chain.steps else []
        found = self._so_far(chains, edits, seen)
        for statement in reversed(self.method.body[:-1]):
            if not isinstance(chain.leaf, ast.Name):
                break
            if not _mentions(statement, chain.leaf.id):
                continue
            own = self._statement(statement, chain.leaf.id)
            if own is None or (any(one.is_wrapped for one in chains) and not _are_scalar([own[0]])):
                break
            chain, edit = own
            chains.insert(0, chain)
            seen.append(statement)
            edits += [edit] if edit is not None else []
            found = self._so_far(chains, edits, seen) or found
        return found

    def _so_far(
        self, chains: Sequence[_Chain], edits: Sequence[Edit], seen: Sequence[ast.AST]
    ) -> tuple[tuple[Step, ...], tuple[Edit, ...]] | None:
        """What was read, where it makes floats of whole numbers and scales them."""
        steps = _from_floats(chains)
        scales = any(step.operator != "float" for step in steps)
        return (steps, tuple(edits)) if scales and self._only_here(edits, seen) else None

    def _statement(self, statement: ast.stmt, name: str) -> tuple[_Chain, Edit | None] | None:
        """One statement that sets a name by steps alone; None when it does more."""
        if isinstance(statement, ast.AugAssign) and dotted(statement.target) == name:
            operator = _OPERATORS.get(type(statement.op))
            step = self._step(operator, statement.value) if operator else None
            same = ast.Name(name, ast.Load())
            return None if step is None else (_Chain(name, same, (step,)), Edit(statement, ""))
        if not isinstance(statement, ast.Assign) or [dotted(one) for one in statement.targets] != [name]:
            return None
        chain = self._chain(statement.value)
        if not chain.steps:
            return chain, None
        return chain, Edit(statement, "") if chain.left == name else Edit(statement.value, chain.left)

    def _only_here(self, edits: Sequence[Edit], seen: Sequence[ast.AST]) -> bool:
        """Whether nothing but the steps and the sample itself sees what they make."""
        first = min(edit.node.lineno for edit in edits)
        within = {id(node) for one in seen for node in ast.walk(one)}
        made = {name for one in seen for name in names_of([one], ast.Store)}
        return not any(
            isinstance(node, ast.Name) and node.id in made and isinstance(node.ctx, ast.Load)
            and node.lineno >= first and id(node) not in within
            for node in ast.walk(self.method)
        )  # fmt: skip

    # ------------------------------------------------------------------ one expression

    def _chain(self, node: ast.expr) -> _Chain:
        """An expression taken apart, as far as it is steps."""
        if isinstance(node, ast.BinOp):
            return self._operation(node) or self._leaf(node)
        if isinstance(node, ast.Call) and not any(isinstance(one, ast.Starred) for one in node.args):
            return self._call(node) or self._leaf(node)
        return self._leaf(node)

    def _leaf(self, node: ast.expr) -> _Chain:
        return _Chain(self._source(node), node)

    def _operation(self, node: ast.BinOp) -> _Chain | None:
        operator = _OPERATORS.get(type(node.op))
        if operator is None:
            return None
        step = self._step(operator, node.right)
        if step is not None:
            return self._then(self._chain(node.left), step)
        step = self._step(operator, node.left) if operator in "*+" else None
        return None if step is None else self._then(self._chain(node.right), step)

    def _call(self, call: ast.Call) -> _Chain | None:
        name = self._name(call.func)
        if name in _AROUND and call.args:
            return self._around(call, name)
        if name in _ARRAYS and call.args:
            types = [*call.args[1:], *(one.value for one in call.keywords if one.arg == "dtype")]
            only = len(types) == 1 and len(call.args) + len(call.keywords) == 2
            return self._as_single(call.args[0], of_numpy=True) if only and self._name(types[0]) in _SINGLE else None
        if name == "np.float32" and len(call.args) == 1 and not call.keywords:
            return self._as_single(call.args[0], of_numpy=True)
        if not isinstance(call.func, ast.Attribute):
            return None
        method, inner = call.func.attr, call.func.value
        if method == "float" and not call.args and not call.keywords:
            return self._as_single(inner)
        if method in _CASTS:
            types = [*call.args, *(one.value for one in call.keywords if one.arg == "dtype")]
            if len(types) != 1 or len(call.args) + len(call.keywords) != 1 or self._name(types[0]) not in _SINGLE:
                return None
            return self._as_single(inner, of_numpy=method == "astype")
        operator = _METHODS.get(method.removesuffix("_"))
        if operator and len(call.args) == 1 and not call.keywords:
            step = self._step(operator, call.args[0])
            return None if step is None else self._then(self._chain(inner), step)
        if method in _SHAPES and not call.keywords and all(map(_is_literal, call.args)):
            chain = self._chain(inner)
            arguments = ", ".join(self._source(one) for one in call.args)
            return self._shaped(chain, f"{_atom(chain.left)}.{method}({arguments})")
        return None

    def _around(self, call: ast.Call, name: str) -> _Chain | None:
        """``torch.from_numpy(x)`` and other calls that make the same elements of another form."""
        types = [one.value for one in call.keywords if one.arg == "dtype"]
        if len(types) != len(call.keywords) or not all(map(_is_literal, call.args[1:])):
            return None
        chain = self._chain(call.args[0])
        left = chain.left
        if name == "torch.from_numpy" and chain.steps:
            left = self._new_array(left)
        others = "".join(f", {self._source(one)}" for one in call.args[1:])
        made = self._shaped(chain, f"{self._source(call.func)}({left}{others})")
        if made is not None and name.startswith("torch.") and not chain.steps:
            made = replace(made, is_tensor=True)
        if not types or made is None:
            return made
        return self._then(made, Step("float")) if self._name(types[0]) in _SINGLE else None

    def _shaped(self, chain: _Chain, left: str) -> _Chain | None:
        """Another form of what is left; after steps with arrays it would meet them in other dimensions."""
        return replace(chain, left=left, is_wrapped=True) if _are_scalar([chain]) else None

    def _as_single(self, node: ast.expr, *, of_numpy: bool = False) -> _Chain:
        chain = self._chain(node)
        if of_numpy:
            chain = replace(chain, left=self._new_array(chain.left))
        return self._then(chain, Step("float"))

    def _new_array(self, left: str) -> str:
        """As arithmetic and astype do, it makes a new array: its strides are positive, and it may be written to."""
        node = ast.parse(left.strip(), mode="eval").body
        is_new = isinstance(node, ast.Call) and self._name(node.func) == "np.array"
        return left if self.numpy is None or is_new else f"{self.numpy}.array({left})"

    def _then(self, chain: _Chain, step: Step) -> _Chain:
        of_numpy = isinstance(chain.leaf, ast.Call) and self._name(chain.leaf.func) == "np.asarray"
        if of_numpy and not chain.steps:
            chain = replace(chain, left=self._new_array(chain.left))
        return replace(chain, steps=(*chain.steps, step))

    def _step(self, operator: str, right: ast.expr) -> Step | None:
        """An operation with a constant; None when the right side is none."""
        if _is_number(right):
            return Step(
                operator, self._source(right) if not isinstance(right, ast.BinOp) else f"({self._source(right)})"
            )
        if isinstance(right, ast.Name) and right.id not in self.local and _is_number(self.constants.get(right.id)):
            return Step(operator, right.id)
        return Step(operator, self._source(right), scalar=False) if self._is_array(right) else None

    def _is_array(self, node: ast.expr | None) -> bool:
        """An array or a tensor of constants: of a name that is set once, or written out."""
        if isinstance(node, ast.Name):
            return node.id not in self.local and self._is_array(self.constants.get(node.id))
        if isinstance(node, ast.Subscript):
            return self._is_array(node.value) and _is_literal(node.slice)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return False
        name = self._name(node.func)
        given = [*node.args, *(one.value for one in node.keywords if one.arg != "dtype")]
        if not all(_is_literal(one) or self._name(one) in _SINGLE for one in given) or may_differ(name):
            return False
        return name.startswith(("torch.", "np.")) or (
            node.func.attr in _OF_CONSTANTS and self._is_array(node.func.value)
        )

    def _name(self, node: ast.expr) -> str:
        """The dotted name, with NumPy as ``np`` whatever the file calls it; of a text, the text in quotes."""
        if isinstance(node, ast.Constant):
            return repr(node.value)
        first, dot, rest = dotted(node).partition(".")
        return f"np{dot}{rest}" if self.modules.get(first) == "numpy" else f"{first}{dot}{rest}"

    def _source(self, node: ast.expr) -> str:
        return ast.get_source_segment(self.text, node) or ast.unparse(node)


def _are_scalar(chains: Sequence[_Chain]) -> bool:
    return all(step.scalar for chain in chains for step in chain.steps)


def _from_floats(chains: Sequence[_Chain]) -> tuple[Step, ...]:
    """All the steps, from the one that makes floats of the elements; none where that is not to be seen.

    NumPy divides whole numbers in double precision: where the quotient is made single later on, it is made so first,
    which differs in the last bit at most.
    """
    steps = tuple(step for chain in chains for step in chain.steps)
    if not steps or steps[0].operator == "float":
        return steps
    first = next(number for number, chain in enumerate(chains) if chain.steps)
    if steps[0].operator == "/" and any(chain.is_tensor for chain in chains[: first + 1]):
        return steps
    cast = Step("float")
    return (cast, *(one for one in steps if one != cast)) if steps[0].operator == "/" and cast in steps else ()


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Names that the module sets once, at its top, and what to."""
    stores = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Name) and stores.count(target.id) == 1:
                yield target.id, statement.value


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node))


def _is_number(node: ast.expr | None) -> bool:
    """A number, or arithmetic of numbers."""
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool)


def _is_literal(node: ast.expr) -> bool:
    """Numbers, None, slices and tuples or lists of them."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(map(_is_literal, node.elts))
    if isinstance(node, ast.Slice):
        return all(one is None or _is_literal(one) for one in (node.lower, node.upper, node.step))
    return _is_number(node) or (isinstance(node, ast.Constant) and node.value in (None, Ellipsis))


def _atom(source: str) -> str:
    """The source of an expression, so that a method may be called on it."""
    node = ast.parse(source.strip(), mode="eval").body
    return source if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) else f"({source})"
