"""R08: what is trained has FP32 parameters."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.adapters import cast_back, frozen_modules
from deploychain.audit.astnames import Scope, dotted, keyword
from deploychain.audit.branches import taken
from deploychain.audit.context import ERROR, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.half_parameters import optimizers, trained_dtype
from deploychain.audit.tree import walk

VANISHING = 2.0**-25  # this and everything below rounds to 0 in float16
_ADAM = frozenset({"Adam", "AdamW", "NAdam", "RAdam", "Adamax"})


def check(ctx: Context) -> Iterator[Finding]:
    yield from _default_dtype(ctx)
    done: set[int] = set()
    stepped: dict[str, ast.Call] = {}
    for seen in ctx.seen:
        call = seen.node
        if not isinstance(call, ast.Call):
            continue
        leaf = seen.name.rpartition(".")[2]
        if seen.name.startswith("torch.optim.") and ".lr_scheduler" not in seen.name and seen.args:
            for name in _module_names(call):
                stepped[name] = call
            if seen.args[0].dtype == "fp16" and seen.args[0].sure and id(call) not in done:
                done.add(id(call))
                made = trained_dtype(ctx, call)
                via = seen.args[0].via or call
                if made is not None and made[0] == "fp16":
                    via = made[1]
                elif made is not None or _trains_added_parameters(ctx, call) or cast_back(ctx, call, via):
                    continue
                elif taken(ctx.amp, via) is False:
                    continue  # `if precision == "fp16":` in a function that is called with another word
                yield from _judge(ctx, call, leaf, via)
        elif seen.name in (".half", ".to") and seen.result.dtype == "fp16" and isinstance(call.func, ast.Attribute):
            # model.half() after the optimiser was made changes the same parameters
            text = dotted(call.func.value)
            optimizer = stepped.get(text or "")
            if (
                (
                    optimizer is not None
                    and seen.result.module
                    and id(optimizer) not in done
                    and _same_function(ctx, call, optimizer)
                )
                and call.lineno > optimizer.lineno
                and not _for_inference(ctx, call, optimizer)
            ):
                done.add(id(optimizer))
                name = ctx.symbols.qual(optimizer.func) or ""
                yield from _judge(ctx, optimizer, name.rpartition(".")[2], call)
        elif leaf.endswith("Trainer") and ctx.amp.framework.trainer == "fp16" and not _peft(ctx):
            model = next((a for a in seen.args if a.module and a.dtype == "fp16" and a.sure), None)
            if model is not None and id(call) not in done:
                done.add(id(call))
                yield ctx.finding(
                    "R08", model.via or call, ERROR,
                    "the model is loaded in float16 and trained with fp16=True: the trainer's GradScaler raises \"Attempting to "
                    "unscale FP16 gradients\" at the first step",
                    "AutoModel.from_pretrained(name)  # FP32 weights; fp16=True turns autocast on",
                )  # fmt: skip

    for call in optimizers(ctx):
        made = trained_dtype(ctx, call) if id(call) not in done else None
        if made is not None and made[0] == "fp16":
            done.add(id(call))
            name = ctx.symbols.qual(call.func) or ""
            yield from _judge(ctx, call, name.rpartition(".")[2], made[1])
    yield from _true_half(ctx, done)


def _true_half(ctx: Context, done: set[int]) -> Iterator[Finding]:
    """precision="16-true" of Lightning and Fabric: every parameter is float16."""
    if "16-true" not in (ctx.amp.framework.lightning, ctx.amp.framework.fabric):
        return
    for call in optimizers(ctx):
        name = ctx.symbols.qual(call.func) or ""
        if id(call) not in done and name.startswith("torch.optim."):
            done.add(id(call))
            yield from _judge(ctx, call, name.rpartition(".")[2], call, 'precision="16-true"')


def _default_dtype(ctx: Context) -> Iterator[Finding]:
    """torch.set_default_dtype(torch.float16), never set back, in a file that trains."""
    if "set_default_" not in ctx.text:
        return
    calls = list(ctx.calls("torch.set_default_dtype", "torch.set_default_tensor_type"))
    if len(calls) == 1 and calls[0][0].args:
        call, scope = calls[0]
        given = call.args[0]
        half = ctx.amp.dtype(given, scope) == "fp16" or str(ctx.symbols.const(given, scope)).endswith(".HalfTensor")
        trained = list(optimizers(ctx)) if half else []
        if trained:
            if not _live_scaler(ctx):
                for optimizer in trained:
                    name = ctx.symbols.qual(optimizer.func) or ""
                    yield from _judge(ctx, optimizer, name.rpartition(".")[2], call)
                return
            yield ctx.finding(
                "R08", call, ERROR,
                "every parameter that is made from here on is float16, and a GradScaler is used: unscale_ raises \"Attempting to unscale "
                "FP16 gradients\"", "leave the default at torch.float32; autocast casts what is worth it",
            )  # fmt: skip


def _trains_added_parameters(ctx: Context, call: ast.Call) -> bool:
    """The half model is frozen: what is trained was added to it later (LoRA), in a dtype that is not shown."""
    names = set(_module_names(call))
    for argument in call.args[:1]:
        for ref in ctx.symbols.resolve(argument, ctx.symbols.scope(call)):
            names |= {n for node in walk(ref.expr) if isinstance(node, ast.Call) for n in _module_names(node)}
    return any(dotted(module) in names for module, _ in frozen_modules(ctx))


def _judge(ctx: Context, call: ast.Call, leaf: str, via: ast.AST, why: str = "") -> Iterator[Finding]:
    scope = ctx.symbols.scope(call)
    given = keyword(call, "eps")
    eps = ctx.symbols.const(given, scope) if given is not None else 1e-8
    fix = 'keep the parameters in float32 and run the forward pass under torch.autocast("cuda", dtype=torch.float16)'
    why = why or f"made half in line {getattr(via, 'lineno', call.lineno)}"
    if not why.startswith("precision=") and _live_scaler(ctx):
        yield ctx.finding(
            "R08", call, ERROR,
            f"the optimiser gets float16 parameters ({why}) and a GradScaler is used: unscale_ raises "
            "\"Attempting to unscale FP16 gradients\"", fix,
        )  # fmt: skip
    elif leaf in _ADAM and isinstance(eps, int | float) and abs(eps) <= VANISHING:
        yield ctx.finding(
            "R08", call, ERROR,
            f"{leaf} on float16 parameters ({why}): eps={eps:g} rounds to 0 in float16, so the first step "
            "divides by zero and the weights become NaN or inf; weight decay of lr*wd < 5e-4 is lost as well", fix,
        )  # fmt: skip


def _live_scaler(ctx: Context) -> bool:
    for call in ctx.amp.scaler_calls:
        if ctx.amp.call_enabled(call, ctx.symbols.scope(call)) is not False:
            return True
    framework = ctx.amp.framework
    if "fp16" in (framework.accelerate, framework.fabric, framework.lightning):
        return True
    return (
        any(e.kind == "scaler-step" for g in ctx.graphs for n in g.nodes for e in n.events) and not ctx.amp.scaler_calls
    )


def _module_names(call: ast.Call) -> Iterator[str]:
    for node in walk(call):
        if isinstance(node, ast.Attribute) and node.attr in ("parameters", "named_parameters"):
            text = dotted(node.value)
            if text:
                yield text


def _same_function(ctx: Context, a: ast.AST, b: ast.AST) -> bool:
    return ctx.symbols.scope(a) is ctx.symbols.scope(b)


def _for_inference(ctx: Context, call: ast.Call, optimizer: ast.Call) -> bool:
    """Training is over when the model is made half: every backward of this function comes before."""
    scope: Scope = ctx.symbols.scope(call)
    lines = [
        e.node.lineno
        for g in ctx.graphs
        for n in g.nodes
        for e in n.events
        if e.kind in ("backward", "scaler-step") and ctx.symbols.scope(e.node) is scope
    ]
    return bool(lines) and max(lines) < call.lineno


def _peft(ctx: Context) -> bool:
    return any(v.startswith("peft") for names in ctx.symbols.imports.values() for v in names)


RULE = Rule(
    id="R08",
    name="half-params-in-training",
    title="Trainable parameters are float16",
    how="code, model, run",
    belief="Half the model and train it: AMP keeps the FP32 copy by itself.",
    truth=(
        'autocast needs FP32 parameters; it casts them for each op. With float16 parameters GradScaler raises "Attempting to '
        "unscale FP16 gradients\", Adam's eps=1e-8 is 0 and the first step gives NaN, and weight decay vanishes (1.0 after 1000 "
        "steps of lr*wd=1e-5, where FP32 has 0.990)."
    ),
    experiment="GradScaler and Adam on float16 and float32 parameters; weight decay over 1000 steps.",
    bad="model = Net().half().cuda()\noptimizer = torch.optim.AdamW(model.parameters())",
    good='model = Net().cuda()\nwith torch.autocast("cuda", dtype=torch.float16):\n    loss = criterion(model(x), y)',
    check=check,
    trigger=r"set_default_dtype|autocast|half|float16|fp16|16-mixed|16-true|precision=16|HalfTensor",
)
