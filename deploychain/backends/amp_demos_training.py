"""Experiments on training loops: R01 to R08, R12, R16, R17, R25 to R28."""

# mypy: disable-error-code="no-untyped-call, func-returns-value, no-any-return"
# ruff: noqa: E501
from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from deploychain.backends.amp_demos import Facts, caught

HALF = torch.float16


def _scaler(**settings: Any) -> torch.amp.GradScaler:
    return torch.amp.GradScaler("cpu", **settings)


def _problem(samples: int = 256, features: int = 16, classes: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(samples, features)
    return x, (x @ torch.randn(features, classes)).argmax(1)


def r01() -> tuple[Facts, str]:
    logits, y = torch.randn(64, 2000, dtype=HALF) * 2, torch.randint(0, 2000, (64,))
    exact = F.cross_entropy(logits.double(), y).item()
    with torch.autocast("cpu", dtype=HALF):
        inside = F.cross_entropy(logits, y)
    outside = F.cross_entropy(logits, y)
    floated = F.cross_entropy(logits.float(), y)
    smooth = F.cross_entropy(logits, y, label_smoothing=0.1)
    overflow = (outside.detach() * torch.tensor(65536.0)).half()
    return {
        "dtype inside autocast": str(inside.dtype),
        "dtype outside": str(outside.dtype),
        "relative error inside": abs(inside.item() / exact - 1),
        "relative error outside": abs(outside.item() / exact - 1),
        "relative error outside with .float()": abs(floated.item() / exact - 1),
        "label_smoothing outside": smooth.item(),
        "label_smoothing outside with .float()": F.cross_entropy(logits.float(), y, label_smoothing=0.1).item(),
        "float16 loss times 65536": overflow.item(),
    }, "the dtype decides, not the place: float16 logits outside autocast give a float16 loss"


def r02() -> tuple[Facts, str]:
    def update(scaled: bool, warm: bool) -> float:
        p = nn.Parameter(torch.ones(1))
        optimizer, scaler = torch.optim.SGD([p], lr=1.0), _scaler()
        if warm:
            scaler.scale(torch.ones(1))  # something else was scaled before
        loss = (3.0 * p).sum()
        (scaler.scale(loss) if scaled else loss).backward()
        scaler.step(optimizer)
        return 1.0 - p.item()

    return {
        "first step without scale": caught(lambda: update(False, False)),
        "update with scale": update(True, False),
        "update without scale, scale known": update(False, True),
        "ratio": update(True, False) / update(False, True),
    }, "unscaled gradients are divided by the scale: 1/65536 of the step is made"


def _poisoned(zero: bool, steps: int = 40, bad: int = 2) -> tuple[int, float]:
    """(skipped steps, log2 of the last scale) of a loop with one planted inf."""
    x, y = _problem(64)
    model = nn.Linear(16, 4)
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), _scaler(init_scale=2.0**10)
    skipped = 0
    for step in range(steps):
        data = x.clone()
        if step == bad:
            data[0, 0] = float("inf")
        scaler.scale(F.cross_entropy(model(data), y)).backward()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped += scaler.get_scale() < before
        if zero:
            optimizer.zero_grad()
    return skipped, torch.tensor(scaler.get_scale()).log2().item()


def r03() -> tuple[Facts, str]:
    with_zero, without = _poisoned(True), _poisoned(False)
    return {
        "skipped of 40, zero_grad after the step": with_zero[0],
        "skipped of 40, no zero_grad": without[0],
        "log2 scale at the end, zero_grad": with_zero[1],
        "log2 scale at the end, no zero_grad": without[1],
    }, "one inf stays in .grad and every later step is skipped"


def r04() -> tuple[Facts, str]:
    def step(bad: bool) -> tuple[object, bool]:
        p = nn.Parameter(torch.ones(1))
        optimizer, scaler = torch.optim.SGD([p], lr=0.1), _scaler()
        scaler.scale((p * (float("inf") if bad else 1.0)).sum()).backward()
        before = scaler.get_scale()
        returned = scaler.step(optimizer)
        scaler.update()
        return returned, scaler.get_scale() < before

    clean, skipped = step(False), step(True)
    return {
        "step() on a clean step": repr(clean[0]),
        "step() on a skipped step": repr(skipped[0]),
        "scale fell, clean step": clean[1],
        "scale fell, skipped step": skipped[1],
    }, "the return value is None either way; the scale after update() tells"


