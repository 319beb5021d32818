"""Which models hold a LayerNorm, and normalisations that are written out by hand."""

# ruff: noqa: SIM102  (nested tests read as patterns)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Ref, Scope, last_name, strip_module_calls
from deploychain.audit.symbols import Symbols
from deploychain.audit.tree import walk
from deploychain.audit.values import words

_LAYERS = words(
    "LayerNorm layer_norm TransformerEncoderLayer TransformerDecoderLayer TransformerEncoder TransformerDecoder "
    "Transformer FusedLayerNorm LayerNorm2d native_layer_norm"
)
# Architectures of timm, torchvision, transformers and open_clip that normalise with LayerNorm.
_ARCHITECTURE = re.compile(
    r"(?i)(^|[/_.-])(vit|deit|swin|convnext|beit|eva|cait|mixer|xcit|pvt|twins|maxvit|coatnet|mobilevit|dinov?2|clip|siglip|"
    r"bert|distilbert|roberta|albert|electra|deberta|mpnet|minilm|xlm|gpt2?|opt|bart|whisper|wav2vec2|hubert|segformer|sam|"
    r"e5|bge|gte|all-mini)"
)
_CLASS = re.compile(
    r"(Bert|Roberta|Electra|Deberta|MPNet|XLM|GPT2|GPTNeo|OPT|Bart|ViT|DeiT|Swin|ConvNext|Beit|Dino|CLIP|Siglip|Whisper|Wav2Vec2|"
    r"Hubert|Segformer|Layoutlm|Albert|SentenceTransformer)"
)
_LOADERS = words(
    "create_model from_pretrained create_model_and_transforms load get_model SentenceTransformer from_config"
)
_ROOTS = ("sqrt", "rsqrt")
_SPREADS = ("std", "var", "var_mean", "std_mean")


def layer_norm(symbols: Symbols, model: ast.expr, scope: Scope) -> ast.AST | None:
    """The place that says that a model has LayerNorm: a layer in a class of the file, or an architecture's name."""
    classes = symbols.classes_in(model, scope)
    for cls in classes:
        for node in walk(cls.node):
            if isinstance(node, ast.Name | ast.Attribute) and last_name(node) in _LAYERS:
                return node
    held = [Ref(strip_module_calls(r.expr), r.scope) for r in symbols.resolve(model, scope)]
    wrapped = [Ref(a, r.scope) for r in held if isinstance(r.expr, ast.Call) for a in r.expr.args]
    inside = [i for w in wrapped if isinstance(w.expr, ast.Name | ast.Attribute) for i in symbols.resolve(*w)]
    refs = [r.expr for r in (*held, *inside)]
    places = [n for e in refs for n in walk(e) if isinstance(n, ast.Call)]
    places += [n for cls in classes for n in walk(cls.node) if isinstance(n, ast.Call)]
    if not classes:  # a name that is not followed: anything in the file
        places += symbols.calls
    for made in refs:  # ViTPose(...) of another file
        imported = isinstance(made, ast.Call) and (symbols.qual(made.func) or "").rpartition(".")[2]
        if imported and _CLASS.match(imported):
            return made
    for call in places:
        name = last_name(call.func)
        if name in _LAYERS:
            return call
        full = symbols.qual(call.func) or ""
        if full.startswith("torchvision.models.") and _ARCHITECTURE.search(name):
            return call
        if name in _LOADERS:
            if name == "from_pretrained" and isinstance(call.func, ast.Attribute):
                if _CLASS.search(last_name(call.func.value)):
                    return call
            for argument in call.args[:1]:
                value = symbols.const(argument, symbols.scope(call))
                if isinstance(value, str) and _ARCHITECTURE.search(value):
                    return call
    return None


def by_hand(symbols: Symbols, function: Scope, *, exported: bool) -> Iterator[ast.BinOp]:
    """`(x - mean) / sqrt(var + eps)` and `x * rsqrt(mean(x**2) + eps)` with the square written out.

    In an export `var` and `std` are written out as well; in PyTorch their kernels sum in float32.
    """
    for node in walk(function.node):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div | ast.Mult):
            continue
        sides = (
            ((node.left, node.right),)
            if isinstance(node.op, ast.Div)
            else ((node.left, node.right), (node.right, node.left))
        )
        for value, scale in sides:
            root = _root(symbols, scale, function, exported)
            if root and (root == "square" or _centred(symbols, value, function)):
                yield node
                break


