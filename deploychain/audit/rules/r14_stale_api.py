"""R14: torch.cuda.amp is deprecated."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import keyword, last_name
from deploychain.audit.context import NOTE, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.tree import walk

_NAMES = ("autocast", "GradScaler", "custom_fwd", "custom_bwd")
_STALE = {f"torch.{device}.amp.{name}": (device, name) for device in ("cuda", "cpu") for name in _NAMES}
_STALE_MODULE = re.compile(r"torch\.(cuda|cpu)\.amp(\.(autocast_mode|grad_scaler|common))?$")
# Printing the version is no test of it, and is_torch_available asks for something else.
_VERSION_TEST = re.compile(
    r"(has|get)attr\(\s*torch(\.amp)?\s*,\s*['\"](amp|autocast|GradScaler|custom_fwd)['\"]\s*[,)]"
    r"|torch\.__version__[^\n]*(split|[<>]|startswith|==)|\b(parse|Version|LooseVersion|tuple|map|int|get_version)\([^\n]*torch\.__version__"
    r"|from torch import __version__|TORCH_GREATER|TORCH_GE|_TORCH_\w*\d|TORCH_VERSION|TORCH_\d|torch_version|version\.parse"
    r"|is_torch_\w*(version|greater|less|ge|lt|\d)|TORCH_2_4|check_version\("
)


def check(ctx: Context) -> Iterator[Finding]:
    if supports_old_torch(ctx):
        return
    done: set[int] = set()
    for node in ctx.symbols.nodes(ast.ImportFrom, ast.Attribute):
        if isinstance(node, ast.ImportFrom) and _STALE_MODULE.match(node.module or ""):
            names = [
                a.name for a in node.names if (a.name in _NAMES and _is_used(ctx, a.asname or a.name)) or a.name == "*"
            ]
            device = "cpu" if (node.module or "").startswith("torch.cpu") else "cuda"
            if names:
                yield ctx.finding(
                    "R14", node, NOTE, f"{node.module}.{{{', '.join(names)}}} is deprecated since torch 2.4 (FutureWarning on every use)",
                    _import_fix(names, device),
                )  # fmt: skip
        elif isinstance(node, ast.Attribute) and node.attr in _NAMES and node.lineno not in done:
            stale = _STALE.get(ctx.symbols.qual(node) or "") or _imported_at_run_time(ctx, node)
            # Attribute chains only: an imported name was reported at its import.
            if stale is not None and _makes_one(ctx, node):
                done.add(node.lineno)
                device, name = stale
                yield ctx.finding(
                    "R14",
                    node,
                    NOTE,
                    f"torch.{device}.amp.{name} is deprecated since torch 2.4 (FutureWarning)",
                    _fix(ctx, node, device, name),
                )


def _is_used(ctx: Context, name: str) -> bool:
    """An imported name that is called, decorates, or is handed on: only that gives the warning."""
    return any(
        node.id == name and isinstance(node.ctx, ast.Load) and _makes_one(ctx, node)
        for node in ctx.symbols.nodes(ast.Name)
    )


def _makes_one(ctx: Context, node: ast.expr) -> bool:
    """Called, decorating, a base class or kept under another name; an annotation or isinstance gives no warning."""
    parent = ctx.symbols.parent.get(node)
    if isinstance(parent, ast.Call):
        return parent.func is node or last_name(parent.func) == "partial"
    if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
        return node in parent.decorator_list
    if isinstance(parent, ast.ClassDef):
        return node in parent.bases
    if isinstance(parent, ast.AnnAssign):
        return parent.value is node
    return isinstance(parent, ast.Assign | ast.Dict | ast.IfExp | ast.keyword | ast.Return | ast.NamedExpr | ast.BoolOp)


def _imported_at_run_time(ctx: Context, node: ast.Attribute) -> tuple[str, str] | None:
    """`importlib.import_module("torch.cuda.amp").GradScaler`"""
    if "import_module" not in ctx.text:
        return None
    for ref in ctx.symbols.resolve(node.value, ctx.symbols.scope(node)):
        if isinstance(ref.expr, ast.Call) and last_name(ref.expr.func) == "import_module" and ref.expr.args:
            found = _STALE.get(f"{ctx.symbols.const(ref.expr.args[0], ref.scope)}.{node.attr}")
            if found is not None:
                return found
    return None


def _fix(ctx: Context, node: ast.Attribute, device: str, name: str) -> str:
    parent = ctx.symbols.parent.get(node)
    if name in ("custom_fwd", "custom_bwd"):
        return f'torch.amp.{name}(device_type="{device}")'
    if isinstance(parent, ast.Call) and parent.func is node:
        enabled = parent.args[0] if name == "autocast" and parent.args else keyword(parent, "enabled")
        others = [f"{k.arg}={ctx.str(k.value)}" for k in parent.keywords if k.arg and k.arg != "enabled"]
        if enabled is not None:
            others.append(f"enabled={ctx.str(enabled)}")
        return f"torch.amp.{name}({', '.join([chr(34) + device + chr(34), *others])})"
    return f'torch.amp.{name}("{device}")'


def _import_fix(names: list[str], device: str) -> str:
    wanted = [n for n in names if n != "*"] or ["autocast", "GradScaler"]
    uses = []
    for name in wanted:
        uses.append(f'{name}("{device}")' if name in ("autocast", "GradScaler") else f'{name}(device_type="{device}")')
    return f"from torch.amp import {', '.join(wanted)}  # then {', '.join(uses)}"


def supports_old_torch(ctx: Context) -> bool:
    """The file also knows the new names, or asks for the version: it means to run on torch < 2.4 as well."""
    if ctx.says(_VERSION_TEST):
        return True
    for node in ctx.symbols.nodes(ast.Try):
        if not node.handlers:
            continue
        inside = [n for part in (node.body, *(h.body for h in node.handlers)) for s in part for n in walk(s)]
        stale = any(
            (isinstance(n, ast.ImportFrom) and _STALE_MODULE.match(n.module or ""))
            or (isinstance(n, ast.Attribute) and ctx.symbols.qual(n) in _STALE)
            for n in inside
        )
        # With nothing newer to fall back to, as in `except ImportError: autocast = None`, the old name is all there is.
        if stale and any(
            (isinstance(n, ast.ImportFrom) and (n.module or "") in ("torch.amp", "torch"))
            or (
                isinstance(n, ast.Attribute)
                and (ctx.symbols.qual(n) or "").startswith(("torch.amp.", "torch.autocast"))
            )
            for n in inside
        ):
            return True
    return False


RULE = Rule(
    id="R14",
    name="stale-api",
    title="torch.cuda.amp is deprecated",
    how="code",
    belief="torch.cuda.amp.autocast and torch.cuda.amp.GradScaler are the names to use.",
    truth="They warn since torch 2.4. torch.amp.* takes the device; torch.cuda.amp.autocast on a machine without CUDA only warns and does nothing.",
    experiment="The warnings that the old names give.",
    bad="from torch.cuda.amp import autocast, GradScaler",
    good='from torch.amp import autocast, GradScaler  # autocast("cuda"), GradScaler("cuda")',
    check=check,
    trigger=r"amp\b(?:(?<=\.amp)|(?<=import amp)|(?<=, amp))",
)
