"""R27: autocast that was asked for and is not on."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from deploychain.audit.amp import AUTOCASTS
from deploychain.audit.astnames import UNKNOWN, Ref, Scope, argument, dotted, keyword, last_name
from deploychain.audit.context import ERROR, NOTE, WARNING, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.frameworks import Region
from deploychain.audit.rules.device_guards import asks_for_device
from deploychain.audit.rules.wide_regions import trains_in_float32
from deploychain.audit.threads import runs_a_model, started
from deploychain.audit.values import MODEL_NAMES, words

_DEVICE_TYPES = words("cuda cpu xpu hpu mps xla ipu mtia npu maia musa privateuseone")
_RANKS = words("rank local_rank gpu gpu_id device_id cuda_id localrank")


def check(ctx: Context) -> Iterator[Finding]:
    yield from _not_entered(ctx)
    yield from _joined(ctx)
    yield from _bad_device_type(ctx)
    yield from _regions(ctx)
    yield from _frameworks(ctx)


def _not_entered(ctx: Context) -> Iterator[Finding]:
    """`torch.autocast("cuda")` as a statement, a region that no `with` uses, or `@autocast` without parentheses."""
    for call, scope in ctx.calls(*AUTOCASTS):
        parent = ctx.symbols.parent.get(call)
        if isinstance(parent, ast.Expr) or (isinstance(parent, ast.Assign) and _never_read(ctx, parent, scope)):
            yield ctx.finding(
                "R27", call, ERROR, f"`{ctx.str(call)}` makes a region that nothing enters: autocast stays off",
                f"with {ctx.str(call)}:\n    ...",
            )  # fmt: skip
    for function in ctx.symbols.function_scopes:
        for decorator in getattr(function.node, "decorator_list", []):
            if not isinstance(decorator, ast.Call) and ctx.symbols.qual(decorator) in AUTOCASTS:
                yield ctx.finding(
                    "R27", decorator, ERROR,
                    f"`@{ctx.str(decorator)}` without parentheses takes the function for a setting: it raises, or replaces "
                    f"`{function.name}` by an autocast object", f'@torch.autocast("cuda")\ndef {function.name}(...):',
                )  # fmt: skip


def _never_read(ctx: Context, node: ast.Assign, scope: Scope) -> bool:
    """A name that only this file can read, and that it never reads."""
    target = node.targets[0]
    if len(node.targets) != 1 or "backward" not in ctx.text:
        return False
    if isinstance(target, ast.Attribute) and dotted(target.value) == "self":
        cls = ctx.symbols.class_of(scope)
        if cls is None or getattr(cls.node, "bases", []):
            return False
        return not any(n.attr == target.attr and isinstance(n.ctx, ast.Load) for n in ctx.symbols.nodes(ast.Attribute))
    return isinstance(target, ast.Name) and not any(
        n.id == target.id and isinstance(n.ctx, ast.Load) for n in ctx.symbols.nodes(ast.Name)
    )


def _joined(ctx: Context) -> Iterator[Finding]:
    """`with autocast() and no_grad():`, an expression whose value is one of the two: that one is entered."""
    for node in ctx.symbols.nodes(ast.With, ast.AsyncWith):
        for item in node.items:
            both = item.context_expr
            if not isinstance(both, ast.BoolOp):
                continue
            scope = ctx.symbols.scope(node)
            if isinstance(both.op, ast.And):
                lost, entered = both.values[:-1], both.values[-1]
            else:
                first = both.values[0]
                made = isinstance(first, ast.Call) and (ctx.symbols.qual(first.func, scope) or "").startswith("torch.")
                lost, entered = both.values[1:] if made else [], first
            for value in lost:
                region = ctx.amp.region(value, scope) if isinstance(value, ast.Call) else None
                if region is not None and region.enabled is not False:
                    word = "and" if isinstance(both.op, ast.And) else "or"
                    yield ctx.finding(
                        "R27", value, ERROR,
                        f"`{word}` of two contexts is one of them: only `{ctx.str(entered)}` is entered, this region never",
                        f"with {ast.unparse(value)}, {ast.unparse(entered)}:\n    ...",
                    )  # fmt: skip


def _bad_device_type(ctx: Context) -> Iterator[Finding]:
    """`torch.autocast("gpu")`, `torch.autocast(torch.device("cuda"))`: both raise. `torch.autocast("cuda:0")` did once."""
    for call, scope in ctx.calls("torch.autocast"):
        given = argument(call, 0, "device_type")
        if given is None:
            continue
        for ref in ctx.symbols.resolve(given, scope):
            value = ref.expr.value if isinstance(ref.expr, ast.Constant) else None
            word, _, number = value.partition(":") if isinstance(value, str) else ("", "", "")
            if _indexed_device(ctx, ref) or (word in _DEVICE_TYPES and number.isdigit()):
                yield ctx.finding(
                    "R27", call, NOTE,
                    f"autocast takes the device type as a word (\"cuda\"): `{ctx.str(ref.expr)}`, with the number of a device, raises in torch "
                    "before 2.4, and later skips the checks that the word gets (no CUDA, no bfloat16)",
                    'torch.autocast("cuda", dtype=torch.float16)  # or device_type=device.type',
                )  # fmt: skip
                break
            made = isinstance(ref.expr, ast.Call) and ctx.symbols.qual(ref.expr.func, ref.scope) == "torch.device"
            if made or (isinstance(value, str) and word not in _DEVICE_TYPES and not _own_backend(ctx, word)):
                yield ctx.finding(
                    "R27", call, ERROR,
                    f"autocast takes the device type as a word (\"cuda\"), not `{ctx.str(ref.expr)}`: this raises",
                    'torch.autocast("cuda", dtype=torch.float16)  # or device_type=device.type',
                )  # fmt: skip
                break


def _own_backend(ctx: Context, word: str) -> bool:
    """A device type that an extension brings: `import torch_musa`."""
    return f"torch_{word}" in ctx.text or "privateuse1" in ctx.text


def _indexed_device(ctx: Context, ref: Ref) -> bool:
    """`str(torch.device("cuda:0"))`: the word with the number of the GPU."""
    call = ref.expr
    if not isinstance(call, ast.Call) or last_name(call.func) != "str" or len(call.args) != 1:
        return False
    for made in ctx.symbols.resolve(call.args[0], ref.scope):
        if isinstance(made.expr, ast.Call) and ctx.symbols.qual(made.expr.func, made.scope) == "torch.device":
            names = [r.expr for a in made.expr.args[:1] for r in ctx.symbols.resolve(a, made.scope)]
            if len(made.expr.args) > 1 or any(":" in str(getattr(n, "value", "")) for n in names):
                return True
    return False


def _regions(ctx: Context) -> Iterator[Finding]:
    devices: dict[Scope, set[str]] = {}
    for node in ctx.symbols.nodes(ast.With, ast.AsyncWith, ast.FunctionDef, ast.AsyncFunctionDef):
        places = (
            [d for d in node.decorator_list if isinstance(d, ast.Call)]
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            else [i.context_expr for i in node.items]
        )
        for place in places:
            region = ctx.amp.region(place, ctx.symbols.scope(place))
            if region is not None and region.enabled is not False and not region.framework:
                inside = ctx.symbols.scope(node.body[0])  # of a decorated function its own
                yield from _region(ctx, region, place, node.body, devices, inside)

    for call, scope in ctx.calls_named("enter_context"):
        region = ctx.amp.region(call.args[0], scope) if call.args else None
        if region is not None and region.enabled is not False and not region.framework:
            yield from _region(ctx, region, call.args[0], scope.body, devices, scope)


def _region(
    ctx: Context,
    region: Region,
    place: ast.expr,
    body: Sequence[ast.stmt],
    devices: dict[Scope, set[str]],
    scope: Scope,
) -> Iterator[Finding]:
    if scope not in devices:
        devices[scope] = _devices(ctx, [scope, ctx.symbols.module]) or _devices(ctx, _around(ctx, scope))
    made = region.node if isinstance(region.node, ast.Call) and hasattr(region.node, "lineno") else place
    here = devices[scope]
    if region.dtype in ("fp32", "fp64"):
        yield from _wide(ctx, region, made, body, scope, here)
        return
    if region.device in ("cpu", "other") and here == {"cuda"}:
        yield ctx.finding(
            "R27", made, ERROR,
            f"this region is for {'CPU' if region.device == 'cpu' else 'other'} ops, but model and data are on CUDA: one region covers one "
            "device type, so nothing is cast", 'torch.autocast("cuda", dtype=torch.float16)',
        )  # fmt: skip
        return
    elsewhere = region.device == "cuda" and here and here <= {"cpu", "other"} and "cuda.is_available" not in ctx.text
    if elsewhere and not asks_for_device(ctx, place, region.node):
        yield ctx.finding(
            "R27", made, WARNING,
            "this region is for CUDA ops, but the device here is another one: nothing is cast (a CUDA GradScaler disables itself as well)",
            'torch.autocast("cpu", dtype=torch.bfloat16)  # the device type of model and data',
        )  # fmt: skip
        return
    for call, target in started(ctx, body):
        if runs_a_model(ctx, target):
            yield ctx.finding(
                "R27", call, WARNING,
                f"autocast belongs to a thread: what `{ctx.str(call.func)}` starts inside this region runs without it, in float32",
                "def worker(...):\n    with torch.autocast(\"cuda\"):\n        ...",
            )  # fmt: skip
            return


def _wide(
    ctx: Context, region: Region, made: ast.AST, body: Sequence[ast.stmt], scope: Scope, here: set[str]
) -> Iterator[Finding]:
    """dtype=torch.float32: other devices than CUDA refuse it and stay off; on CUDA the region is on, in float32."""
    wide = "float32" if region.dtype == "fp32" else "float64"
    if _chosen_by_option(ctx, made):
        return
    if region.device in ("cpu", "other"):
        yield ctx.finding(
            "R27", made, ERROR,
            f"autocast with dtype=torch.{wide}: torch warns \"target dtype is not supported. Disabling autocast\" and casts nothing",
            f'torch.autocast("{region.device if region.device == "cpu" else "cuda"}", dtype=torch.bfloat16)',
        )  # fmt: skip
    elif (here - {"cpu"} or not here) and trains_in_float32(ctx, region, body, scope):
        yield ctx.finding(
            "R27", made, WARNING,
            f"the region is on but everything runs in {wide}: mixed precision was asked for and none happens",
            'torch.autocast("cuda", dtype=torch.float16)  # float32 is for a part of a model inside a half region',
        )  # fmt: skip


def _chosen_by_option(ctx: Context, call: ast.AST) -> bool:
    """`dtype=getattr(torch, args.dtype)`, `dtype=DTYPES[args.dtype]`: float32 is then one choice of the command line."""
    expr = keyword(call, "dtype", "fast_dtype") or argument(call, 1) if isinstance(call, ast.Call) else None
    if expr is None:
        return False
    for ref in ctx.symbols.resolve(expr, ctx.symbols.scope(call)):
        made = ref.expr
        key = made.slice if isinstance(made, ast.Subscript) else None
        if key is not None and ctx.symbols.const(key, ref.scope) is UNKNOWN:
            key = None  # it is the same for every choice
        if isinstance(made, ast.Call) and made.args:
            key = made.args[-1]
        if key is not None and last_name(key) in ctx.symbols.configs.options():
            return True
    return False


def _around(ctx: Context, scope: Scope) -> list[Scope]:
    """The functions that may have placed what a function works on: the methods of its class, and its callers."""
    cls = ctx.symbols.class_of(scope)
    found = [f for f in ctx.symbols.function_scopes if cls is not None and f.owner is cls]
    found += [ctx.symbols.scope(c) for c in ctx.symbols.call_sites(scope)]
    return [scope, *found]


def _devices(ctx: Context, scopes: Sequence[Scope]) -> set[str]:
    """Device types that these functions move modules and tensors to."""
    found: set[str] = set()
    for call in ctx.symbols.calls:
        where = ctx.symbols.scope(call)
        if not any(where is s for s in scopes):
            continue
        if not isinstance(call.func, ast.Attribute) or ctx.symbols.qual(call.func) is not None:
            continue
        if call.func.attr == "cuda":
            found.add("cuda")
        elif call.func.attr == "cpu" and (dotted(call.func.value) or "").rpartition(".")[2].lower() in MODEL_NAMES:
            found.add("cpu")
        elif call.func.attr == "to":
            for expr in [*call.args[:1], keyword(call, "device")]:
                if expr is not None and not _is_dtype(ctx, expr, where) and not _taken_away(ctx, call, expr):
                    found.add("cuda" if _is_rank(expr) else ctx.amp.device(expr, where))
    return found


def _taken_away(ctx: Context, call: ast.Call, device: ast.expr) -> bool:
    """`out.to("cpu")`, `model.to("cpu").state_dict()`: a result or a copy of weights, not where the model runs."""
    if not isinstance(device, ast.Constant) or device.value != "cpu" or not isinstance(call.func, ast.Attribute):
        return False
    owner = (dotted(call.func.value) or "").rpartition(".")[2].lower()
    return owner not in MODEL_NAMES or isinstance(ctx.symbols.parent.get(call), ast.Attribute)


def _is_rank(expr: ast.expr) -> bool:
    """`.to(0)`, `.to(local_rank)`: the number of a GPU."""
    if isinstance(expr, ast.Constant):
        return isinstance(expr.value, int)
    return last_name(expr).lower() in _RANKS


def _is_dtype(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    name = ctx.symbols.qual(expr, scope) or ""
    return (
        name.startswith("torch.")
        or (isinstance(expr, ast.Attribute) and expr.attr == "dtype")
        or isinstance(expr, ast.Subscript)
    )


def _frameworks(ctx: Context) -> Iterator[Finding]:
    """fp16 asked of a framework that is also told to stay on the CPU."""
    for call in ctx.symbols.calls:
        leaf, scope = last_name(call.func), ctx.symbols.scope(call)
        if leaf not in ("Trainer", "Fabric", "Accelerator") and not leaf.endswith("TrainingArguments"):
            continue
        given = {k.arg: _setting(ctx, k.value, scope) for k in call.keywords}
        half = (
            given.get("precision") in (16, "16", "16-mixed")
            or given.get("mixed_precision") == "fp16"
            or given.get("fp16") is True
        )
        on_cpu = given.get("accelerator") == "cpu" or True in (
            given.get("cpu"),
            given.get("use_cpu"),
            given.get("no_cuda"),
        )
        if half and on_cpu:
            yield ctx.finding(
                "R27", call, WARNING,
                "float16 mixed precision is asked for on the CPU: it is refused, or replaced by bfloat16 or float32",
                "bfloat16 on the CPU (\"bf16-mixed\", bf16=True), or train on a GPU",
            )  # fmt: skip


def _setting(ctx: Context, expr: ast.expr, scope: Scope) -> object:
    """A constant, or what a configuration object holds: here also whether a switch is on."""
    values = [r.expr.value if isinstance(r.expr, ast.Constant) else UNKNOWN for r in ctx.symbols.resolve(expr, scope)]
    return values[0] if len(values) == 1 else ctx.symbols.const(expr, scope)


RULE = Rule(
    id="R27",
    name="autocast-active",
    title="Autocast is asked for but not on",
    how="code, run, log",
    belief="Autocast works for CUDA only; once entered it is on everywhere.",
    truth=(
        "There is autocast for cpu, xpu, hpu and more. One region covers one device type and one thread (a worker thread under an outer "
        "region gave float32). dtype=float32 disables a CPU region with a warning; a CUDA region is on with it and runs everything in float32, "
        "which is right for a part of a model inside another region and undoes mixed precision around a training step. "
        "torch.cuda.amp.autocast on a machine without CUDA only warns."
    ),
    experiment="A linear layer in a region, in a thread under it, with dtype float32 on the CPU, and for another device type.",
    bad='with torch.autocast("cpu"):\n    out = model(x.cuda())',
    good='with torch.autocast("cuda"):\n    out = model(x.cuda())',
    check=check,
    trigger=r"autocast|16-mixed|mixed_precision|fp16=True|precision=['\"]?16",
)