def r05() -> tuple[Facts, str]:
    def train(reduction: str) -> tuple[float, int, int, float]:
        torch.manual_seed(1)
        x, y = _problem(256)
        model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
        lr = 0.5 if reduction == "mean" else 0.5 / 256
        optimizer, scaler = torch.optim.SGD(model.parameters(), lr=lr), _scaler()
        skips: list[int] = []
        for step in range(150):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=HALF):
                loss = F.cross_entropy(model(x) * 8, y, reduction=reduction)
            scaler.scale(loss).backward()
            before = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
            if scaler.get_scale() < before:
                skips.append(step)
        accuracy = (model(x).argmax(1) == y).float().mean().item()
        return torch.tensor(scaler.get_scale()).log2().item(), len(skips), max(skips, default=-1) + 1, accuracy

    mean, total = train("mean"), train("sum")
    return {
        "log2 scale, mean loss": mean[0],
        "log2 scale, summed loss": total[0],
        "skips, summed loss": total[1],
        "last skip of the summed loss": total[2],
        "accuracy, mean loss": mean[3],
        "accuracy, summed loss": total[3],
    }, "a scale far below 2^14 is healthy where the loss is large"


def r06() -> tuple[Facts, str]:
    def doublings(interval: int, steps: int = 5000) -> float:
        scaler = _scaler(growth_interval=interval)
        p = nn.Parameter(torch.ones(1))
        optimizer = torch.optim.SGD([p], lr=0.0)
        scaler.scale(p.sum()).backward()
        for _ in range(steps):
            p.grad = torch.ones(1)
            scaler.step(optimizer)
            scaler.update()
        return torch.tensor(scaler.get_scale()).log2().item()

    def skip_rate(interval: int, steps: int = 60000, ceiling: int = 20) -> float:
        scale, clean, skips = 16, 0, 0
        for _ in range(steps):
            if scale > ceiling:
                scale, clean, skips = scale - 1, 0, skips + 1
            else:
                clean += 1
                if clean == interval:
                    scale, clean = scale + 1, 0
        return 100 * skips / steps

    facts: Facts = {f"log2 scale after 5000 clean steps, interval {n}": doublings(n) for n in (500, 1000, 2000, 4000)}
    facts |= {f"skipped at the ceiling, interval {n} (%)": skip_rate(n) for n in (20, 500, 2000)}
    facts["max(1000, batch // 16) for batches 32, 512, 16000"] = [max(1000, b // 16) for b in (32, 512, 16000)]
    return facts, "the interval sets how often a too high scale is tried, nothing about the batch"


def r07() -> tuple[Facts, str]:
    def update(unscale: bool) -> float:
        p = nn.Parameter(torch.zeros(4))
        optimizer, scaler = torch.optim.SGD([p], lr=1.0), _scaler()
        scaler.scale((p * 5.0).sum()).backward()
        if unscale:
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_([p], 1.0)
        scaler.step(optimizer)
        return p.detach().norm().item()

    return {
        "size of the update, unscaled first": update(True),
        "size of the update, still scaled": update(False),
        "ratio": update(True) / update(False),
    }, "max_norm=1 on scaled gradients clips to 1/65536"


def r08() -> tuple[Facts, str]:
    def step(optimizer_class: Any, dtype: torch.dtype, scaled: bool) -> torch.Tensor:
        p = nn.Parameter(torch.ones(4, dtype=dtype))
        optimizer, scaler = optimizer_class([p], lr=1e-3), _scaler(enabled=scaled)
        loss = (p.float() * 1e-5).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        return p.detach()

    def decay(dtype: torch.dtype) -> float:
        p = nn.Parameter(torch.ones(1, dtype=dtype))
        optimizer = torch.optim.SGD([p], lr=1e-3, weight_decay=1e-2)
        for _ in range(1000):
            p.grad = torch.zeros_like(p)
            optimizer.step()
        return p.item()

    return {
        "GradScaler, float16 parameters": caught(lambda: step(torch.optim.SGD, HALF, True)),
        "GradScaler, float32 parameters": caught(lambda: step(torch.optim.SGD, torch.float32, True)) or "no error",
        "Adam, float16: finite": bool(torch.isfinite(step(torch.optim.Adam, HALF, False)).all()),
        "Adam, float32: finite": bool(torch.isfinite(step(torch.optim.Adam, torch.float32, False)).all()),
        "weight decay over 1000 steps, float16": decay(HALF),
        "weight decay over 1000 steps, float32": decay(torch.float32),
    }, "keep FP32 parameters; autocast casts them where it helps"


def r12() -> tuple[Facts, str]:
    p, y = torch.rand(8), torch.rand(8).round()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        on_cpu = F.binary_cross_entropy(p, y)
        logits = F.binary_cross_entropy_with_logits(p, y)
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    banned = caught(lambda: _cuda_banned(p, y))
    return {
        "under CPU autocast": f"allowed, {on_cpu.dtype}",
        "with_logits under autocast": f"allowed, {logits.dtype}",
        "AutocastCUDA kernel registered for it": has("aten::binary_cross_entropy", "AutocastCUDA"),
        "that kernel": banned,
    }, "the CUDA kernel of autocast for this op only raises"


def _cuda_banned(p: torch.Tensor, y: torch.Tensor) -> object:
    """Dispatch through the AutocastCUDA key: the registered kernel runs on any tensor."""
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA)
    return torch.ops.aten.binary_cross_entropy.default.redispatch(keys, p, y)


def r16() -> tuple[Facts, str]:
    kept = {
        dtype: (F.dropout(torch.ones(2_000_000, dtype=dtype), 0.1) != 0).float().mean().item()
        for dtype in (torch.float32, HALF)
    }
    x = torch.randn(400_000)
    relu, selu = torch.relu(x), torch.selu(x)
    after_relu, after_selu = F.alpha_dropout(relu, 0.1, True), F.alpha_dropout(selu, 0.1, True)
    return {
        "Dropout keeps, float32": kept[torch.float32],
        "Dropout keeps, float16": kept[HALF],
        "ReLU: mean, variance": [relu.mean().item(), relu.var().item()],
        "AlphaDropout after ReLU: mean, variance, minimum": [
            after_relu.mean().item(),
            after_relu.var().item(),
            after_relu.min().item(),
        ],
        "SELU: mean, variance": [selu.mean().item(), selu.var().item()],
        "AlphaDropout after SELU: mean, variance": [after_selu.mean().item(), after_selu.var().item()],
    }, "Dropout is the same in float16; AlphaDropout only fits SELU"


def r17() -> tuple[Facts, str]:
    from deploychain.backends.amp_demos_ddp import run_two_ranks

    facts: Facts = {}
    modes = ("ddp", "no ddp", "no ddp, all_reduce(_scale)", "no ddp, all_reduce(found_inf)")
    for mode, ranks in run_two_ranks(modes).items():
        facts[f"{mode}: skipped per rank"] = [r["skipped"] for r in ranks]
        facts[f"{mode}: weights equal"] = ranks[0]["weights"] == ranks[1]["weights"]
    return facts, "DDP needs nothing; elsewhere reduce found_inf, never the scale"


def r25() -> tuple[Facts, str]:
    model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64))
    norm = model[1]
    assert isinstance(norm, nn.BatchNorm1d) and norm.running_var is not None
    norm.running_var[0], norm.running_var[1] = 1e5, 1e-9
    rounded = copy.deepcopy(model).half().float()
    a, b = model[0].weight, rounded[0].weight
    after = rounded[1].running_var
    assert isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and isinstance(after, torch.Tensor)
    return {
        "relative error of the weights": ((a - b).norm() / a.norm()).item(),
        "weights that changed (%)": 100 * (a != b).float().mean().item(),
        "all representable in float16 before": bool((a == a.half().float()).all()),
        "all representable in float16 after": bool((b == b.half().float()).all()),
        "running_var 1e5, 1e-9 become": [after[0].item(), after[1].item()],
    }, "half() rounds for good: float() does not bring the digits back"


