"""Experiments on numbers: R09 to R11, R13 to R15, R22, R23."""

# mypy: disable-error-code="no-untyped-call, func-returns-value, no-any-return"
from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from deploychain.backends.amp_demos import Facts, caught

HALF = torch.float16


def _half(value: float) -> float:
    return torch.tensor(value, dtype=HALF).item()


def r09() -> tuple[Facts, str]:
    row = torch.zeros(1, 8, dtype=HALF)
    x = torch.randn(4, 64)
    norm = nn.LayerNorm(64, eps=1e-12)
    exact = F.layer_norm(x.double(), (64,), eps=1e-12)
    half = norm.half()(x.half()).double()
    return {
        "float16(1e-5)": _half(1e-5),
        "float16(1e-8)": _half(1e-8),
        "float16(1e-12)": _half(1e-12),
        "zero row, x / (std + 1e-8)": (row / (row.std(-1, keepdim=True) + 1e-8))[0, 0].item(),
        "zero row, x / (std + 1e-6)": (row / (row.std(-1, keepdim=True) + 1e-6))[0, 0].item(),
        "F.normalize of a zero row (eps 1e-12)": F.normalize(row, dim=-1)[0, 0].item(),
        "half LayerNorm, eps 1e-12, relative error": ((half - exact).norm() / exact.norm()).item(),
    }, "1e-5 is safe; 1e-8 and 1e-12 are 0 where the arithmetic is float16, and kernels of norms do not care"


def r10() -> tuple[Facts, str]:
    facts: Facts = {"finfo(float16).smallest_subnormal": caught(lambda: torch.finfo(HALF).smallest_subnormal)}  # type: ignore[attr-defined]
    tiny = torch.finfo(HALF).tiny
    facts["smallest subnormal x 100"] = 2.0**-24 * 100
    for std in (0.1, 0.03, 0.01, 0.003):
        x = torch.randn(64, 512) * std
        usual, changed = F.layer_norm(x, (512,), eps=1e-5), F.layer_norm(x, (512,), eps=tiny)
        facts[f"output shrinks at std {std} (%)"] = 100 * (1 - (changed.norm() / usual.norm()).item())
    return facts, "a larger eps changes the model; 1e-5 is harmless in float16"


def r11() -> tuple[Facts, str]:
    def by_hand(value: float, dtype: torch.dtype) -> float:
        s = torch.tensor([value, 0.0], dtype=dtype)
        e = torch.exp(s)
        return (e / e.sum())[0].item()

    q = torch.full((64,), 33.94, dtype=HALF)
    return {
        "by hand, float16, x = 11": by_hand(11.0, HALF),
        "by hand, float16, x = 12": by_hand(12.0, HALF),
        "by hand, float32, x = 88": by_hand(88.0, torch.float32),
        "by hand, float32, x = 89": by_hand(89.0, torch.float32),
        "torch.softmax, float16, x = 90": torch.softmax(torch.tensor([90.0, 0.0], dtype=HALF), 0)[0].item(),
        "log(softmax), float16, x = -20": torch.log(torch.softmax(torch.tensor([0.0, -20.0], dtype=HALF), 0))[1].item(),
        "log_softmax, float16, x = -20": torch.log_softmax(torch.tensor([0.0, -20.0], dtype=HALF), 0)[1].item(),
        "q.k, then scaled": ((q @ q) / 8.0).item(),
        "q scaled first": ((q / 8.0) @ q).item(),
    }, "exp and q.k overflow before the part that would bring them back"


