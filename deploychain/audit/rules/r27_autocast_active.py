"""R27: autocast that was asked for and is not on."""

# ruff: noqa: E501, SIM102  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.amp import AUTOCASTS
from deploychain.audit.astnames import Scope, keyword, last_name
from deploychain.audit.context import ERROR, WARNING, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.frameworks import Region


def check(ctx: Context) -> Iterator[Finding]:
    yield from _not_entered(ctx)
    yield from _regions(ctx)


def _not_entered(ctx: Context) -> Iterator[Finding]:
    """`torch.autocast("cuda")` as a statement, or `@autocast` without parentheses."""
    for call, _ in ctx.calls(*AUTOCASTS):
        if isinstance(ctx.symbols.parent.get(call), ast.Expr):
            yield ctx.finding(
                "R27", call, ERROR, f"`{ctx.str(call)}` makes a region and throws it away: autocast stays off",
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


def _regions(ctx: Context) -> Iterator[Finding]:
    devices: dict[Scope, set[str]] = {}
    for node in ctx.symbols.nodes(ast.With, ast.AsyncWith, ast.FunctionDef):
        if isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                region = ctx.amp.region(item.context_expr, ctx.symbols.scope(item.context_expr))
                if region is not None and region.enabled is not False and not region.framework:
                    yield from _region(ctx, region, item.context_expr, node.body, devices)
        elif isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                region = (
                    ctx.amp.region(decorator, ctx.symbols.scope(decorator)) if isinstance(decorator, ast.Call) else None
                )
                if region is not None and region.enabled is not False and not region.framework:
                    yield from _region(ctx, region, decorator, node.body, devices)


def _region(
    ctx: Context, region: Region, place: ast.expr, body: list[ast.stmt], devices: dict[Scope, set[str]]
) -> Iterator[Finding]:
    scope = ctx.symbols.scope(place)
    if scope not in devices:
        devices[scope] = _devices(ctx, scope)
    if region.dtype == "fp32":
        yield ctx.finding(
            "R27", place, ERROR,
            "autocast with dtype=torch.float32: torch warns \"target dtype is not supported. Disabling autocast\" and runs everything in float32",
            f'torch.autocast("{region.device if region.device != "?" else "cuda"}", dtype=torch.float16)',
        )  # fmt: skip
        return
    if region.device == "cpu" and devices[scope] == {"cuda"}:
        yield ctx.finding(
            "R27", place, ERROR,
            "this region is for CPU ops, but model and data are on CUDA: one region covers one device type, so nothing is cast",
            'torch.autocast("cuda", dtype=torch.float16)',
        )  # fmt: skip
        return
    if region.device == "cuda" and devices[scope] == {"cpu"} and "cuda.is_available" not in ctx.text:
        yield ctx.finding(
            "R27", place, WARNING,
            "this region is for CUDA ops, but the device here is the CPU: nothing is cast (a CUDA GradScaler disables itself as well)",
            'torch.autocast("cpu", dtype=torch.bfloat16)',
        )  # fmt: skip
        return
    thread = _thread(ctx, body)
    if thread is not None:
        yield ctx.finding(
            "R27", thread, WARNING,
            f"autocast belongs to a thread: what `{ctx.str(thread.func)}` starts inside this region runs without it, in float32",
            "def worker(...):\n    with torch.autocast(\"cuda\"):\n        ...",
        )  # fmt: skip


def _devices(ctx: Context, scope: Scope) -> set[str]:
    """Device types that this function or the module moves modules and tensors to."""
    found: set[str] = set()
    for call in ctx.symbols.calls:
        where = ctx.symbols.scope(call)
        if where is not scope and where is not ctx.symbols.module:
            continue
        if not isinstance(call.func, ast.Attribute) or ctx.symbols.qual(call.func) is not None:
            continue
        if call.func.attr == "cuda":
            found.add("cuda")
        elif call.func.attr == "to":
            for expr in [*call.args[:1], keyword(call, "device")]:
                if expr is not None and not _is_dtype(ctx, expr, where):
                    found.add(ctx.amp.device(expr, where))
    return found


def _is_dtype(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    name = ctx.symbols.qual(expr, scope) or ""
    return (
        name.startswith("torch.")
        or (isinstance(expr, ast.Attribute) and expr.attr == "dtype")
        or isinstance(expr, ast.Subscript)
    )


def _thread(ctx: Context, body: list[ast.stmt]) -> ast.Call | None:
    for statement in body:
        for node in ast.walk(statement):
            if not isinstance(node, ast.Call):
                continue
            name = ctx.symbols.qual(node.func) or ""
            leaf = last_name(node.func)
            if name in ("threading.Thread",) and keyword(node, "target") is not None:
                if not _enters_autocast(ctx, keyword(node, "target")):
                    return node
            elif leaf in ("submit", "map") and isinstance(node.func, ast.Attribute) and node.args:
                if _is_thread_pool(ctx, node.func.value) and not _enters_autocast(ctx, node.args[0]):
                    return node
    return None


def _is_thread_pool(ctx: Context, expr: ast.expr) -> bool:
    for ref in ctx.symbols.resolve(expr, ctx.symbols.scope(expr)):
        if isinstance(ref.expr, ast.Call):
            name = ctx.symbols.qual(ref.expr.func, ref.scope) or ""
            if name.endswith(("ThreadPoolExecutor", "pool.ThreadPool")):
                return True
    return False


def _enters_autocast(ctx: Context, target: ast.expr | None) -> bool:
    """The thread's function opens a region of its own, or does not run a model that this file shows."""
    if target is None:
        return True
    function = ctx.symbols.local_function(target, ctx.symbols.scope(target))
    node: ast.AST | None = function.node if function is not None else target if isinstance(target, ast.Lambda) else None
    if node is None:
        text = ctx.str(target).lower()
        return not any(word in text for word in ("model", "net", "forward", "infer", "predict"))
    for inner in ast.walk(node):
        if isinstance(inner, ast.With):
            if any(ctx.amp.region(i.context_expr, ctx.symbols.scope(i.context_expr)) for i in inner.items):
                return True
    decorators = getattr(node, "decorator_list", [])
    if any(ctx.amp.region(d, ctx.symbols.scope(d)) for d in decorators):
        return True
    calls_model = any(
        isinstance(n, ast.Call)
        and any(w in last_name(n.func).lower() for w in ("model", "net", "forward", "encoder", "replica"))
        for n in ast.walk(node)
    )
    return not calls_model


RULE = Rule(
    id="R27",
    name="autocast-active",
    title="Autocast is asked for but not on",
    how="code, run, log",
    belief="Autocast works for CUDA only; once entered it is on everywhere.",
    truth=(
        "There is autocast for cpu, xpu, hpu and more. One region covers one device type and one thread (a worker thread under an outer "
        "region gave float32). dtype=float32 disables it with a warning; torch.cuda.amp.autocast on a machine without CUDA only warns."
    ),
    experiment="A linear layer in a region, in a thread under it, with dtype float32, and for another device type.",
    bad='with torch.autocast("cpu"):\n    out = model(x.cuda())',
    good='with torch.autocast("cuda"):\n    out = model(x.cuda())',
    check=check,
    trigger=r"autocast",
)
