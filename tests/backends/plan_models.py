"""Small ONNX models for the plan's tests: planted faults, each with one known culprit, and healthy networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


@dataclass(frozen=True)
class Case:
    """A model, data for it, and what is wrong with it."""

    model: onnx.ModelProto
    data: dict[str, np.ndarray]
    culprit: str = ""  # node name
    kind: str = ""  # of the finding


class Graph:
    """Builds a model node by node; every method returns the name of the tensor that it makes."""

    def __init__(self, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, value: np.ndarray | float | Sequence[int], name: str = "") -> str:
        array = np.asarray(value)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        name = name or f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def op(self, kind: str, *inputs: str, name: str = "", **attributes: object) -> str:
        name = name or f"/n{len(self.nodes)}/{kind}"
        output = f"{name}_out"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=name, **attributes))
        return output

    def linear(self, x: str, inner: int, outer: int, scale: float | None = None, name: str = "") -> str:
        scale = inner**-0.5 if scale is None else scale
        return self.op("MatMul", x, self.weight(self.random.standard_normal((inner, outer)) * scale), name=name)

    def model(self, inputs: dict[str, Sequence[object]], output: str, shape: Sequence[object]) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "planted",
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, list(s)) for n, s in inputs.items()],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, list(shape))],
            self.weights,
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        onnx.checker.check_model(made, full_check=True)
        return made


def _rows(g: Graph, count: int, width: int, scale: float = 1.0, offset: float = 0.0) -> np.ndarray:
    return (g.random.standard_normal((count, width)) * scale + offset).astype(np.float32)


def exp_overflow() -> Case:
    """A hand-written softmax whose exponential is not shifted by the maximum."""
    g = Graph()
    e = g.op("Exp", g.linear("x", 16, 16, name="/score/MatMul"), name="/softmax/Exp")
    total = g.op("ReduceSum", e, g.weight(np.array([-1])), name="/softmax/ReduceSum")
    y = g.op("Div", e, total, name="/softmax/Div")
    return Case(g.model({"x": ["n", 16]}, y, ["n", 16]), {"x": _rows(g, 32, 16, 6.0)}, "/softmax/Exp", "overflow")


def _layer_norm(g: Graph, x: str, eps: float) -> str:
    mean = g.op("ReduceMean", x, axes=[-1], name="/norm/ReduceMean")
    off = g.op("Sub", x, mean, name="/norm/Sub")
    square = g.op("Pow", off, g.weight(2.0), name="/norm/Pow")
    variance = g.op("ReduceMean", square, axes=[-1], name="/norm/ReduceMean_1")
    safe = g.op("Add", variance, g.weight(eps, "eps"), name="/norm/Add")
    return g.op("Div", off, g.op("Sqrt", safe, name="/norm/Sqrt"), name="/norm/Div")


def large_mean_norm() -> Case:
    """A decomposed LayerNorm whose input has a large mean: the difference is lost in the rounding of the input."""
    g = Graph()
    y = _layer_norm(g, g.op("Add", g.linear("x", 16, 32), g.weight(400.0), name="/bias/Add"), 1e-5)
    return Case(g.model({"x": ["n", 16]}, y, ["n", 32]), {"x": _rows(g, 32, 16, 0.05)}, "/norm/Sub", "sensitive")


def wide_norm() -> Case:
    """A decomposed LayerNorm whose squares overflow (more than 255 from the mean)."""
    g = Graph()
    y = _layer_norm(g, g.linear("x", 16, 32), 1e-5)
    return Case(g.model({"x": ["n", 16]}, y, ["n", 32]), {"x": _rows(g, 32, 16, 120.0)}, "/norm/Pow", "overflow")


def vanishing_eps() -> Case:
    """eps of 1e-8 that guards constant rows: zero in FP16, and 0/0 after it."""
    g = Graph()
    data = _rows(g, 32, 16)
    data[::4] = 0.0
    y = _layer_norm(g, g.linear("x", 16, 32), 1e-8)
    return Case(g.model({"x": ["n", 16]}, y, ["n", 32]), {"x": data}, "/norm/Add", "vanishing-constant")


def attention_logits() -> Case:
    """Attention that scales after the product."""
    g = Graph()
    q, k = g.linear("x", 64, 64, 10.0, "/q/MatMul"), g.linear("x", 64, 64, 10.0, "/k/MatMul")
    logits = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 2, 1]), name="/attention/MatMul")
    y = g.op("Softmax", g.op("Mul", logits, g.weight(1e-4), name="/attention/Mul"), axis=-1)
    data = g.random.standard_normal((8, 12, 64)).astype(np.float32)
    return Case(g.model({"x": ["n", 12, 64]}, y, ["n", 12, 12]), {"x": data}, "/attention/MatMul", "overflow")


def batch_norm_variance() -> Case:
    """A BatchNorm with a running variance over 65504."""
    g = Graph()
    c = g.op("Conv", "x", g.weight(g.random.standard_normal((8, 3, 3, 3)) * 0.2), name="/conv/Conv")
    ones = np.ones(8)
    stats = [g.weight(v) for v in (ones, ones * 0, ones * 0, ones * 3e5)]
    y = g.op("BatchNormalization", c, *stats, name="/bn/BatchNormalization")
    data = g.random.standard_normal((8, 3, 10, 10)).astype(np.float32)
    made = g.model({"x": ["n", 3, 10, 10]}, y, ["n", 8, 8, 8])
    return Case(made, {"x": data}, "/bn/BatchNormalization", "weight-overflow")


def tiny_weights() -> Case:
    """Weights of 1e-7: most of their digits are below FP16's last one."""
    g = Graph()
    small = g.linear("x", 32, 32, 1e-7, "/small/MatMul")
    y = g.op("Mul", small, g.weight(1e6), name="/rescale/Mul")
    return Case(g.model({"x": ["n", 32]}, y, ["n", 32]), {"x": _rows(g, 32, 32)}, "/small/MatMul", "underflow")


