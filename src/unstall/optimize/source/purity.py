"""What gives the same every time it is computed, and does nothing else: a reading of the source.

It is checked by running the program: what is kept or remembered is computed again and compared.
"""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst
from libcst.metadata import Assignment, ComprehensionScope, ExpressionContext, FunctionScope

from unstall.optimize.source.bindings import changes_in_place, changing_name
from unstall.optimize.source.effects import Effect, effect_of, may_differ
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import SourceModule, dotted, method_name
from unstall.optimize.thresholds import PURE_DEPTH

_HAS_EFFECT = (cst.Global, cst.Nonlocal, cst.Yield, cst.Await, cst.Del)


class Steadiness:
    """Judges statements of one class's methods, or of a function where ``cls`` is None, in one module."""

    def __init__(self, module: SourceModule, cls: cst.ClassDef | None):
        self.module, self.cls = module, cls
        self.set_attributes: set[str] = set()
        """Attributes of ``self`` that the statements judged so far set."""
        self.read_attributes: set[str] = set()
        """Attributes of ``self`` that they read, in the methods that they call too."""

    def check(self, node: cst.CSTNode) -> None:
        """Raise AnalysisRefused unless a statement computes the same on every visit, as far as the source shows."""
        self._check(node, 0)

    def _check(self, node: cst.CSTNode, depth: int) -> None:
        self.read_attributes |= attributes_read(self.module, [node])
        for inner in self.module.inside(node):
            if isinstance(inner, _HAS_EFFECT):
                self._refuse(inner, "has an effect")
            if self.module.context(inner) is ExpressionContext.STORE and not self._may_be_set(inner):
                self._refuse(inner, "changes something outside")
            if isinstance(inner, cst.Call):
                self._check_call(inner, depth)

    def _may_be_set(self, target: cst.CSTNode) -> bool:
        """Attributes of self may be set (a file opened once); anything else that is not a local name may not."""
        if isinstance(target, cst.Attribute):
            if dotted(target.value) != "self":
                return False
            self.set_attributes.add(target.attr.value)
        elif isinstance(target, cst.Subscript):
            root: cst.CSTNode = target
            while isinstance(root, (cst.Subscript, cst.Attribute)):
                root = root.value
            return isinstance(root, cst.Name) and root.value != "self" and self._is_local(root)
        return True

    def _check_call(self, call: cst.Call, depth: int) -> None:
        name, spelled = self.module.name(call), dotted(call.func)
        method = method_name(call)
        if may_differ(name or f".{method}"):
            self._refuse(call, f"calls {spelled or method}, which may differ every time")
        head, _, last = spelled.rpartition(".")
        if head == "self":
            function = self._method(last)
            if function is None:
                self._refuse(call, f"calls self.{last}, which is not known before the program runs")
            else:
                self._check_body(call, function, depth)
        elif head.startswith("self.") and effect_of(f".{last}") & (Effect.MUTATES | Effect.ACTS):
            self._refuse(call, f"calls {spelled}, which changes {head}")
        elif isinstance(call.func, cst.Name):
            self._check_function(call, call.func, depth)

    def _check_function(self, call: cst.Call, name: cst.Name, depth: int) -> None:
        if self._is_local(name):
            if not all(isinstance(binding, Assignment) and isinstance(binding.node, cst.FunctionDef)
                       for binding in self.module.bindings(name)):  # fmt: skip
                self._refuse(call, f"calls {name.value}, a variable")
            return  # a function of the statements themselves, which are judged as a whole
        function = self.module.top_level(cst.FunctionDef, name.value)
        if function is not None:
            self._check_body(call, function, depth)
        elif effect_of(f"builtins.{name.value}") & Effect.ACTS:
            self._refuse(call, f"calls {name.value}")

    def _check_body(self, call: cst.Call, function: cst.FunctionDef, depth: int) -> None:
        if depth >= PURE_DEPTH:
            self._refuse(call, "calls too deep to follow")
        self._check(function.body, depth + 1)

    def _is_local(self, name: cst.Name) -> bool:
        """Whether a name is bound in a function, by it or for it."""
        bound = self.module.bindings(name)
        return any(
            isinstance(binding, Assignment) and isinstance(binding.scope, (FunctionScope, ComprehensionScope))
            for binding in bound
        )

    def _method(self, name: str) -> cst.FunctionDef | None:
        return method_of(self.cls, name) if self.cls is not None else None

    def _refuse(self, node: cst.CSTNode, reason: str) -> None:
        raise AnalysisRefused(f"line {self.module.first_line(node)} {reason}")

    def changing_attributes(self) -> set[str]:
        """Attributes that are set anywhere in the module but in the class's ``__init__``: they may change."""
        init = self._method("__init__")
        own = set(self.module.inside(init)) if init is not None else set()
        return {
            node.attr.value
            for node in self.module.all(cst.Attribute)
            if is_stored(self.module, node) and node not in own and not self._is_of_other_class(node)
        }

    def _is_of_other_class(self, node: cst.Attribute) -> bool:
        """Whether it is an attribute of ``self`` in a class that has nothing to do with this one."""
        around = self.module.enclosing(node, cst.ClassDef)
        if dotted(node.value) != "self" or around is None or self.cls is None or around is self.cls:
            return False
        related = {dotted(base.value) for cls in (self.cls, around) for base in cls.bases}
        return not related & {self.cls.name.value, around.name.value}