def r13() -> tuple[Facts, str]:
    seen: list[str] = []

    def kernel(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        seen.append(f"x {str(x.dtype)[6:]}, w {str(w.dtype)[6:]}")
        return x.float() * w.float()

    library = torch.library.Library("deploychain_demo", "FRAGMENT")
    try:
        library.define("scale(Tensor x, Tensor w) -> Tensor")
        library.impl("scale", kernel, "CPU")
        operator = torch.ops.deploychain_demo.scale
        layer, w = nn.Linear(4, 4), torch.randn(4)
        has = torch._C._dispatch_has_kernel_for_dispatch_key
        before = has("deploychain_demo::scale", "AutocastCUDA")
        with torch.no_grad(), torch.autocast("cpu", dtype=HALF):
            operator(layer(torch.randn(2, 4)), w)
        torch.library.register_autocast("deploychain_demo::scale", "cpu", torch.float32, lib=library)
        with torch.no_grad(), torch.autocast("cpu", dtype=HALF):
            operator(layer(torch.randn(2, 4)), w)
    finally:
        library._destroy()

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x, w)
            return x.mm(w)

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            x, w = ctx.saved_tensors
            return g.mm(w.t()), x.t().mm(g)

    def function() -> None:
        x, w = torch.randn(2, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
        with torch.autocast("cpu", dtype=HALF):
            out = Product.apply(x, w)
        out.sum().backward()

    return {
        "an AutocastCUDA kernel is registered": before,
        "the kernel gets": seen[0],
        "with register_autocast it gets": seen[1],
        "autograd.Function without custom_fwd": caught(function),
    }, "an operator without a rule meets mixed dtypes"


def r14() -> tuple[Facts, str]:
    def warning_of(action: Callable[[], object]) -> str:
        with warnings.catch_warnings(record=True) as caught_warnings:
            warnings.simplefilter("always")
            action()
        found = [w for w in caught_warnings if issubclass(w.category, FutureWarning)]
        return f"{found[0].category.__name__}: {str(found[0].message)[:60]}..." if found else "none"

    return {
        "torch.cuda.amp.autocast()": warning_of(lambda: torch.cuda.amp.autocast()),
        "torch.cuda.amp.GradScaler()": warning_of(lambda: torch.cuda.amp.GradScaler()),
        'torch.amp.GradScaler("cpu")': warning_of(lambda: torch.amp.GradScaler("cpu")),
    }, "torch.amp takes the device as an argument"


def r15() -> tuple[Facts, str]:
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    image = torch.rand(3, 224, 224)

    def normalise(x: torch.Tensor) -> torch.Tensor:
        return (x - mean.view(3, 1, 1).to(x.dtype)) / std.view(3, 1, 1).to(x.dtype)

    plain = normalise(image)
    with torch.autocast("cpu", dtype=HALF):
        inside = normalise(image)
    half = normalise(image.half()).float()
    narrow = torch.rand(3, 224, 3)
    return {
        "inside autocast: same bits": bool(torch.equal(plain, inside)),
        "flat mean on (3, 224, 224)": caught(lambda: (image - mean) / std),
        "flat mean on (3, 224, 3), error against the right one": ((narrow - mean) / std - normalise(narrow))
        .abs()
        .max()
        .item(),
        "image made half first, largest error": (half - plain).abs().max().item(),
    }, "autocast does not touch Normalize; half before it and a flat mean do harm"


def r22() -> tuple[Facts, str]:
    scores = torch.zeros(2, 2, dtype=HALF)
    mask = torch.eye(2, dtype=torch.bool)
    return {
        "65519 in float16": _half(65519.0),
        "65520 in float16": _half(65520.0),
        "smallest normal": torch.finfo(HALF).tiny,
        "2^-24 in float16": _half(2.0**-24),
        "2^-25 in float16": _half(2.0**-25),
        "6e-8 in float16": _half(6e-8),
        "masked_fill(-1e9) on float16": caught(lambda: scores.masked_fill(mask, -1e9)),
        "masked_fill(finfo.min) on float16": scores.masked_fill(mask, torch.finfo(HALF).min)[0, 0].item(),
    }, "float16 ends at 65504 and reaches down to 6e-8, with few bits below 6.1e-5"


def r23() -> tuple[Facts, str]:
    facts: Facts = {}
    for width in (256, 1024, 1920, 4096):
        grid = torch.linspace(-1, 1, width * 3, dtype=torch.float64)
        error = (grid.half().double() - grid).abs().max().item() * width / 2
        facts[f"coordinate error at width {width} (pixels)"] = error
    width = 1920
    ramp = torch.rand(1, 1, 4, width)
    y, x = torch.meshgrid(torch.linspace(-1, 1, 4), torch.linspace(-1, 1, width) * 0.97, indexing="ij")
    grid = torch.stack([x, y], -1)[None]
    exact = F.grid_sample(ramp, grid, align_corners=False)
    facts["image error, float16 image"] = (
        (F.grid_sample(ramp.half().float(), grid, align_corners=False) - exact).abs().max().item()
    )
    facts["image error, float16 grid"] = (
        (F.grid_sample(ramp, grid.half().float(), align_corners=False) - exact).abs().max().item()
    )
    return facts, "the coordinates need float32, the pixels do not"


DEMOS: dict[str, Callable[[], tuple[Facts, str]]] = {
    "R09": r09, "R10": r10, "R11": r11, "R13": r13, "R14": r14, "R15": r15, "R22": r22, "R23": r23,
}  # fmt: skip
