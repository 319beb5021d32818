"""What an image is on its way through a function: channels first or last, float16 or float32, and by what.

Names stand for the binding above them, so that `x = x.permute(1, 2, 0)` counts where it is read.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from deploychain.audit.amp import Amp
from deploychain.audit.astnames import Ref, Scope, argument, dotted, keyword, last_name, returns
from deploychain.audit.symbols import Symbols
from deploychain.audit.tree import walk
from deploychain.audit.values import words

CHW, HWC = "chw", "hwc"
_TO_CHW = words(
    "ToTensor to_tensor pil_to_tensor PILToTensor ToImage read_image decode_image decode_jpeg decode_png to_image "
    "ToTensorV2 conv2d Conv2d interpolate"
)
_TO_HWC = words("imread open cvtColor imdecode fromarray asarray")
_KEEPS = words(
    "float half double to div div_ mul mul_ sub sub_ add add_ cuda cpu contiguous clone flip type unsqueeze squeeze "
    "astype copy clamp clamp_ detach pin_memory bfloat16 type_as requires_grad_ crop true_divide divide"
)
_PASSES_ON = words(
    "from_numpy as_tensor tensor ascontiguousarray array asarray stack cat float32 hflip vflip resize crop center_crop "
    "convert_image_dtype to_dtype convert_dtype pad clip div sub mul Tensor FloatTensor resized_crop adjust_brightness"
)
_ORDERS: dict[tuple[int, ...], str] = {
    (2, 0, 1): CHW,
    (0, 3, 1, 2): CHW,
    (1, 2, 0): HWC,
    (0, 2, 3, 1): HWC,
}
_AXES: dict[tuple[int, ...], str] = {
    **dict.fromkeys(((-1, 0), (2, 0), (3, 1), (-1, 1), (-1, -3)), CHW),
    **dict.fromkeys(((0, -1), (0, 2), (1, -1), (-3, -1)), HWC),
}
# The result of these is float32 whatever came in.
_FLOAT32 = words("float double ToTensor to_tensor float32")


class Images:
    """Answers about expressions that stand for images."""

    def __init__(
        self, symbols: Symbols, amp: Amp, transformed: Callable[[Images, ast.Call], str | None] = lambda _, __: None
    ) -> None:
        """`transformed`: the dtype that the result of a Compose has, for the call that makes the Compose."""
        self.symbols = symbols
        self.amp = amp
        self._transformed = transformed
        self._results: dict[int, str | None] = {}
        self.channels = 0  # how many values the mean has that goes with the image, where that is known

    # -- layout -------------------------------------------------------------------------------------------------

    def layout(self, expr: ast.expr, scope: Scope, depth: int = 14) -> str | None:
        """ "chw", "hwc", or None where the file does not tell."""
        if depth <= 0:
            return None
        if isinstance(expr, ast.BinOp):
            return self.layout(expr.left, scope, depth - 1) or self.layout(expr.right, scope, depth - 1)
        if isinstance(expr, ast.IfExp):
            return self.layout(expr.body, scope, depth - 1)
        if isinstance(expr, ast.Call):
            return self._layout_of_call(expr, scope, depth)
        for ref in self.earlier(expr, scope):
            found = self.layout(ref.expr, ref.scope, depth - 1)
            if found is not None:
                return found
        if isinstance(expr, ast.Subscript):
            return self.layout(expr.value, scope, depth - 1)
        return None

    def _layout_of_call(self, call: ast.Call, scope: Scope, depth: int) -> str | None:
        leaf = last_name(call.func)
        method = isinstance(call.func, ast.Attribute) and self.symbols.qual(call.func, scope) is None
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        if leaf in ("permute", "transpose", "moveaxis", "movedim"):
            given = call.args if method else call.args[1:]
            order = [self.symbols.const(a, scope) for a in given]
            if len(order) == 1 and isinstance(order[0], list):
                order = order[0]
            table = _AXES if leaf in ("moveaxis", "movedim") else _ORDERS
            return table.get(tuple(o if isinstance(o, int) else 99 for o in order))
        if leaf == "rearrange" and len(call.args) > 1:
            pattern = self.symbols.const(call.args[1], scope)
            right = pattern.partition("->")[2].replace(" ", "") if isinstance(pattern, str) else ""
            return CHW if right.endswith("chw") else HWC if right.endswith("hwc") else None
        if leaf in _TO_CHW or self._made_by(call.func, scope, _TO_CHW):
            return CHW
        if method and receiver is not None and leaf in _KEEPS:
            return self.layout(receiver, scope, depth - 1)
        if leaf == "stack" and call.args and (stacked := self._stacked(call, scope, depth)) is not None:
            return stacked
        if leaf in _PASSES_ON and call.args:
            first = call.args[0].elts[0] if isinstance(call.args[0], ast.List) and call.args[0].elts else call.args[0]
            inner = self.layout(first, scope, depth - 1)
            if inner is not None:
                return inner
        if leaf in _TO_HWC:
            return HWC
        if leaf == "read" and "rasterio" in self.symbols.imports and not self._one_band(call, scope):
            return CHW  # all bands, or a list of them
        function = self.symbols.local_function(call.func, scope)
        for value in returns(function) if function is not None and function.name != "forward" else ():
            found = self.layout(value, function, depth - 1) if function is not None else None
            if found is not None:
                return found
        return None

    def _stacked(self, call: ast.Call, scope: Scope, depth: int) -> str | None:
        """`np.stack([red, green, blue], axis=0)`: one plane for each value of the mean."""
        for ref in self.earlier(call.args[0], scope) or [Ref(call.args[0], scope)]:
            planes = ref.expr
            element: ast.expr | None = None
            if isinstance(planes, ast.List | ast.Tuple) and not any(isinstance(e, ast.Starred) for e in planes.elts):
                count, element = len(planes.elts), planes.elts[0] if planes.elts else None
            elif isinstance(planes, ast.ListComp) and len(planes.generators) == 1 and not planes.generators[0].ifs:
                source = self.symbols.const(planes.generators[0].iter, ref.scope)
                count, element = len(source) if isinstance(source, list) else 0, planes.elt
            if element is None or not count or count != self.channels:
                continue
            whole = self.layout(element, self.symbols.scope(element), depth - 1) is not None
            if whole and not self._is_plane(element):
                return None  # images of three channels, not planes
            axis = self.symbols.const(argument(call, 1, "axis", "dim") or ast.Constant(0), scope)
            return CHW if axis in (0, -3) else HWC if axis in (-1, 2) else None
        return None

    def _one_band(self, call: ast.Call, scope: Scope) -> bool:
        """`src.read(1)`, `[src.read(i) for i in (1, 2, 3)]`"""
        band = call.args[0] if call.args else None
        each = any(b.loop for b in self.symbols.bindings(band.id, scope)) if isinstance(band, ast.Name) else False
        return each or (isinstance(band, ast.Constant) and isinstance(band.value, int))

    def _is_plane(self, expr: ast.expr) -> bool:
        """Read by a reader of single planes, or as a grey image."""
        for node in walk(expr):
            if isinstance(node, ast.Call) and last_name(node.func) == "imread":
                name = self.symbols.qual(node.func) or ""
                grey = len(node.args) > 1 and ("GRAY" in ast.unparse(node.args[1]) or ast.unparse(node.args[1]) == "0")
                return name.startswith(("tifffile.", "skimage.")) or grey
            if isinstance(node, ast.Call) and last_name(node.func) == "convert" and node.args:
                return ast.unparse(node.args[0]) in ("'L'", "'I'", "'F'")
        return False

    def _made_by(self, func: ast.expr, scope: Scope, names: frozenset[str]) -> bool:
        """`transforms.ToTensor()(img)`, `self.to_tensor(img)` with what was bound to it."""
        if isinstance(func, ast.Call):
            return last_name(func.func) in names
        return any(
            isinstance(r.expr, ast.Call) and last_name(r.expr.func) in names for r in self.symbols.resolve(func, scope)
        )

    def earlier(self, expr: ast.expr, scope: Scope) -> list[Ref]:
        """What a name was bound to last above this place; for a parameter, what calls give it."""
        text = dotted(expr)
        if text is None:
            return []
        bindings = [b for b in self.symbols.bindings(text, scope) if b.value is not None]
        above = [b for b in bindings if b.scope is not scope or getattr(b.node, "lineno", 0) < expr.lineno]
        if above:
            last = max(above, key=lambda b: getattr(b.node, "lineno", 0))
            if last.place is not None or last.value is None:
                return []
            return self._element(last.value, last.scope) if last.loop else [Ref(last.value, last.scope)]
        if bindings:
            return []
        found = [r for r in self.symbols.resolve(expr, scope) if r.expr is not expr]
        buffer = self.buffer(text, scope)
        return found or ([buffer] if buffer is not None else [])

    def _element(self, value: ast.expr | None, scope: Scope) -> list[Ref]:
        if isinstance(value, ast.List | ast.Tuple) and value.elts:
            return [Ref(value.elts[0], scope)]
        return [Ref(value, scope)] if isinstance(value, ast.Name) else []

    def buffer(self, text: str, scope: Scope) -> Ref | None:
        """`self.register_buffer("mean", torch.tensor(...))`"""
        cls = self.symbols.class_of(scope)
        if cls is None or not text.startswith("self."):
            return None
        for call in self.symbols.calls:
            if last_name(call.func) != "register_buffer" or len(call.args) < 2:
                continue
            home = self.symbols.scope(call)
            if self.symbols.class_of(home) is cls and self.symbols.const(call.args[0], home) == text[5:]:
                return Ref(call.args[1], home)
        return None

    # -- dtype --------------------------------------------------------------------------------------------------

    def made_half(self, expr: ast.expr, scope: Scope, depth: int = 14) -> ast.expr | None:
        """The call that made an image float16, where nothing made it float32 again."""
        if depth <= 0:
            return None
        if isinstance(expr, ast.BinOp):
            return self.made_half(expr.left, scope, depth - 1) or self.made_half(expr.right, scope, depth - 1)
        if isinstance(expr, ast.Subscript) and dotted(expr) is None:
            return self.made_half(expr.value, scope, depth - 1)
        if not isinstance(expr, ast.Call):
            for ref in self.earlier(expr, scope):
                found = self.made_half(ref.expr, ref.scope, depth - 1)
                if found is not None:
                    return found
            return None
        dtype = self.cast(expr, scope)
        if dtype is not None:
            return expr if dtype == "fp16" else None
        leaf = last_name(expr.func)
        if isinstance(expr.func, ast.Attribute) and self.symbols.qual(expr.func, scope) is None and leaf in _SHAPES:
            return self.made_half(expr.func.value, scope, depth - 1)
        if leaf in _PASSES_ON and expr.args:
            first = expr.args[0].elts[0] if isinstance(expr.args[0], ast.List) and expr.args[0].elts else expr.args[0]
            return self.made_half(first, scope, depth - 1)
        return None

    def cast(self, call: ast.Call, scope: Scope) -> str | None:
        """The dtype that a call gives its result for sure."""
        leaf = last_name(call.func)
        if leaf == "half" and not call.args:
            return "fp16"
        if leaf in _FLOAT32 or self._made_by(call.func, scope, frozenset({"ToTensor"})):
            return "fp32"
        if isinstance(call.func, ast.Name | ast.Attribute) and len(call.args) == 1:
            for ref in self.symbols.resolve(call.func, scope):
                made = self.result_dtype(ref.expr) if isinstance(ref.expr, ast.Call) else None
                if made is not None:
                    return made
        index = {"to": 0, "type": 0, "astype": 0, "convert_image_dtype": 1, "to_dtype": 1, "convert_dtype": 1}.get(leaf)
        given: list[ast.expr] = []
        if index is not None:
            given = call.args[index:]
        named = keyword(call, "dtype")
        for expr in [*([named] if named is not None else []), *given]:
            dtype = self.dtype(expr, scope)
            if dtype in ("fp16", "fp32", "bf16", "fp64"):
                return dtype
        return None

    def result_dtype(self, compose: ast.Call) -> str | None:
        """The dtype of what a Compose gives back; None where it leaves it alone or is none."""
        key = id(compose)
        if key not in self._results:
            self._results[key] = None  # what contains itself
            self._results[key] = self._transformed(self, compose)
        return self._results[key]

    def dtype(self, expr: ast.expr, scope: Scope) -> str | None:
        """Also of `np.float16`, of a parameter with a default, and of `{Image: torch.float16, "others": None}`."""
        if isinstance(expr, ast.Dict):
            found = {self.dtype(v, scope) for v in expr.values} - {None}
            return "fp16" if "fp16" in found else None
        name = self.symbols.qual(expr, scope) or ""
        if name.startswith("numpy."):
            return {"float16": "fp16", "half": "fp16", "float32": "fp32", "float64": "fp64"}.get(name[6:])
        made = self.amp.dtype(expr, scope)
        if made == "?" and isinstance(expr, ast.IfExp):  # on one way at least, unless that is never taken
            taken = self.symbols.const(expr.test, scope)
            ways = [expr.body, expr.orelse] if not isinstance(taken, bool) else [expr.body if taken else expr.orelse]
            return "fp16" if "fp16" in {self.dtype(way, scope) for way in ways} else made
        if made == "?" and isinstance(expr, ast.Name):
            function = self.symbols.parameter_scope(expr.id, scope)
            default = parameter_default(function, expr.id) if function is not None else None
            if default is not None and not self.symbols.call_sites(function or scope):
                return self.amp.dtype(default, scope)
        if isinstance(expr, ast.Constant) and not isinstance(expr.value, str):
            return None
        return made


_SHAPES = _KEEPS | words("permute transpose view reshape repeat expand pow")


def parameter_default(function: Scope, name: str) -> ast.expr | None:
    """The default of a parameter, as it is written."""
    arguments = getattr(function.node, "args", None)
    if arguments is None:
        return None
    every = [*arguments.posonlyargs, *arguments.args]
    pairs: list[tuple[ast.arg, ast.expr | None]] = list(
        zip(every[len(every) - len(arguments.defaults) :], arguments.defaults, strict=True)
    )
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return next((default for parameter, default in pairs if parameter.arg == name), None)
