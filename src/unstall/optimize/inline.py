"""A function of the program's own put in the place of its call in a loop, so that the loop can be read as a whole."""

from __future__ import annotations

import ast
from typing import Any

import libcst as cst

from unstall.optimize import rewrite
from unstall.optimize.ahead import NotSafe
from unstall.optimize.case import Call
from unstall.optimize.purity import names

_CONTEXTS = ("torch.no_grad", "torch.inference_mode")
_SPREAD = (ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Lambda, ast.FunctionDef, ast.ClassDef,
           ast.AsyncWith, ast.AsyncFor)  # fmt: skip


def inlined(module: cst.Module, outer: Call, inner: Call) -> tuple[cst.Module, Call]:
    """(the module with ``outer``'s function in its place, where ``inner``, a call in it, now is). Raises NotSafe."""
    found = rewrite.Found(module)
    call, function = found.call(outer), found.function(inner.function, inner.line)
    statement = found.statement(call) if call is not None else None
    if call is None or function is None or not isinstance(statement, cst.SimpleStatementLine):
        raise NotSafe("the function around the model's call was not found")
    model_call = found.call(inner)
    if rewrite.name_of(call).rpartition(".")[2] != function.name.value or model_call is None:
        raise NotSafe("the function around the model's call is called by another name")
    body = _Body(found, call, function)
    lines = body.statements(statement)
    changed = rewrite.replaced(found.module, statement, cst.FlattenSentinel(lines))
    model_call = model_call.visit(_Renamed(body.renamed))  # type: ignore[assignment]
    length = sum(cst.Module([one]).code.count("\n") for one in lines)
    return changed, _found_again(changed, rewrite.code(module, model_call), length, outer)