def impurity(module: SourceModule, function: cst.FunctionDef) -> str | None:
    """Why a function may not be remembered; None when it may, as far as the source shows."""
    cls = module.enclosing(function, cst.ClassDef, cst.FunctionDef)
    cls = cls if isinstance(cls, cst.ClassDef) else None
    params = function.params
    starred = isinstance(params.star_arg, cst.Param) or params.star_kwarg is not None
    if function.decorators or starred or function.name.value.startswith("__"):
        return "it is decorated, special, or takes any number of arguments"
    if cls is not None and is_model(module, cls):
        return "it belongs to a model"
    if cls is not None and method_of(cls, "__eq__") is not None and method_of(cls, "__hash__") is None:
        return f"a {cls.name.value} cannot be looked up: it has __eq__ and no __hash__"
    steadiness = Steadiness(module, cls)
    try:
        steadiness.check(function.body)
    except AnalysisRefused as reason:
        return str(reason)
    if steadiness.set_attributes:
        return "it sets attributes"
    inside = module.inside(function.body)
    if not any(isinstance(node, cst.Return) and node.value is not None for node in inside):
        return "it returns nothing"
    effect = _object_at_hand(module, function, inside) or _change_or_stream(module, inside)
    if effect is not None:
        return effect
    outer = changing_name(module, function)
    if outer is not None:
        return f"it reads {outer}, which may be something else another time"
    if cls is not None and steadiness.read_attributes & steadiness.changing_attributes():
        return "it reads what other methods change"
    return None


def _object_at_hand(module: SourceModule, function: cst.FunctionDef, inside: Iterable[cst.CSTNode]) -> str | None:
    """An argument that has attributes other than those of strings, or a class that is called: objects may change."""
    arguments = {param.name.value for param in (*function.params.params, *function.params.kwonly_params)} - {"self"}
    for node in inside:
        of = node.value if isinstance(node, cst.Attribute) and not hasattr(str, node.attr.value) else None
        if isinstance(of, cst.Name) and of.value in arguments:
            return f"{of.value} is more than a plain value"
        if isinstance(node, cst.Call) and not isinstance(module.parent(node), cst.Raise):
            last = dotted(node.func).rpartition(".")[2]
            is_value = effect_of(module.name(node)) & Effect.VALUE
            if last[:1].isupper() and not last.isupper() and not is_value:
                return f"it makes a {last}, which may change"
    return None


def _change_or_stream(module: SourceModule, inside: Iterable[cst.CSTNode]) -> str | None:
    """What the function changes in place, other than what it made itself; what it takes from a file or a stream."""
    inside = list(inside)
    fresh = {node.value for node in inside if isinstance(node, cst.Name) and is_stored(module, node)}
    for node in inside:
        if isinstance(node, cst.Name) and node.value not in fresh and changes_in_place(module, node):
            return f"it changes {node.value}"
        if isinstance(node, cst.Call) and module.name(node) in ("builtins.open", "builtins.next"):
            return f"it calls {dotted(node.func)}"
    return None


def is_stored(module: SourceModule, node: cst.CSTNode) -> bool:
    """Whether a name, an attribute or an item is set where it stands."""
    return module.context(node) is ExpressionContext.STORE


def is_model(module: SourceModule, cls: cst.ClassDef) -> bool:
    """Whether a class is one of torch's modules, by the names of its bases."""
    return any("Module" in module.name(base.value) for base in cls.bases)


def method_of(cls: cst.ClassDef, name: str) -> cst.FunctionDef | None:
    """A method that a class defines itself."""
    return next(
        (member for member in cls.body.body if isinstance(member, cst.FunctionDef) and member.name.value == name), None
    )


def attributes_read(module: SourceModule, nodes: Iterable[cst.CSTNode]) -> set[str]:
    """Attributes of ``self`` that are read in these nodes."""
    return {
        inner.attr.value
        for node in nodes
        for inner in module.inside(node)
        if isinstance(inner, cst.Attribute) and dotted(inner.value) == "self"
        and module.context(inner) is ExpressionContext.LOAD
    }  # fmt: skip


def is_of_comprehension(module: SourceModule, node: cst.BaseExpression) -> bool:
    """Whether a name, or what an attribute is asked of, is bound by a comprehension around it."""
    name: cst.CSTNode = node
    while isinstance(name, cst.Attribute):
        name = name.value
    return isinstance(name, cst.Name) and bool(module.bindings(name)) and binds_in_comprehensions(module, name)


def binds_in_comprehensions(module: SourceModule, name: cst.Name) -> bool:
    """Whether nothing but comprehensions binds a name where it stands; of one that nothing binds, too."""
    return all(isinstance(bound.scope, ComprehensionScope) for bound in module.bindings(name))


def names(module: SourceModule, nodes: Iterable[cst.CSTNode], context: ExpressionContext) -> list[str]:
    """Names that are loaded or stored in these nodes, in order of appearance; not those of comprehensions alone."""
    present = (
        inner.value
        for node in nodes
        for inner in module.inside(node)
        if isinstance(inner, cst.Name) and module.context(inner) is context
        and not binds_in_comprehensions(module, inner)
    )  # fmt: skip
    return list(dict.fromkeys(present))
