"""R10: the eps of a normalisation is part of the trained model."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import UNKNOWN, Ref, Scope, dotted, keyword, last_name
from deploychain.audit.context import ERROR, NOTE, WARNING, Context, Rule
from deploychain.audit.finding import Finding, Severity
from deploychain.audit.loaded_weights import loaded_after, loaded_before
from deploychain.audit.tree import walk
from deploychain.audit.values import words

_NORMS = words(
    "LayerNorm GroupNorm BatchNorm1d BatchNorm2d BatchNorm3d RMSNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d SyncBatchNorm "
    "_BatchNorm _NormBase LayerNorm2d LlamaRMSNorm T5LayerNorm FrozenBatchNorm2d LocalResponseNorm"
)
# Where the functions of torch take eps as a positional argument.
_NORM_FUNCTIONS = {"layer_norm": 4, "group_norm": 4, "batch_norm": 7, "rms_norm": 3, "instance_norm": 7}
_POSITIONS = {"LayerNorm": 1, "GroupNorm": 2, "RMSNorm": 1, "SyncBatchNorm": 1} | {
    f"{k}{d}d": 1 for k in ("BatchNorm", "InstanceNorm") for d in (1, 2, 3)
}
_FINFO_FIELDS = frozenset({"eps", "tiny", "smallest_normal", "smallest_subnormal", "resolution"})
_EPS = frozenset({"eps", "variance_epsilon", "epsilon"})
_CONFIG_EPS = re.compile(r"^(layer_?norm|rms_?norm|norm|batch_?norm|group_?norm|ln|bn)_(eps|epsilon)$")
_NO_MODULE = re.compile(
    r"^(self|cls|args|opts?|cfg|config|conf|hparams|params|g|group|\w*optim\w*|\w*loss|criterion)$", re.IGNORECASE
)
_NORM_NAME = re.compile(r"norm|^ln_?\w?$|^ln_|(^|_)bn\d*$", re.IGNORECASE)
_SHAPES = frozenset({"normalized_shape", "num_features", "num_channels"})
# What well-known checkpoints were trained with: naming that value again changes nothing.
_TRAINED = (
    ("deberta", 1e-7),
    ("roberta", 1e-5),
    ("bert", 1e-12),
    ("vit", 1e-12),
    ("gpt2", 1e-5),
    ("opt-", 1e-5),
    ("t5", 1e-6),
    ("clip", 1e-5),
)
_LOADS = re.compile(r"load_state_dict|from_pretrained|load_from_checkpoint|torch\.load\(")
_FIX = "leave eps at the value that the model was trained with (1e-5 by default)"


# What any file with a finding holds: most files name an eps and need no analysis.
# Each pattern starts with fixed letters, which is what makes the search fast.
_NUMBER = re.compile(r"6\.[01]\d*e-0?5|9\.7[67]\d*e-0?4")
_REBUILT = re.compile(r"\.(normalized_shape|num_features|num_channels)\b[^\n]*eps=")
_QUOTED = re.compile(r"eps(ilon)?['\"],")
_SET = re.compile(r"eps(?<![a-zA-Z]eps)(ilon)?\s*(=(?!=)|,|[-+*/]=)")
_CONFIG_WORTH = re.compile(r"_eps(?<=rm_eps|ln_eps|bn_eps)(ilon)?['\"]?\s*[=:,]\s*[\d.A-Z]")

_CLAMPED = re.compile(r"eps['\"\]]*\s*=\s*max\(|eps['\"]\]\s*=(?!=)")


def _worth(text: str) -> bool:
    if "finfo" in text and ("16" in text or "half" in text):
        return True
    if any(digits in text for digits in ("6.0", "6.1", "9.7")) and _NUMBER.search(text):
        return True
    if _REBUILT.search(text) or _QUOTED.search(text) or ("load" in text and _CLAMPED.search(text)):
        return True
    loaded = any(word in text for word in ("from_pretrained(", "pretrained=", "weights="))
    if loaded and ("norm_layer" in text or _CONFIG_WORTH.search(text)):
        return True
    for found in _SET.finditer(text):  # `m.eps = ...`, `m.eps, m.momentum = ...`
        before = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        owner = re.search(r"(\w*)[\])]?\.\w*$", before)
        if owner is not None and owner[1] != "self" and ("(" not in before or "=" not in before):
            return True
    return False


def check(ctx: Context) -> Iterator[Finding]:
    if not _worth(ctx.text):
        return
    yield from _from_finfo(ctx)
    for node in ctx.symbols.nodes(ast.Attribute):
        if node.attr == "smallest_subnormal" and _is_finfo(ctx, node.value, ctx.symbols.scope(node)):
            yield ctx.finding(
                "R10", node, ERROR,
                "torch.finfo has no attribute smallest_subnormal (NumPy's has): AttributeError. And 100 times the smallest subnormal is "
                "5.96e-6, below the 1e-5 that it is meant to replace",
                "keep the eps of the model: nn.LayerNorm(dim)  # 1e-5 is safe in float16",
            )  # fmt: skip
    for node in ctx.symbols.nodes(ast.Assign, ast.AugAssign):
        yield from _assigned(ctx, node)
    yield from _configured(ctx)
    yield from _rebuilt(ctx)


def _from_finfo(ctx: Context) -> Iterator[Finding]:
    """eps of a norm that is worked out from finfo(float16), or is one of its numbers."""
    for call in ctx.symbols.calls:
        scope = ctx.symbols.scope(call)
        name = ctx.symbols.qual(call.func) or ""
        leaf = name.rpartition(".")[2] or last_name(call.func)
        eps = keyword(call, "eps", "norm_eps", "epsilon")
        of_torch = name.startswith("torch.") and (leaf in _NORMS or leaf in _NORM_FUNCTIONS)
        index = _POSITIONS.get(leaf, _NORM_FUNCTIONS.get(leaf, 99)) if of_torch else 99
        if eps is None and index < len(call.args):
            eps = call.args[index]
        if last_name(call.func) == "partial" and call.args:
            of_torch = of_torch or last_name(call.args[0]) in _NORMS
        own = (leaf in ctx.symbols.classes and "norm" in leaf.lower()) or _of_base(ctx, call, scope)
        if eps is not None and (of_torch or own) and (_finfo_half(ctx, eps, scope) or _half_number(ctx, eps, scope)):
            written = not _finfo_half(ctx, eps, scope) and not _LOADS.search(ctx.text)
            yield _finfo_finding(ctx, eps, NOTE if written else WARNING)  # (a network may be trained with the number)
        elif leaf in ("rsqrt", "sqrt") and "float16" in ctx.text:
            inner = call.args[0] if call.args else call.func.value if isinstance(call.func, ast.Attribute) else None
            if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add) and _in_norm(ctx, scope, inner):
                for side in (inner.left, inner.right):
                    if _finfo_half(ctx, side, scope):
                        yield _finfo_finding(ctx, side)
        for k in call.keywords:
            if k.arg and _CONFIG_EPS.match(k.arg) and k.value is not eps and _finfo_half(ctx, k.value, scope):
                yield _finfo_finding(ctx, k.value)


def _of_base(ctx: Context, call: ast.Call, scope: Scope) -> bool:
    """`super().__init__(dim, eps=...)` in a class that is a norm of torch."""
    cls = ctx.symbols.class_of(scope) if last_name(call.func) == "__init__" else None
    return cls is not None and any(last_name(b) in _NORMS for b in getattr(cls.node, "bases", []))


def _in_norm(ctx: Context, scope: Scope, expr: ast.expr) -> bool:
    """The root of a mean square: a norm written by hand."""
    text = ctx.str(expr).lower()
    cls = ctx.symbols.class_of(scope)
    named = cls is not None and re.search(r"norm|rms|ln", cls.name, re.IGNORECASE)
    return bool(named) or "var" in text or "mean" in text


def _finfo_finding(ctx: Context, node: ast.expr, severity: Severity = WARNING) -> Finding:
    of = "a number of float16" if severity is NOTE else "set from finfo(float16)"
    return ctx.finding(
        "R10", node, severity,
        f"the norm's eps is {of} (`{ctx.str(node)}`): at 6.1e-5 the output shrinks by 2.7 % for activations with "
        "std 0.03 and by 17 % at 0.01; the kernels take eps in float32, so 1e-5 never vanishes", _FIX,
    )  # fmt: skip


def _changed(ctx: Context, node: ast.AST, text: str = "") -> Finding:
    return ctx.finding(
        "R10", node, WARNING,
        f"`{text or ctx.str(node)}` changes the eps of normalisation layers whose weights were trained with another one: the outputs shift, "
        "most where activations are small, and eps is safe in float16 as it is", "remove it: keep the eps of the checkpoint",
    )  # fmt: skip


# -- module.eps = ... -----------------------------------------------------------------------------------------------


def _assigned(ctx: Context, node: ast.Assign | ast.AugAssign) -> Iterator[Finding]:
    """`module.eps = ...` on normalisation modules, `config.layer_norm_eps = ...` on the configuration of a checkpoint."""
    scope = ctx.symbols.scope(node)
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in [t for o in targets for t in (o.elts if isinstance(o, ast.Tuple | ast.List) else [o])]:
        key = target.slice if isinstance(target, ast.Subscript) else None
        named = isinstance(key, ast.Constant) and isinstance(key.value, str) and _CONFIG_EPS.match(key.value)
        if named and _raised(ctx, node, target, scope):
            yield _changed(ctx, node)
            return
        if not isinstance(target, ast.Attribute):
            continue
        if _CONFIG_EPS.match(target.attr):
            if _raised(ctx, node, target, scope):
                yield _changed(ctx, node)
                return
            if _of_checkpoint(ctx, target.value, scope) and not _as_trained(ctx, target.value, node.value, scope):
                yield _changed(ctx, node)
                return
            continue
        if target.attr not in _EPS or (isinstance(target.value, ast.Name) and _NO_MODULE.match(target.value.id)):
            continue
        if _finfo_half(ctx, node.value, scope):
            yield _finfo_finding(ctx, node.value)
            return
        given = isinstance(node, ast.AugAssign) or isinstance(node.value, ast.BinOp | ast.Call)
        numbers = [ctx.symbols.const(r.expr, r.scope) for r in _default(ctx, node.value, scope)]
        given = given or any(isinstance(n, float) for n in numbers)
        if not given and ctx.symbols.const(node.value, scope) is UNKNOWN:
            continue  # what the checkpoint's own configuration says
        if _norm_target(ctx, target.value, node, scope) and (
            loaded_before(ctx, node, scope) or (not ctx.symbols.class_of(scope) and loaded_after(ctx, node, scope))
        ):
            yield _changed(ctx, node)
            return


def _raised(ctx: Context, node: ast.Assign | ast.AugAssign, target: ast.expr, scope: Scope) -> bool:
    """`conf["ln_eps"] = max(conf["ln_eps"], 1e-3)`, or another number `if fp16:`, where weights are loaded afterwards."""
    value, parent = node.value, ctx.symbols.parent.get(node)
    clamped = isinstance(value, ast.Call) and last_name(value.func) == "max"
    clamped = clamped and any(ctx.str(n) == ctx.str(target) for n in walk(value))
    about = ctx.str(parent.test) if isinstance(parent, ast.If) else ""
    asked = re.search(r"half|fp16|float16|amp\b", about) and isinstance(ctx.symbols.const(value, scope), float)
    if not (clamped or asked):
        return False
    places: list[tuple[ast.stmt | ast.expr, Scope]] = [(node, scope)]
    places += [(c, ctx.symbols.scope(c)) for c in ctx.symbols.call_sites(scope)[:4]]
    return any(loaded_after(ctx, place, where) for place, where in places)


def _norm_target(ctx: Context, expr: ast.expr, node: ast.AST, scope: Scope) -> bool:
    """`m` in a loop over modules() or under isinstance(m, nn.LayerNorm); or an attribute that is called norm or bn1."""
    parent = ctx.symbols.parent.get(node)
    while parent is not None and not isinstance(parent, ast.FunctionDef | ast.Module):
        if isinstance(parent, ast.If | ast.IfExp):
            test = ctx.str(parent.test).lower()
            if "norm" in test or "'eps'" in test or any(last_name(n) in _NORMS for n in walk(parent.test)):
                return True
        parent = ctx.symbols.parent.get(parent)
    text = dotted(expr) or (expr.attr if isinstance(expr, ast.Attribute) else "")
    if _NORM_NAME.search(text.rpartition(".")[2]):
        return True
    for binding in ctx.symbols.bindings(text, scope):
        refs = ctx.symbols.resolve(binding.value, binding.scope) if binding.loop and binding.value is not None else []
        if any(last_name(n) in _NORMS for r in refs for n in walk(r.expr)):
            return True
    return False


# -- configurations of checkpoints ------------------------------------------------------------------------------------


def _configured(ctx: Context) -> Iterator[Finding]:
    for call in ctx.symbols.calls:
        scope = ctx.symbols.scope(call)
        leaf = last_name(call.func)
        if leaf == "from_pretrained":
            for k in call.keywords:
                if k.arg and _CONFIG_EPS.match(k.arg) and not _as_trained(ctx, call, k.value, scope):
                    yield _changed(ctx, k.value, f"{k.arg}={ctx.str(k.value)}")
            config = keyword(call, "config")
            for ref in ctx.symbols.resolve(config, scope) if config is not None else ():
                if isinstance(ref.expr, ast.Call) and last_name(ref.expr.func) != "from_pretrained":
                    for k in ref.expr.keywords:
                        if k.arg and _CONFIG_EPS.match(k.arg) and not _as_trained(ctx, call, k.value, ref.scope):
                            yield _changed(ctx, ref.expr, f"{k.arg}={ctx.str(k.value)}")
        elif leaf == "setattr" and len(call.args) == 3 and ctx.symbols.const(call.args[1], scope) in _EPS:
            if _norm_target(ctx, call.args[0], call, scope) and loaded_before(ctx, call, scope):
                yield _changed(ctx, call)
        elif leaf == "update" and isinstance(call.func, ast.Attribute):
            given = [(k.arg, k.value) for k in call.keywords]
            for ref in [r for table in call.args for r in _tables(ctx, table, scope)]:
                if isinstance(ref.expr, ast.Dict):
                    given += zip((getattr(k, "value", None) for k in ref.expr.keys), ref.expr.values, strict=True)
            for key, value in given:
                named = isinstance(key, str) and _CONFIG_EPS.match(key) and _of_checkpoint(ctx, call.func.value, scope)
                if named and not _as_trained(ctx, call.func.value, value, scope):
                    yield _changed(ctx, call)
        elif _pretrained(call):
            layer = keyword(call, "norm_layer")
            wanted = keyword(call, "bn_eps", "norm_eps", "layer_norm_eps")
            for ref in ctx.symbols.resolve(layer, scope) if layer is not None else ():
                if isinstance(ref.expr, ast.Call) and last_name(ref.expr.func) == "partial":
                    wanted = keyword(ref.expr, "eps")
            eps = ctx.symbols.const(wanted, scope)
            family = ctx.str(call).lower()
            usual = (
                isinstance(eps, float)
                and eps == 1e-3
                and re.search(r"efficientnet|mobilenet|inception|tf_|mnasnet", family)
            )
            if isinstance(eps, float) and not usual and (eps > 1e-5 or eps < 1e-6):
                yield _changed(ctx, call, f"eps={eps:g}")


def _tables(ctx: Context, expr: ast.expr, scope: Scope) -> list[Ref]:
    """What a dictionary is; of a parameter that nothing gives its default."""
    default = ctx.symbols.default(expr.id, scope) if isinstance(expr, ast.Name) else None
    return ctx.symbols.resolve(expr, scope) + ([Ref(default, scope)] if default is not None else [])


def _pretrained(call: ast.Call) -> bool:
    given = keyword(call, "pretrained", "weights")
    return given is not None and not (isinstance(given, ast.Constant) and given.value in (None, False))


def _of_checkpoint(ctx: Context, expr: ast.expr, scope: Scope, depth: int = 4) -> bool:
    """A configuration (or a part of it, or of a model) that was loaded with from_pretrained."""
    for ref in ctx.symbols.resolve(expr, scope):
        made = ref.expr
        if isinstance(made, ast.Call) and last_name(made.func) in ("from_pretrained", "get_config_dict"):
            return True
        if isinstance(made, ast.Attribute) and depth and _of_checkpoint(ctx, made.value, ref.scope, depth - 1):
            return True
    return False


def _as_trained(ctx: Context, source: ast.expr, value: ast.expr, scope: Scope) -> bool:
    """The value that this checkpoint is known to have been trained with, or one that comes from the checkpoint."""
    eps = ctx.symbols.const(value, scope)
    if eps is UNKNOWN:
        return not _finfo_half(ctx, value, scope) and not isinstance(value, ast.BinOp | ast.Call)
    for ref in [*ctx.symbols.resolve(source, scope), Ref(source, scope)]:
        for node in walk(ref.expr):
            name = (
                ctx.symbols.const(node, ref.scope)
                if isinstance(node, ast.Name | ast.Attribute | ast.Constant)
                else None
            )
            if isinstance(name, str):
                trained = next((v for word, v in _TRAINED if word in name.lower()), None)
                if trained is not None and trained == eps:
                    return True
    return False


def _rebuilt(ctx: Context) -> Iterator[Finding]:
    """`nn.LayerNorm(old.normalized_shape, eps=1e-3)` in the place of a trained layer."""
    for call in ctx.symbols.calls:
        eps = keyword(call, "eps")
        if eps is None or not call.args or last_name(call.func) not in _NORMS:
            continue
        shape = call.args[0]
        own = isinstance(shape, ast.Attribute) and not re.search(r"^self$|config|cfg|args", dotted(shape.value) or "")
        if not own or last_name(shape) not in _SHAPES:
            continue
        scope = ctx.symbols.scope(call)
        old = [r.expr for r in ctx.symbols.resolve(shape.value, scope)] if isinstance(shape, ast.Attribute) else []
        on_top = any(isinstance(e, ast.Call) and last_name(e.func) not in _NORMS for e in old)  # of a network
        if not on_top and isinstance(ctx.symbols.const(eps, scope), float):
            yield _changed(ctx, call)


# -- finfo --------------------------------------------------------------------------------------------------------


def _half_number(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    """6.1e-5 (tiny) or 9.77e-4 (eps) of float16, written as a number."""
    value = ctx.symbols.const(expr, scope)
    return isinstance(value, float) and (6.07e-5 < value < 6.14e-5 or 9.76e-4 <= value < 9.78e-4)


def _finfo_half(ctx: Context, expr: ast.expr, scope: Scope, depth: int = 3) -> bool:
    if "finfo" not in ctx.text:
        return False
    for ref in [*ctx.symbols.resolve(expr, scope), *_default(ctx, expr, scope)]:
        for node in walk(ref.expr):
            if isinstance(node, ast.Attribute) and node.attr in _FINFO_FIELDS:
                if _is_finfo(ctx, node.value, ref.scope, half=True):
                    return True
                continue
            if not isinstance(node, ast.Name) or node is expr or node is ref.expr or not depth:
                continue
            if _finfo_half(ctx, node, ref.scope, depth - 1):
                return True
    return False


def _default(ctx: Context, expr: ast.expr, scope: Scope) -> Iterator[Ref]:
    """The default of a parameter: `def __init__(self, dim, eps=torch.finfo(torch.float16).tiny)`."""
    function = ctx.symbols.parameter_scope(expr.id, scope) if isinstance(expr, ast.Name) else None
    if (
        function is None
        or not isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef)
        or not isinstance(expr, ast.Name)
    ):
        return
    arguments = function.node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    named = list(zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True))
    named += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
    for argument, default in named:
        if argument.arg == expr.id and isinstance(default, ast.expr):
            yield Ref(default, function.parent or function)


def _is_finfo(ctx: Context, expr: ast.expr, scope: Scope, half: bool = False) -> bool:
    for ref in ctx.symbols.resolve(expr, scope):
        call = ref.expr
        if not isinstance(call, ast.Call):
            continue
        name = ctx.symbols.qual(call.func, ref.scope)
        if name == "torch.finfo" and (not half or (call.args and ctx.amp.dtype(call.args[0], ref.scope) == "fp16")):
            return True
        if half and name == "numpy.finfo" and call.args:
            kind = ctx.symbols.qual(call.args[0], ref.scope) or ctx.symbols.const(call.args[0], ref.scope)
            if kind in ("numpy.float16", "numpy.half", "float16"):
                return True
    return False


RULE = Rule(
    id="R10",
    name="do-not-touch-eps",
    title="The eps of a normalisation layer is changed for float16",
    how="code, model",
    belief="Set LayerNorm's eps to finfo(float16).smallest_subnormal * 100, 'about 6.1e-5', or to finfo.tiny.",
    truth=(
        "torch.finfo has no smallest_subnormal (AttributeError), and the value would be 5.96e-6. With finfo.tiny the output of a "
        "LayerNorm shrinks: 0.3 % for std 0.1, 2.7 % for 0.03, 17 % for 0.01, 48 % for 0.003. eps=1e-5 is harmless in float16."
    ),
    experiment="LayerNorm at eps=1e-5 and at finfo(float16).tiny for four standard deviations; the missing attribute.",
    bad="norm = nn.LayerNorm(dim, eps=torch.finfo(torch.float16).tiny)",
    good="norm = nn.LayerNorm(dim)",
    check=check,
    trigger=r"finfo|eps",
)