def _centred(symbols: Symbols, expr: ast.expr, scope: Scope, depth: int = 4) -> bool:
    for ref in symbols.resolve(expr, scope) if depth else ():
        e = ref.expr
        if isinstance(e, ast.BinOp) and isinstance(e.op, ast.Mult):
            if any(_centred(symbols, side, ref.scope, depth - 1) for side in (e.left, e.right)):
                return True
        if isinstance(e, ast.BinOp) and isinstance(e.op, ast.Sub):
            if any(_is_call(r.expr, "mean") for r in symbols.resolve(e.right, ref.scope)) or _from_pair(
                symbols, e.right, ref.scope
            ):
                return True
        if _is_call(e, "sub", "subtract") and isinstance(e, ast.Call) and e.args:
            if any(_is_call(r.expr, "mean") for r in symbols.resolve(e.args[-1], ref.scope)):
                return True
    return False


def _from_pair(symbols: Symbols, expr: ast.AST, scope: Scope) -> bool:
    """`mean` of `var, mean = torch.var_mean(x)`."""
    return isinstance(expr, ast.Name) and any(
        b.value is not None and _is_call(b.value, "var_mean", "std_mean") for b in symbols.bindings(expr.id, scope)
    )


def _root(symbols: Symbols, expr: ast.expr, scope: Scope, exported: bool) -> str:
    """What a scale is made of: "square" (of a value), "centred" (a spread, or the square of a difference), or ""."""
    for top, home in _tops(symbols, expr, scope, 4):
        if exported and (_is_call(top, *_SPREADS) or _from_pair(symbols, top, home)):
            return "centred"
        root = _is_call(top, *_ROOTS) or (
            isinstance(top, ast.BinOp) and isinstance(top.op, ast.Pow) and _half_power(top.right)
        )
        if not root:
            continue
        nodes = list(_nodes(symbols, top, home, 5))
        if exported and any(_is_call(n, *_SPREADS) or _from_pair(symbols, n, where) for n, where in nodes):
            return "centred"
        averaged = any(_is_call(n, "mean") for n, _ in nodes)
        for node, where in nodes:
            inner = _squared(node)
            if inner is not None and _centred(symbols, inner, where):
                return "centred"
            if inner is not None and averaged and exported:
                return "square"
    return ""


def _tops(symbols: Symbols, expr: ast.expr, scope: Scope, depth: int) -> Iterator[tuple[ast.expr, Scope]]:
    """The root in `sqrt(...) + eps`, `1 / sqrt(...)`, `sqrt(...).clamp(min=eps)`."""
    for ref in symbols.resolve(expr, scope) if depth else ():
        e = ref.expr
        yield e, ref.scope
        if isinstance(e, ast.BinOp) and isinstance(e.op, ast.Add):
            yield from _tops(symbols, e.left, ref.scope, depth - 1)
        elif isinstance(e, ast.BinOp) and isinstance(e.op, ast.Div):
            yield from _tops(symbols, e.right, ref.scope, depth - 1)
        elif _is_call(e, "clamp", "clamp_min", "add") and isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute):
            yield from _tops(symbols, e.func.value, ref.scope, depth - 1)


def _nodes(
    symbols: Symbols, expr: ast.expr, scope: Scope, depth: int, seen: frozenset[str] = frozenset()
) -> Iterator[tuple[ast.AST, Scope]]:
    """Everything that an expression is made of, through the names in it (each followed once)."""
    if depth <= 0:
        return
    for ref in symbols.resolve(expr, scope):
        for node in walk(ref.expr):
            yield node, ref.scope
            if isinstance(node, ast.Name) and node.id not in seen and symbols.bindings(node.id, ref.scope):
                seen = seen | {node.id}
                for inner in symbols.resolve(node, ref.scope):
                    if inner.expr is not ref.expr and inner.expr is not node:
                        yield from _nodes(symbols, inner.expr, inner.scope, depth - 2, seen)


def _squared(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant):
        return node.left if node.right.value == 2 else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return node.left if ast.dump(node.left) == ast.dump(node.right) else None
    if isinstance(node, ast.Call) and last_name(node.func) in ("pow", "square"):
        if isinstance(node.func, ast.Attribute) and not (
            isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
        ):
            return node.func.value
        return node.args[0] if node.args else None
    return None


def _half_power(expr: ast.expr) -> bool:
    value = expr.operand if isinstance(expr, ast.UnaryOp) else expr
    return isinstance(value, ast.Constant) and value.value == 0.5


def _is_call(expr: ast.AST, *names: str) -> bool:
    return isinstance(expr, ast.Call) and last_name(expr.func) in names