class _Body:
    """The statements that do what a call of a function does."""

    def __init__(self, found: rewrite.Found, call: cst.Call, function: cst.FunctionDef):
        self.found, self.call, self.function = found, call, function
        self.module = found.module
        self.config = self.module.config_for_parsing
        self.renamed: dict[str, cst.BaseExpression] = {}

    def statements(self, statement: cst.SimpleStatementLine) -> list[Any]:
        """In the place of the statement that holds the call."""
        lines = self._lines()
        given = self._arguments()
        local = set(names(self.node.body, ast.Store))
        caller = self.found.around(self.call, cst.FunctionDef) or self.module
        used = {node.value for node in _all(caller) if isinstance(node, cst.Name)} | set(given)
        for name in sorted(local):
            self.renamed[name] = cst.Name(_fresh(name, used)) if name in used else cst.Name(name)
        result = _fresh("result", used | local)
        first = []
        for parameter, value in given.items():
            if isinstance(value, cst.Name) or rewrite.dotted(value):
                self.renamed[parameter] = value  # a name may stand for it: nothing sets it in between
            else:
                name = _fresh(parameter, used | local)
                self.renamed[parameter] = cst.Name(name)
                first.append(cst.parse_statement(f"{name} = {rewrite.code(self.module, value)}\n", config=self.config))
        lines = [line.visit(_Renamed(self.renamed)) for line in lines]
        lines = self._returning(lines, result)
        lines = self._in_contexts(lines)
        last = statement.deep_replace(self.call, cst.Name(result))
        if first:
            first[0] = first[0].with_changes(leading_lines=statement.leading_lines)
        return [*first, *lines, last]

    def _lines(self) -> list[Any]:
        """The function's statements without its docstring; the only return is the last of them."""
        body = self.function.body
        text = cst.Module([self.function.with_changes(leading_lines=())]).code
        node: Any = ast.parse(text).body[0]
        returns = [one for one in ast.walk(node) if isinstance(one, ast.Return)]
        spread = [one for one in ast.walk(node) if isinstance(one, _SPREAD) and one is not node]
        if not isinstance(body, cst.IndentedBlock) or len(returns) != 1 or returns[0].value is None or spread:
            raise NotSafe(f"{self.function.name.value} is more than a row of statements with a result")
        self.node = node
        lines = list(body.body)
        if ast.get_docstring(node) is not None:
            lines = lines[1:]
        return lines

    def _arguments(self) -> dict[str, cst.BaseExpression]:
        """What each parameter is given."""
        parameters = self.function.params
        wanted = [one.name.value for one in parameters.params]
        if (
            parameters.star_kwarg
            or parameters.kwonly_params
            or parameters.posonly_params
            or not isinstance(parameters.star_arg, cst.MaybeSentinel)
        ):
            raise NotSafe(f"{self.function.name.value} takes any number of arguments")
        values: dict[str, cst.BaseExpression] = {}
        is_method = isinstance(self.found.around(self.function, cst.FunctionDef, cst.ClassDef), cst.ClassDef)
        if is_method:
            receiver = self.call.func.value if isinstance(self.call.func, cst.Attribute) else None
            if receiver is None or not rewrite.dotted(receiver) or not wanted:
                raise NotSafe(f"what {self.function.name.value} belongs to has no name")
            values[wanted[0]] = receiver
        open_ones = [name for name in wanted if name not in values]
        for arg, name in zip(self.call.args, open_ones):
            if arg.star or (arg.keyword is not None and arg.keyword.value != name):
                raise NotSafe(f"the arguments of {self.function.name.value} are not in order")
            values[name] = arg.value
        if set(values) != set(wanted) or len(self.call.args) != len(open_ones):
            raise NotSafe(f"{self.function.name.value} is not given all its arguments")
        if set(wanted) & set(names(self.node.body, ast.Store)):
            raise NotSafe(f"{self.function.name.value} sets its arguments anew")
        return values

    def _returning(self, lines: list[Any], result: str) -> list[Any]:
        """The last statement's return as an assignment, in a ``with`` or not."""
        *before, last = lines
        if isinstance(last, cst.With) and isinstance(last.body, cst.IndentedBlock):
            inner = self._returning(list(last.body.body), result)
            return [*before, last.with_changes(body=last.body.with_changes(body=inner))]
        small = last.body[0] if isinstance(last, cst.SimpleStatementLine) and len(last.body) == 1 else None
        if not isinstance(small, cst.Return) or small.value is None:
            raise NotSafe(f"{self.function.name.value} does not end with its result")
        assigned = cst.Assign([cst.AssignTarget(cst.Name(result))], small.value)
        return [*before, last.with_changes(body=[assigned])]

    def _in_contexts(self, lines: list[Any]) -> list[Any]:
        """In a ``with`` for each decorator; there may be only those that set how torch computes."""
        for decorator in self.function.decorators:
            made = decorator.decorator
            if not isinstance(made, cst.Call) or rewrite.name_of(made) not in _CONTEXTS:
                raise NotSafe(f"{self.function.name.value} is decorated")
            around: Any = cst.parse_statement("with x:\n    pass\n", config=self.config)
            lines = [around.with_changes(items=[cst.WithItem(made)], body=around.body.with_changes(body=lines))]
        return lines


class _Renamed(cst.CSTTransformer):
    """Names in the place of others; attributes and keywords are none."""

    def __init__(self, names: dict[str, cst.BaseExpression]):
        self.names = names

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        return self.names.get(original_node.value, updated_node)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)


def _fresh(wanted: str, used: set[str]) -> str:
    """The name, with a number where it is used."""
    name, number = wanted, 2
    while name in used:
        name, number = f"{wanted}{number}", number + 1
    return name


def _all(node: cst.CSTNode) -> list[cst.CSTNode]:
    found = [node]
    for one in node.children:
        found += _all(one)
    return found


def _found_again(module: cst.Module, code: str, length: int, outer: Call) -> Call:
    """The only call of this source among the lines that now stand where ``outer`` stood."""
    wanted = ast.unparse(ast.parse(code, mode="eval"))
    candidates = [
        node
        for node in ast.walk(ast.parse(module.code))
        if isinstance(node, ast.Call)
        and outer.line <= node.lineno <= outer.line + length
        and ast.unparse(node) == wanted
    ]
    if len(candidates) != 1:
        raise NotSafe(f"line {outer.line}: the model's call was not found again")
    node = candidates[0]
    span = (node.lineno, node.end_lineno or node.lineno, node.col_offset, node.end_col_offset or 0)
    return Call(outer.file, node.lineno, outer.function, span)