def wide_grid() -> Case:
    """GridSample on a map of 320 columns."""
    g = Graph()
    base = np.stack(np.meshgrid(np.linspace(-1, 1, 320), np.linspace(-1, 1, 24)), -1)[None]
    moved = g.op("Add", "flow", g.weight(base), name="/warp/Add")
    y = g.op("GridSample", "x", moved, align_corners=1, mode="bilinear", name="/warp/GridSample")
    data = {
        "x": g.random.standard_normal((2, 4, 24, 320)).astype(np.float32),
        "flow": (g.random.standard_normal((2, 24, 320, 2)) * 0.02).astype(np.float32),
    }
    made = g.model({"x": ["n", 4, "h", "w"], "flow": ["n", 24, 320, 2]}, y, ["n", 4, 24, 320])
    return Case(made, data, "/warp/GridSample", "grid")


def cumulative_drift() -> Case:
    """CumSum over 4096 steps of about 0.5."""
    g = Graph()
    y = g.op("CumSum", g.op("Sigmoid", "x"), g.weight(np.array(1)), name="/time/CumSum")
    return Case(g.model({"x": ["n", 4096]}, y, ["n", 4096]), {"x": _rows(g, 4, 4096)}, "/time/CumSum", "sensitive")


def long_sum() -> Case:
    """ReduceSum over 16384 elements that stay small against the sum."""
    g = Graph()
    total = g.op("ReduceSum", g.op("Sigmoid", "x"), g.weight(np.array([1])), name="/pool/ReduceSum", keepdims=1)
    y = g.op("Mul", total, g.weight(1e-4))
    return Case(g.model({"x": ["n", 16384]}, y, ["n", 1]), {"x": _rows(g, 4, 16384)}, "/pool/ReduceSum", "sensitive")


def constant_instance_norm() -> Case:
    """InstanceNorm of a nearly constant map: the variation is below the spacing of FP16."""
    g = Graph()
    shifted = g.op("Add", "x", g.weight(100.0), name="/shift/Add")
    ones = np.ones(4)
    y = g.op(
        "InstanceNormalization",
        shifted,
        g.weight(ones),
        g.weight(ones * 0),
        name="/in/InstanceNormalization",
        epsilon=1e-8,
    )
    data = (g.random.standard_normal((4, 4, 8, 8)) * 1e-2).astype(np.float32)
    return Case(
        g.model({"x": ["n", 4, 8, 8]}, y, ["n", 4, 8, 8]), {"x": data}, "/in/InstanceNormalization", "sensitive"
    )


def variance_by_difference() -> Case:
    """E[x^2] - E[x]^2, which cancels."""
    g = Graph()
    x = g.op("Add", "x", g.weight(20.0), name="/shift/Add")
    second = g.op("ReduceMean", g.op("Mul", x, x, name="/square/Mul"), axes=[-1], name="/second/ReduceMean")
    first = g.op("ReduceMean", x, axes=[-1], name="/first/ReduceMean")
    variance = g.op("Sub", second, g.op("Mul", first, first, name="/first/Mul"), name="/variance/Sub")
    data = _rows(g, 32, 64, 0.3)
    return Case(g.model({"x": ["n", 64]}, variance, ["n", 1]), {"x": data}, "/variance/Sub", "sensitive")


def log_of_small() -> Case:
    """log(softmax): probabilities of 1e-9 are zero in FP16."""
    g = Graph()
    p = g.op("Softmax", g.linear("x", 16, 16), axis=-1, name="/softmax/Softmax")
    y = g.op("Log", p, name="/loss/Log")
    return Case(g.model({"x": ["n", 16]}, y, ["n", 16]), {"x": _rows(g, 32, 16, 10.0)}, "/loss/Log", "underflow")


def norm_of_many() -> Case:
    """ReduceL2 whose sum of squares, which TensorRT forms on the way, is over 65504."""
    g = Graph()
    y = g.op("ReduceL2", g.linear("x", 64, 512), axes=[-1], name="/length/ReduceL2")
    return Case(g.model({"x": ["n", 64]}, y, ["n", 1]), {"x": _rows(g, 16, 64, 30.0)}, "/length/ReduceL2", "overflow")