def r26() -> tuple[Facts, str]:
    norm = nn.BatchNorm2d(4).eval()
    assert norm.running_var is not None
    norm.running_var.fill_(9e4)
    x = torch.randn(2, 4, 8, 8) * 300
    kept = norm(x)
    eps = norm.eps
    halved = copy.deepcopy(norm).half()
    out = halved(x.half())
    assert halved.running_var is not None
    return {
        "running_var after half()": halved.running_var[0].item(),
        "eps after half()": halved.eps == eps,
        "output abs-max, float32": kept.abs().max().item(),
        "output abs-max, half": out.abs().max().item(),
    }, "buffers overflow; eps and momentum are Python floats and stay"


def r27() -> tuple[Facts, str]:
    import threading

    layer, x = nn.Linear(4, 4), torch.randn(2, 4)
    seen: dict[str, str] = {}

    def run(name: str) -> None:
        seen[name] = str(layer(x).dtype)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        run("in the region")
        worker = threading.Thread(target=run, args=("in a thread started inside the region",))
        worker.start()
        worker.join()
    with torch.autocast("cuda", dtype=HALF):
        run("CPU tensors in a CUDA region")
        cuda_on = torch.is_autocast_enabled("cuda")
    with torch.autocast("cpu", dtype=torch.float32):
        run("dtype=torch.float32 on the CPU")
    return {
        **seen,
        "CUDA region on this machine is on": cuda_on,
        "CUDA available": torch.cuda.is_available(),
    }, "one region covers one device type and one thread"


