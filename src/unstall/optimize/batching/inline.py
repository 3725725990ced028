"""A function of the program's own put in the place of its call in a loop, so that the loop can be read as a whole."""

from __future__ import annotations

from typing import Any

import libcst as cst
from libcst.metadata import ExpressionContext

from unstall.optimize.source.edit import fresh_name, replaced, statement
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule, dotted
from unstall.optimize.source.places import CallSite
from unstall.optimize.source.purity import names

_CONTEXTS = ("torch.no_grad", "torch.inference_mode")
_SPREAD = (cst.Yield, cst.Await, cst.Global, cst.Nonlocal, cst.Lambda, cst.FunctionDef, cst.ClassDef)
"""What makes of a function more than a row of statements."""


def inlined(module: SourceModule, outer: CallSite, inner: CallSite) -> tuple[cst.Module, CallSite]:
    """(the tree with ``outer``'s function in its place, where ``inner``, a call in it, now is).

    Raises AnalysisRefused where the function does more than its statements show.
    """
    call, function, model_call = module.call(outer), module.function(inner.function, inner.line), module.call(inner)
    if call is None or function is None or model_call is None:
        raise AnalysisRefused("the interpreter does not know the columns of the call")
    if dotted(call.func).rpartition(".")[2] != function.name.value:
        raise AnalysisRefused("the function around the model's call is called by another name")
    line = module.statement(call)
    if not isinstance(line, cst.SimpleStatementLine):
        raise AnalysisRefused(f"{function.name.value} is called in the head of a block")
    body = _Body(module, call, function, model_call)
    changed = SourceModule(replaced(module.tree, line, *body.statements(line)))
    return changed.tree, changed.site(body.moved, outer)


class _Body:
    """The statements that do what a call of a function does."""

    def __init__(self, module: SourceModule, call: cst.Call, function: cst.FunctionDef, model_call: cst.Call):
        self.module, self.call, self.function, self.model_call = module, call, function, model_call
        self.moved = model_call
        """The call of the model where it is now."""
        self.name = function.name.value
        self.local = set(names(module, [function.body], ExpressionContext.STORE))

    def statements(self, line: cst.SimpleStatementLine) -> list[Any]:
        """In the place of the statement that holds the call."""
        lines = self._lines()
        given = self._arguments()
        caller = self.module.enclosing(self.call, cst.FunctionDef) or self.module.tree
        used = {node.value for node in self.module.inside(caller) if isinstance(node, cst.Name)} | set(given)
        renamed: dict[str, cst.BaseExpression] = {}
        for name in sorted(self.local):
            renamed[name] = cst.Name(fresh_name(name, used)) if name in used else cst.Name(name)
        result = fresh_name("result", used | self.local)
        first = []
        for parameter, value in given.items():
            if dotted(value):
                renamed[parameter] = value  # a name may stand for it: nothing sets it in between
            else:
                name = fresh_name(parameter, used | self.local)
                renamed[parameter] = cst.Name(name)
                first.append(statement(self.module.tree, f"{name} = {self.module.code(value)}"))
        renaming = _Renamed(renamed, self.model_call)
        lines = [one.visit(renaming) for one in lines]
        self.moved = renaming.moved
        lines = self._in_contexts(self._returning(lines, result))
        last = line.deep_replace(self.call, cst.Name(result))
        if first:
            first[0] = first[0].with_changes(leading_lines=line.leading_lines)
        return [*first, *lines, last]

    def _lines(self) -> list[Any]:
        """The function's statements without its docstring; the only return is the last of them."""
        body = self.function.body
        inside = self.module.inside(body)
        returns = [one for one in inside if isinstance(one, cst.Return)]
        spread = any(
            isinstance(one, _SPREAD) or (isinstance(one, (cst.For, cst.With)) and one.asynchronous is not None)
            for one in inside
        )
        if not isinstance(body, cst.IndentedBlock) or len(returns) != 1 or returns[0].value is None or spread:
            raise AnalysisRefused(f"{self.name} is more than a row of statements with a result")
        return list(body.body)[int(self.function.get_docstring() is not None) :]

    def _arguments(self) -> dict[str, cst.BaseExpression]:
        """What each parameter is given."""
        params = self.function.params
        wanted = [one.name.value for one in params.params]
        plain = not (params.star_kwarg or params.kwonly_params or params.posonly_params)
        if not plain or not isinstance(params.star_arg, cst.MaybeSentinel):
            raise AnalysisRefused(f"{self.name} takes any number of arguments")
        values: dict[str, cst.BaseExpression] = {}
        if isinstance(self.module.enclosing(self.function, cst.FunctionDef, cst.ClassDef), cst.ClassDef):
            receiver = self.call.func.value if isinstance(self.call.func, cst.Attribute) else None
            if receiver is None or not dotted(receiver) or not wanted:
                raise AnalysisRefused(f"what {self.name} belongs to has no name")
            values[wanted[0]] = receiver
        open_ones = [name for name in wanted if name not in values]
        for arg, name in zip(self.call.args, open_ones):
            if arg.star or (arg.keyword is not None and arg.keyword.value != name):
                raise AnalysisRefused(f"the arguments of {self.name} are not in order")
            values[name] = arg.value
        if set(values) != set(wanted) or len(self.call.args) != len(open_ones):
            raise AnalysisRefused(f"{self.name} is not given all its arguments")
        if set(wanted) & self.local:
            raise AnalysisRefused(f"{self.name} sets its arguments anew")
        return values

    def _returning(self, lines: list[Any], result: str) -> list[Any]:
        """The last statement's return as an assignment, in a ``with`` or not."""
        *before, last = lines
        if isinstance(last, cst.With) and isinstance(last.body, cst.IndentedBlock):
            inner = self._returning(list(last.body.body), result)
            return [*before, last.with_changes(body=last.body.with_changes(body=inner))]
        small = last.body[0] if isinstance(last, cst.SimpleStatementLine) and len(last.body) == 1 else None
        if not isinstance(small, cst.Return) or small.value is None:
            raise AnalysisRefused(f"{self.name} does not end with its result")
        assigned = cst.Assign([cst.AssignTarget(cst.Name(result))], small.value)
        return [*before, last.with_changes(body=[assigned])]

    def _in_contexts(self, lines: list[Any]) -> list[Any]:
        """In a ``with`` for each decorator; there may be only those that set how torch computes."""
        for decorator in self.function.decorators:
            made = decorator.decorator
            if not isinstance(made, cst.Call) or self.module.name(made) not in _CONTEXTS:
                raise AnalysisRefused(f"{self.name} is decorated")
            around = statement(self.module.tree, "with x:\n    pass\n")
            lines = [around.with_changes(items=[cst.WithItem(made)], body=around.body.with_changes(body=lines))]
        return lines


class _Renamed(cst.CSTTransformer):
    """Expressions in the place of names; attributes and keywords are none. Follows one call to where it is then."""

    def __init__(self, names: dict[str, cst.BaseExpression], followed: cst.Call):
        super().__init__()
        self.names, self.followed = names, followed
        self.moved = followed

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        return self.names.get(original_node.value, updated_node)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        if original_node is self.followed:
            self.moved = updated_node
        return updated_node
