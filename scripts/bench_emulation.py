"""How far the FP16 rounding emulation is from real FP16 kernels, per output, on three models.

    python scripts/bench_emulation.py export FOLDER     # where the frameworks are: models, data, CPU results
    python scripts/bench_emulation.py run FOLDER        # on an NVIDIA GPU: numpy and onnxruntime-gpu are enough

``export`` plans each network to FP16 and stores the FP32 reference, the converted file and what the emulation makes
of it. ``run`` executes the converted file with onnxruntime's CUDA provider, with and without graph optimisation, says
how many of its nodes really ran there, and prints one JSON object: SNR in dB of the emulation and of the real kernels
against FP32, and of the two against each other.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

NAMES = ("resnet18", "vit", "unet-grid")


def snr_db(value: np.ndarray, reference: np.ndarray) -> float | None:
    """10 log10(sum ref^2 / sum (value - ref)^2) in float64; None when equal or not finite."""
    a, b = value.astype(np.float64), reference.astype(np.float64)
    error, signal = float(((a - b) ** 2).sum()), float((b**2).sum())
    if not np.isfinite(error) or error == 0.0 or signal == 0.0:
        return None
    return 10 * float(np.log10(signal / error))


def run(folder: Path) -> dict[str, Any]:
    """The comparison on this machine's GPU."""
    import onnxruntime as ort

    if "CUDAExecutionProvider" not in ort.get_available_providers():
        sys.exit(f"onnxruntime {ort.__version__} has no CUDA provider here: {ort.get_available_providers()}")
    if hasattr(ort, "preload_dlls"):
        ort.preload_dlls()
    models: dict[str, Any] = {}
    for name in NAMES:
        stored = np.load(folder / f"{name}.npz")
        inputs = {k[3:]: stored[k] for k in stored.files if k.startswith("in/")}
        reference = {k[5:]: stored[k] for k in stored.files if k.startswith("fp32/")}
        emulated = {k[4:]: stored[k] for k in stored.files if k.startswith("emu/")}
        rows: dict[str, Any] = {}
        for level in ("disabled", "all"):
            outputs, placement, seconds = _on_gpu(folder / f"{name}.fp16.onnx", inputs, level)
            rows[level] = {
                "nodes_by_provider": placement,
                "seconds": round(seconds, 3),
                "outputs": {
                    key: {
                        "emulated_vs_fp32_db": snr_db(emulated[key], reference[key]),
                        "real_vs_fp32_db": snr_db(outputs[key], reference[key]),
                        "emulated_vs_real_db": snr_db(emulated[key], outputs[key]),
                        "real_non_finite": int((~np.isfinite(outputs[key])).sum()),
                        "max_abs_emulated_minus_real": float(np.abs(emulated[key] - outputs[key]).max()),
                    }
                    for key in reference
                },
            }
        models[name] = rows
    return {
        "schema": "deploychain.bench-emulation/1",
        "gpu": _gpu_name(),
        "onnxruntime": ort.__version__,
        "models": models,
    }


def _on_gpu(
    path: Path, inputs: dict[str, np.ndarray], level: str
) -> tuple[dict[str, np.ndarray], dict[str, int], float]:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3
    levels = {
        "disabled": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
        "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
    }
    options.graph_optimization_level = levels[level]
    options.enable_profiling = True
    with tempfile.TemporaryDirectory() as scratch:
        options.profile_file_prefix = str(Path(scratch) / "profile")
        providers: list[Any] = [("CUDAExecutionProvider", {"use_tf32": "0"}), "CPUExecutionProvider"]
        session = ort.InferenceSession(str(path), options, providers=providers)
        names = [o.name for o in session.get_outputs()]
        started = time.monotonic()
        values = session.run(names, inputs)
        seconds = time.monotonic() - started
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    ran = {(e["name"], e["args"]["provider"]) for e in events if e.get("cat") == "Node" and "provider" in e["args"]}
    counts: dict[str, int] = {}
    for _, provider in ran:
        counts[provider] = counts.get(provider, 0) + 1
    return dict(zip(names, values, strict=True)), counts, seconds


def _gpu_name() -> str:
    for info in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        for line in info.read_text(errors="replace").splitlines():
            if line.startswith("Model:"):
                return line.partition(":")[2].strip()
    return "unknown"


