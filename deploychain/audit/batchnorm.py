"""Whether a module expression holds BatchNorm, as far as one file and well-known architectures tell."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from deploychain.audit.astnames import (
    UNKNOWN,
    Ref,
    Scope,
    argument_for,
    keyword,
    last_name,
    strip_module_calls,
)
from deploychain.audit.elements import elements
from deploychain.audit.likely_models import LikelyModels
from deploychain.audit.symbols import Symbols
from deploychain.audit.tree import children, walk
from deploychain.audit.values import runs_a_model

NORMS = frozenset(
    {
        "BatchNorm1d",
        "BatchNorm2d",
        "BatchNorm3d",
        "SyncBatchNorm",
        "LazyBatchNorm1d",
        "LazyBatchNorm2d",
        "LazyBatchNorm3d",
        "_BatchNorm",
        "BatchNorm",
        "FrozenBatchNorm2d",
    }
)
_BLOCK = re.compile(r"BatchNorm(Act)?\dd|Conv\w*B[Nn]|B[Nn]_?(Re[Ll][Uu]|Act)|^Conv\dd?NormActivation$|InPlaceABN")
# Families whose published models have BatchNorm, by the names that torchvision, timm and torch.hub give them.
_FAMILY = re.compile(
    r"(tf_|tv_|ssl_|swsl_|gluon_|legacy_|ig_|se_?|eca_?|cs3?|sk|ibn|wide_|hf-hub:timm/|hf_hub:timm/)*"
    r"(res(net|next|nest)|res2ne|densenet|efficientnet|mobilenet|mnasnet|regnet|shufflenet|inception|googlenet|xception|"
    r"hrnet|osnet|dla\d|dpn\d|ghostnet|repvgg|rexnet|mixnet|fbnet|vovnet|dark|csp|lcnet|tinynet|vgg\d+_bn|deeplabv3|fcn_res|"
    r"lraspp|fasterrcnn_|maskrcnn_|keypointrcnn_|retinanet_|fcos_|ssdlite|r3d_|mc3_|r2plus1d_|s3d|maxvit)"
)
_NORM_FREE = re.compile(r"_gn|_ln|_bit|nf_|nfnet|evo|_frn|fixup")
# The same of models that are imported from code that is not shown: only what is hardly ever built otherwise.
_FOREIGN = re.compile(
    r"(wide_?|pre_?act_?|se_?)?(resnet|resnext|mobilenet|efficientnet|densenet|regnet|hrnet|shufflenet)_?(v?\d\w*|b\d)?$",
    re.IGNORECASE,
)
_HF = re.compile(r"(ResNet|RegNet|MobileNetV[12]|EfficientNet)(Model|ForImageClassification|Backbone)$")
_FROM_NAME = frozenset({"create_model", "get_model", "build_model", "load", "from_pretrained"})
# Calls that give back their (first) argument, or a module made of it.
_WRAPPERS = frozenset(
    {
        "deepcopy",
        "AveragedModel",
        "create_feature_extractor",
        "IntermediateLayerGetter",
        "compile",
        "script",
        "DataParallel",
        "DistributedDataParallel",
        "DDP",
        "convert_sync_batchnorm",
        "ModelEma",
        "ModelEmaV2",
        "ModelEmaV3",
        "prepare",
        "setup",
        "setup_module",
        "fuse_model",
    }
)
_NAMED = re.compile(r"(^|_)bn\d*$|batch_?norm")


class BatchNorms:
    """Answers where the BatchNorm of a module expression is seen."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self._models = LikelyModels(symbols)

    def where(self, expr: ast.expr, scope: Scope) -> str | None:
        """ "line 12", or the name of a known architecture; None where no BatchNorm is seen."""
        for ref in self.origins(expr, scope):
            if isinstance(ref.expr, ast.Call):
                found = self._made_by(ref.expr, ref.scope, set())
                if found is not None:
                    return found
            elif isinstance(ref.expr, ast.Attribute) and _NAMED.search(ref.expr.attr):
                return f"`{ref.expr.attr}`"
            elif isinstance(ref.expr, ast.Name) and runs_a_model(ref.expr.id):
                likely = self._models.of(ref.expr, ref.scope)
                found = self.of_class(likely) if likely is not None else None
                if found is not None:
                    return found
        return None

    def by_file(self, call: ast.Call, scope: Scope) -> str | None:
        """The architecture that a weights file is named after: `torch.load("weights/resnet50.pth")`."""
        path = self.symbols.const(call.args[0], scope) if call.args else None
        name = path.rpartition("/")[2] if isinstance(path, str) else ""
        return name if _family(name) else None

    def of_class(self, cls: Scope) -> str | None:
        """The same for an instance of a class of this file."""
        return self._in_class(cls, None, set())

    def origins(self, expr: ast.expr, scope: Scope) -> Iterator[Ref]:
        """The calls that made a module, through names, functions, `.to(...)`, copies and wrappers."""
        queue = [Ref(expr, scope)]
        seen: set[int] = set()
        while queue and len(seen) < 60:
            here = queue.pop(0)
            made = strip_module_calls(here.expr)
            if id(made) in seen:
                continue
            seen.add(id(made))
            if isinstance(made, ast.Call) and last_name(made.func) in _WRAPPERS and made.args:
                queue += [Ref(a, here.scope) for a in made.args]
                continue
            refs = self.symbols.resolve(made, here.scope)
            moved = [r for r in refs if r.expr is not made and not (r.scope is here.scope and _itself(made, r.expr))]
            if moved:
                queue += moved
                continue
            yield Ref(made, here.scope)
            if isinstance(made, ast.Attribute):  # `ema.module`, or a part of a model that is made elsewhere
                queue.append(Ref(made.value, here.scope))
            elif isinstance(made, ast.Subscript):  # `nets[name]`
                tables = [r for r in self.symbols.resolve(made.value, here.scope) if isinstance(r.expr, ast.Dict)]
                queue += [Ref(v, t.scope) for t in tables for v in t.expr.values]  # type: ignore[attr-defined]
            elif isinstance(made, ast.Name):  # `for child in net.children()`
                queue += [r for r in elements(self.symbols, made, here.scope) if isinstance(r.expr, ast.Call)]
                queue += self._given_to_base(made.id, here.scope)
                queue += self._applied_to(made.id, here.scope)
                for binding in self.symbols.bindings(made.id, here.scope):
                    walked = walked_module(binding.value) if binding.loop else None
                    if walked is not None:
                        queue.append(Ref(walked, binding.scope))

    def _given_to_base(self, name: str, scope: Scope) -> Iterator[Ref]:
        """What the base class gives to the method that this one overrides: `self.net = self.cast(build())`."""
        function = self.symbols.parameter_scope(name, scope)
        if function is None or function.owner is None:
            return
        for base in self.symbols.bases(function.owner):
            for method in self.symbols.functions.get(function.name, ()):
                if method is function or method.owner is not base:
                    continue
                for call in self.symbols.call_sites(method)[:8]:
                    given = argument_for(call, method, name)
                    if given is not None:
                        yield Ref(given, self.symbols.scope(call))

    def _applied_to(self, name: str, scope: Scope) -> Iterator[Ref]:
        """The model of `model.apply(cast)`: what `cast` gets are its modules."""
        function = self.symbols.parameter_scope(name, scope)
        if function is None or isinstance(function.node, ast.Lambda):
            return
        for call in self.symbols.calls_ending("apply"):
            if call.args and last_name(call.args[0]) == function.name and isinstance(call.func, ast.Attribute):
                yield Ref(call.func.value, self.symbols.scope(call))

    def _made_by(self, call: ast.Call, scope: Scope, seen: set[str]) -> str | None:
        name = self.symbols.qual(call.func, scope) or ""
        leaf = last_name(call.func) or name.rpartition(".")[2]
        known = self._architecture(call, name, leaf, scope)
        if known is not None:
            return known
        if leaf in NORMS or _BLOCK.search(leaf) or name.rpartition(".")[2] in NORMS:
            return f"line {call.lineno}"
        if leaf.startswith("InstanceNorm"):
            given = keyword(call, "track_running_stats")
            return f"line {call.lineno}" if given is not None and self.symbols.const(given, scope) is True else None
        if any(self._asks_for_it(k, scope) for k in call.keywords):
            return f"line {call.lineno}"
        if leaf in self.symbols.classes and name == "":
            parts = [*call.args, *(k.value for k in call.keywords)]  # `Wrapper(resnet50())`
            return self._in_class(self.symbols.classes[leaf], call, seen) or self._inside(parts, scope, seen)
        if name in ("torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"):
            return self._inside([*call.args, *(k.value for k in call.keywords)], scope, seen)
        return None

    def _architecture(self, call: ast.Call, name: str, leaf: str, scope: Scope) -> str | None:
        if isinstance(call.func, ast.Subscript | ast.Call):
            return self._picked(call.func, scope)
        if name.startswith("torchvision.models.") and not name.endswith(".get_model"):
            plain = name.rpartition(".")[2].lower()  # it may have been imported under another name
            return name if _FAMILY.match(plain) and not _NORM_FREE.search(plain) and plain != "list_models" else None
        if leaf in _FROM_NAME and name:
            if _HF.search(name.rpartition(".")[0]):
                return name.rpartition(".")[0].rpartition(".")[2]
            index = 1 if name == "torch.hub.load" else 0
            given = call.args[index] if len(call.args) > index else keyword(call, "model_name", "name", "model", "arch")
            return self._named(given, scope) if leaf != "from_pretrained" or "timm" in name else None
        if name.startswith("segmentation_models_pytorch.") or name == "ultralytics.YOLO":
            return name
        if name and not name.startswith(("torch", "timm", "transformers")) and _FOREIGN.match(leaf):
            return leaf if not _NORM_FREE.search(leaf.lower()) else None
        return None

    def _picked(self, func: ast.expr, scope: Scope) -> str | None:
        """`models.__dict__[name](...)`, `getattr(models, name)(...)`, `MODELS[name](...)`."""
        if isinstance(func, ast.Call) and last_name(func.func) == "getattr" and len(func.args) > 1:
            base, key = func.args[0], func.args[1]
        elif isinstance(func, ast.Subscript):
            base = func.value.value if last_name(func.value) == "__dict__" else func.value  # type: ignore[attr-defined]
            key = func.slice
        else:
            return None
        if (self.symbols.qual(base, scope) or "").startswith(("torchvision.models", "timm")):
            return self._named(key, scope)
        for table in self.symbols.resolve(base, scope):
            if isinstance(table.expr, ast.Dict):
                names = [self.symbols.qual(v, table.scope) or "" for v in table.expr.values]
                if names and all(n.startswith("torchvision.models.") and _family(n.rpartition(".")[2]) for n in names):
                    return names[0]
        return None

    def _named(self, given: ast.expr | None, scope: Scope) -> str | None:
        name = self.symbols.const(given, scope)
        return str(name) if isinstance(name, str) and _family(name) else None

    def _asks_for_it(self, k: ast.keyword, scope: Scope) -> bool:
        """`norm="batch"`, `norm_layer=nn.BatchNorm2d`, `batch_norm=True`."""
        arg = (k.arg or "").lower()
        if "norm" not in arg and arg not in ("use_bn", "bn", "with_bn"):
            return False
        if any(isinstance(n, ast.Attribute | ast.Name) and last_name(n) in NORMS for n in walk(k.value)):
            return True
        value = self.symbols.const(k.value, scope)
        if isinstance(value, str):
            return value.lower() in ("batch", "bn", "batchnorm", "batch_norm", "syncbn", "batchnorm2d", "batchnorm1d")
        return value is True and ("bn" in arg or "batch" in arg)

    def _in_class(self, cls: Scope, call: ast.Call | None, seen: set[str]) -> str | None:
        if cls.name in seen:
            return None
        seen.add(cls.name)
        for home in self.symbols.bases(cls):
            parts: list[ast.AST] = []
            for statement in home.body:
                if isinstance(statement, ast.FunctionDef):
                    parts += statement.body
                    if statement.name == "__init__":
                        parts += self._defaults(statement, home, call)
                elif not isinstance(statement, ast.ClassDef):
                    parts.append(statement)
            found = self._inside(parts, home, seen)
            if found is not None:
                return found
            for base in getattr(home.node, "bases", []):
                name = self.symbols.qual(base, home) or ""
                if last_name(base) in NORMS and name.startswith("torch"):
                    return f"line {getattr(home.node, 'lineno', 0)}"
                if name.startswith("torchvision.models.") and _family(name.rpartition(".")[2].lower()):
                    return name
        return None

    def _defaults(self, init: ast.FunctionDef, cls: Scope, call: ast.Call | None) -> list[ast.AST]:
        """The defaults that this construction leaves as they are."""
        scopes = [s for s in self.symbols.functions.get("__init__", ()) if s.node is init]
        arguments = init.args
        named = [*arguments.posonlyargs, *arguments.args][-len(arguments.defaults) :] if arguments.defaults else []
        pairs: list[tuple[ast.arg, ast.expr | None]] = list(zip(named, arguments.defaults, strict=False))
        pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        return [
            default
            for parameter, default in pairs
            if default is not None
            and (call is None or not scopes or argument_for(call, scopes[0], parameter.arg) is None)
        ]

    def _inside(self, parts: Sequence[ast.AST], scope: Scope, seen: set[str]) -> str | None:
        """A BatchNorm that is made (not only tested for) in these statements or expressions."""
        stack: list[ast.AST] = list(parts)[::-1]
        while stack:
            node = stack.pop()
            if isinstance(node, ast.If | ast.IfExp):
                taken = self._taken(node.test, self.symbols.scope(node))
                body = node.body if isinstance(node.body, list) else [node.body]
                orelse = node.orelse if isinstance(node.orelse, list) else [node.orelse]
                stack += [*(body if taken is not False else []), *(orelse if taken is not True else [])][::-1]
                continue
            if isinstance(node, ast.Call):
                leaf = last_name(node.func)
                if leaf in ("isinstance", "issubclass", "super"):
                    continue
                found = self._made_by(node, self.symbols.scope(node), seen)
                if found is not None:
                    return found
                function = self.symbols.local_function(node.func, self.symbols.scope(node))
                if function is not None and function.owner is None and function.name not in seen:
                    seen.add(function.name)
                    inner = self._inside(list(function.body), function, seen)
                    if inner is not None:
                        return inner
            elif isinstance(node, ast.Name | ast.Attribute):
                leaf = last_name(node)
                if leaf in NORMS:
                    return f"line {node.lineno}"
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                    stack += self._value_of(node, seen)
                continue
            elif isinstance(node, ast.AnnAssign):
                stack += [node.value] if node.value is not None else []
                continue
            stack += list(children(node))[::-1]
        return None

    def _value_of(self, node: ast.Name, seen: set[str]) -> list[ast.AST]:
        """What a name of the module, or the function around, holds: `Norm = partial(nn.BatchNorm2d, ...)`."""
        scope = self.symbols.scope(node)
        key = f"{id(scope)}.{node.id}"
        if key in seen or node.id in self.symbols.imports:
            return []
        seen.add(key)
        bindings = self.symbols.bindings(node.id, scope)
        return [
            b.value
            for b in bindings
            if b.value is not None and isinstance(b.value, ast.Call | ast.Attribute | ast.Name) and not b.loop
        ]

    def _taken(self, test: ast.expr, scope: Scope) -> bool | None:
        """Whether a branch on a setting is taken: `norm == "bn"` with what the file says of `norm`."""
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq | ast.In | ast.NotEq):
            left, right = self.symbols.const(test.left, scope), self.symbols.const(test.comparators[0], scope)
            if not isinstance(right, str | list):
                return None
            if not isinstance(left, str):
                return False if left is UNKNOWN else None
            same = left in right if isinstance(test.ops[0], ast.In) else left == right
            return not same if isinstance(test.ops[0], ast.NotEq) else same
        value = self.symbols.const(test, scope)
        return value if isinstance(value, bool) else None


def _itself(name: ast.expr, made: ast.expr) -> bool:
    """`net` of `net = net.eval().half()`"""
    inner = strip_module_calls(made)
    return isinstance(name, ast.Name) and inner is not made and isinstance(inner, ast.Name) and inner.id == name.id


def _family(name: str) -> bool:
    return _FAMILY.match(name.lower()) is not None and not _NORM_FREE.search(name.lower())


def walked_module(expr: ast.expr | None) -> ast.expr | None:
    """The model of `model.modules()`, `model.named_children()`, `list(model.children())`."""
    while isinstance(expr, ast.Call) and isinstance(expr.func, ast.Name) and expr.args:
        expr = expr.args[0]
    if isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute) and expr.func.attr in (
        "modules",
        "named_modules",
        "children",
        "named_children",
    ):  # fmt: skip
        return expr.func.value
    return None