def r28() -> tuple[Facts, str]:
    def fresh() -> tuple[nn.Parameter, torch.optim.Optimizer, torch.amp.GradScaler]:
        p = nn.Parameter(torch.ones(1))
        scaler = _scaler()
        scaler.scale(p.sum()).backward()
        return p, torch.optim.SGD([p], lr=0.1), scaler

    def breach(actions: Callable[[torch.optim.Optimizer, torch.amp.GradScaler], object]) -> str:
        _, optimizer, scaler = fresh()
        return caught(lambda: actions(optimizer, scaler)) or "no error"

    _, _, scaler = fresh()
    for _ in range(3):
        scaler.update(new_scale=1024.0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scaler.pt"
        torch.save(scaler.state_dict(), file)
        resumed = _scaler()
        resumed.load_state_dict(torch.load(file, weights_only=True))
    frozen = nn.Parameter(torch.ones(1), requires_grad=False)

    def two_then_update(a: torch.optim.Optimizer, s: torch.amp.GradScaler) -> None:
        other = nn.Parameter(torch.ones(1))
        s.scale(other.sum()).backward()
        b = torch.optim.SGD([other], lr=0.1)
        s.step(a)
        s.step(b)
        s.update()

    return {
        "update() without step": breach(lambda o, s: s.update()),
        "step() twice": breach(lambda o, s: (s.step(o), s.step(o))),
        "unscale_() twice": breach(lambda o, s: (s.unscale_(o), s.unscale_(o))),
        "unscale_() after step()": breach(lambda o, s: (s.step(o), s.unscale_(o))),
        "optimiser without gradients": breach(lambda o, s: s.step(torch.optim.SGD([frozen], lr=0.1))),
        "two optimisers, one update": breach(two_then_update),
        "scale after a resume, state saved": resumed.get_scale(),
        "scale after a resume, state not saved": _scaler().get_scale(),
    }, "once per effective batch: (unscale_), step, update"


DEMOS: dict[str, Callable[[], tuple[Facts, str]]] = {
    "R01": r01, "R02": r02, "R03": r03, "R04": r04, "R05": r05, "R06": r06, "R07": r07, "R08": r08, "R12": r12, "R16": r16,
    "R17": r17, "R25": r25, "R26": r26, "R27": r27, "R28": r28,
}  # fmt: skip