def export(folder: Path) -> None:
    """Make the models, plan them, and store data, the FP32 reference and the emulated outputs."""
    import onnx
    import torch

    from deploychain.backends.ort import emulate_fp16, run_model
    from deploychain.stages.planning import PlanRequest, make_plan

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    for name, (network, data) in _networks().items():
        path = folder / f"{name}.onnx"
        arguments = tuple(torch.from_numpy(a[:2]) for a in data.values())
        axes = {key: {0: "batch"} for key in (*data, "y")}
        torch.onnx.export(
            network.eval(),
            arguments,
            str(path),
            dynamo=False,
            opset_version=17,
            input_names=list(data),
            output_names=["y"],
            dynamic_axes=axes,
        )
        converted = folder / f"{name}.fp16.onnx"
        plan = make_plan(PlanRequest(path, "fp16", converted, data, prove_guards=False))
        reference = run_model(path, data)
        emulated = run_model(emulate_fp16(onnx.load(converted)), data)
        arrays = {f"in/{k}": v for k, v in data.items()}
        arrays |= {f"fp32/{k}": v for k, v in reference.items()}
        arrays |= {f"emu/{k}": v for k, v in emulated.items()}
        np.savez_compressed(folder / f"{name}.npz", **arrays)
        path.unlink()
        print(f"{name}: {len(plan.nodes)} nodes, {plan.count('fp32')} in FP32, drop {plan.drop:.3g} {plan.drop_of}")


def _networks() -> dict[str, tuple[Any, dict[str, np.ndarray]]]:
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Block(nn.Module):
        def __init__(self, inner: int, outer: int, stride: int) -> None:
            super().__init__()
            self.c1, self.b1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer)
            self.c2, self.b2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False), nn.BatchNorm2d(outer)
            same = stride == 1 and inner == outer
            self.skip = nn.Identity() if same else nn.Conv2d(inner, outer, 1, stride, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.relu(self.b2(self.c2(F.relu(self.b1(self.c1(x))))) + self.skip(x))

    class ResNet18(nn.Module):
        def __init__(self, w: int = 24) -> None:
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, w, 7, 2, 3, bias=False), nn.BatchNorm2d(w), nn.ReLU())
            plan = ((w, w, 1), (w, w, 1), (w, 2 * w, 2), (2 * w, 2 * w, 1))
            plan += ((2 * w, 4 * w, 2), (4 * w, 4 * w, 1), (4 * w, 8 * w, 2), (8 * w, 8 * w, 1))
            self.blocks = nn.Sequential(*(Block(*p) for p in plan))
            self.fc = nn.Linear(8 * w, 100)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(self.blocks(F.max_pool2d(self.stem(x), 3, 2, 1)).mean((2, 3)))

    class Attention(nn.Module):
        def __init__(self, d: int, heads: int = 4) -> None:
            super().__init__()
            self.heads = heads
            self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            b, n, d = x.shape
            q, k, v = self.qkv(self.n1(x)).reshape(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
            x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
            return x + self.mlp(self.n2(x))

    class Vit(nn.Module):
        def __init__(self, d: int = 96) -> None:
            super().__init__()
            self.patch = nn.Conv2d(3, d, 16, 16)
            self.blocks = nn.Sequential(*(Attention(d) for _ in range(6)))
            self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, 100)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.norm(self.blocks(self.patch(x).flatten(2).transpose(1, 2))).mean(1))

    class UnetGrid(nn.Module):
        """Encoder, GroupNorm, both kinds of Resize, Concat and a flow-driven GridSample."""

        def __init__(self, w: int = 16) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(3, w, 3, 1, 1), nn.Conv2d(w, 2 * w, 3, 2, 1)
            self.norm, self.flow = nn.GroupNorm(4, 2 * w), nn.Conv2d(2 * w, 2, 3, 1, 1)
            self.out = nn.Conv2d(5 * w, 4, 3, 1, 1)

        def forward(self, x: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
            a = F.silu(self.a(x))
            b = F.silu(self.norm(self.b(a)))
            near = F.interpolate(b, scale_factor=2.0, mode="nearest")
            smooth = F.interpolate(b, scale_factor=2.0, mode="bilinear", align_corners=False)
            flow = F.interpolate(self.flow(b), scale_factor=2.0, mode="bilinear", align_corners=False)
            moved = F.grid_sample(a, base + 0.1 * flow.permute(0, 2, 3, 1), align_corners=False)
            return self.out(torch.cat([near, smooth, moved], 1))

    random = np.random.default_rng(0)
    image = random.standard_normal((8, 3, 96, 96)).astype(np.float32)
    wide = random.standard_normal((2, 3, 32, 320)).astype(np.float32)
    grid = np.stack(np.meshgrid(np.linspace(-1, 1, 320), np.linspace(-1, 1, 32)), -1)
    base = np.repeat(grid[None].astype(np.float32), 2, 0)
    return {
        "resnet18": (ResNet18(), {"x": image}),
        "vit": (Vit(), {"x": image}),
        "unet-grid": (UnetGrid(), {"x": wide, "base": base}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("export", "run"))
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    if arguments.step == "export":
        export(arguments.folder)
    else:
        print(json.dumps(run(arguments.folder), indent=1))


if __name__ == "__main__":
    main()