def large_weight() -> Case:
    """One weight of 1e5."""
    g = Graph()
    w = g.random.standard_normal((16, 16)) * 0.2
    w[3, 4] = 1e5
    scaled = g.op("Mul", "x", g.weight(1e-5), name="/scale/Mul")
    y = g.op("MatMul", scaled, g.weight(w), name="/large/MatMul")
    return Case(g.model({"x": ["n", 16]}, y, ["n", 16]), {"x": _rows(g, 16, 16)}, "/large/MatMul", "weight-overflow")


def not_finite() -> Case:
    """The square root of a negative number, in FP32 already."""
    g = Graph()
    y = g.linear(g.op("Sqrt", g.linear("x", 8, 8, name="/a/MatMul"), name="/bad/Sqrt"), 8, 8, name="/b/MatMul")
    return Case(g.model({"x": ["n", 8]}, y, ["n", 8]), {"x": _rows(g, 8, 8)}, "/bad/Sqrt", "non-finite")


PLANTED: dict[str, Callable[[], Case]] = {
    f.__name__: f
    for f in (
        exp_overflow,
        large_mean_norm,
        wide_norm,
        vanishing_eps,
        attention_logits,
        batch_norm_variance,
        tiny_weights,
        wide_grid,
        cumulative_drift,
        long_sum,
        constant_instance_norm,
        variance_by_difference,
        log_of_small,
        norm_of_many,
        large_weight,
        not_finite,
    )
}


def healthy(folder: Path) -> dict[str, tuple[Path, dict[str, np.ndarray]]]:
    """Six networks as PyTorch initialises them, exported at opset 17 with a dynamic batch, and data for each."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
            self.c1, self.b1 = nn.Conv2d(16, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
            self.c2, self.b2 = nn.Conv2d(16, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
            self.fc = nn.Linear(16, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = F.max_pool2d(self.stem(x), 2)
            x = F.relu(self.b2(self.c2(F.relu(self.b1(self.c1(x))))) + x)
            return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))

    class Attention(nn.Module):
        def __init__(self, d: int = 32, heads: int = 4) -> None:
            super().__init__()
            self.heads = heads
            self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            b, n, d = x.shape
            q, k, v = (
                self.qkv(self.n1(x)).reshape(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
            )
            x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
            return x + self.mlp(self.n2(x))

    class Vit(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patch = nn.Conv2d(3, 32, 8, 8)
            self.blocks = nn.Sequential(Attention(), Attention())
            self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.norm(self.blocks(self.patch(x).flatten(2).transpose(1, 2))).mean(1))

    class Unet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 8, 3, 1, 1), nn.Conv2d(8, 16, 3, 2, 1)
            self.norm = nn.GroupNorm(4, 16)
            self.up, self.out = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 4, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            a = F.relu(self.a(x))
            return torch.sigmoid(self.out(torch.cat([self.up(F.relu(self.norm(self.b(a)))), a], 1)))

    class Neck(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 16, 3, 2, 1), nn.Conv2d(16, 32, 3, 2, 1)
            self.lateral, self.out = nn.Conv2d(32, 16, 1), nn.Conv2d(48, 8, 3, 1, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            a = F.silu(self.a(x))
            b = self.lateral(F.silu(self.b(a)))
            near = F.interpolate(b, scale_factor=2.0, mode="nearest")
            smooth = F.interpolate(b, scale_factor=2.0, mode="bilinear", align_corners=False)
            return self.out(torch.cat([near, smooth, a], 1))

    class Lstm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.head = nn.LSTM(16, 24, batch_first=True), nn.Linear(24, 5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.lstm(x)[0][:, -1])

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(50, 32)
            self.block = Attention()
            self.head = nn.Linear(32, 50)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.log_softmax(self.head(self.block(self.embed(x))), -1)

    torch.manual_seed(0)
    random = np.random.default_rng(0)
    image = random.standard_normal((16, 3, 32, 32)).astype(np.float32)
    sequence = random.standard_normal((16, 20, 16)).astype(np.float32)
    tokens = random.integers(0, 50, (16, 12))
    networks: dict[str, tuple[nn.Module, np.ndarray]] = {
        "resnet": (Residual(), image),
        "vit": (Vit(), image),
        "unet": (Unet(), image),
        "neck": (Neck(), image),
        "lstm": (Lstm(), sequence),
        "encoder": (Encoder(), tokens),
    }
    made = {}
    for name, (network, data) in networks.items():
        path = folder / f"{name}.onnx"
        torch.onnx.export(
            network.eval(),
            (torch.from_numpy(data[:2]),),
            str(path),
            dynamo=False,
            opset_version=OPSET,
            input_names=["x"],
            output_names=["y"],
            dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}},
        )
        made[name] = (path, {"x": data})
    return made
