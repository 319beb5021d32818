"""Import one framework in a process of its own and say what it can do: ``python -m deploychain.backends.probe NAME``.

`deploychain doctor` starts it, so that a library that crashes or hangs on import costs one line of its table.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from typing import Any


def torch() -> dict[str, Any]:
    torch = importlib.import_module("torch")
    found: dict[str, Any] = {"version": torch.__version__, "cuda_build": torch.version.cuda, "cuda": False}
    found["cuda"] = torch.cuda.is_available()
    if found["cuda"]:
        found["devices"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        major, minor = torch.cuda.get_device_capability(0)
        found["compute_capability"] = f"{major}.{minor}"
        # A tiny product: an image without kernels for this GPU imports well and fails here.
        torch.ones(8, 8, device="cuda").matmul(torch.ones(8, 8, device="cuda")).cpu()
    return found


def onnxruntime() -> dict[str, Any]:
    ort = importlib.import_module("onnxruntime")
    return {"version": ort.__version__, "providers": list(ort.get_available_providers())}


def tensorrt() -> dict[str, Any]:
    return {"version": importlib.import_module("tensorrt").__version__}


def tensorrt_rtx() -> dict[str, Any]:
    trt = importlib.import_module("tensorrt_rtx")
    names = [n[2:] for n in trt.ComputeCapability.__members__ if n.startswith("SM")]
    return {"version": trt.__version__, "compute_capabilities": [f"{n[:-1]}.{n[-1]}" for n in names]}


def onnx() -> dict[str, Any]:
    return {"version": importlib.import_module("onnx").__version__}


def modelopt() -> dict[str, Any]:
    """Both halves, each with the error that its import raised, or an empty string."""
    halves = {"autocast": "modelopt.onnx.autocast", "quantization": "modelopt.torch.quantization"}
    return {key: _import_error(name) for key, name in halves.items()}


def _import_error(name: str) -> str:
    try:
        importlib.import_module(name)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main(name: str) -> int:
    probes = {f.__name__: f for f in (torch, onnx, onnxruntime, tensorrt, tensorrt_rtx, modelopt)}
    try:
        with contextlib.redirect_stdout(sys.stderr):  # libraries greet on import; the answer is the one line
            answer: dict[str, Any] = {"ok": True, **probes[name]()}
    except BaseException as error:
        answer = {"ok": False, "error": f"{type(error).__name__}: {str(error).strip()[:400]}"}
    print(json.dumps(answer))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
