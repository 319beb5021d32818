"""trtexec command lines: the wish, in the words of the release at hand. Lists of arguments, never shell text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploychain.device.bundle import EngineWish
from deploychain.device.versions import Features, Typing

Profiles = Mapping[str, Mapping[str, Sequence[int]]]


@dataclass(frozen=True, slots=True)
class Wish:
    """One engine as this release will be asked for it."""

    name: str
    typing: Typing
    model: str  # path in the bundle
    flags: tuple[str, ...]  # fp16, int8; empty where the graph decides
    layer_precisions: Mapping[str, str]
    dla_core: int | None
    notes: tuple[str, ...] = ()

    @property
    def asked(self) -> str:
        """The precision that the builder is asked for: on the DLA a wish for FP32 becomes one for FP16."""
        return "fp16" if self.name == "fp32" and "fp16" in self.flags else self.name


def map_wish(engine: EngineWish, features: Features, typing: Typing, dla_core: int | None = None) -> Wish:
    """Translate a bundle's wish for one release.

    Raises:
        CapabilityError: the DLA is asked for and this release has none for it.
    """
    notes: list[str] = []
    if dla_core is not None:
        features.check_dla(typing)
        if engine.name == "int8" or "QuantizeLinear" in engine.op_types.values():
            notes.append(_quantised_on_dla(engine.name, typing))
    if typing == "strong":
        return Wish(engine.name, typing, engine.model, (), {}, dla_core, tuple(notes))
    flags = list(engine.weak.flags)
    held: dict[str, str] = {}
    if dla_core is not None and "fp16" not in flags:
        flags.append("fp16")
        notes.append(f"the DLA computes in FP16 or INT8 only: {engine.name} is asked for as FP16")
    for node, precision in engine.weak.layer_precisions.items():
        # The grammar is name:precision[,name:precision] with one wildcard and no quoting.
        if any(c in node for c in ',*"') or ":" in node:
            notes.append(f"{node} cannot be held in {precision}: its name does not fit --layerPrecisions")
        else:
            held[node] = precision
    return Wish(engine.name, typing, engine.weak.model, tuple(flags), held, dla_core, tuple(notes))


def _quantised_on_dla(name: str, typing: Typing) -> str:
    """What is known of Q/DQ on the DLA. Before 11.0 it takes calibrated INT8 only, says NVIDIA:
    https://github.com/NVIDIA/TensorRT/issues/2222
    """
    if typing == "weak":
        return (
            f"warning: {name} is a Q/DQ model, and the DLA takes no explicit quantisation before TensorRT 11: its "
            "quantised layers fall back to the GPU, or the build fails; which layers run on the DLA is unknown until "
            "the build log says so"
        )
    return (
        f"unknown: {name} is a Q/DQ model; whether the DLA computes it in INT8 is not known to this tool, and layers "
        "that it does not take fall back to the GPU: see the placement in the build log"
    )


def build_command(
    tool: Path,
    wish: Wish,
    features: Features,
    *,
    model: Path,
    engine: Path,
    layers: Path,
    profiles: Profiles,
    timing_cache: Path | None,
    workspace_mib: int | None = None,
    verbose: bool = False,
) -> list[str]:
    """Build one engine and list its layers; no inference."""
    command = [str(tool), f"--onnx={model}", f"--saveEngine={engine}"]
    for key in ("min", "opt", "max") if profiles else ():
        command.append(f"--{key}Shapes={shapes_spec(profiles, key)}")
    command += ["--profilingVerbosity=detailed", f"--exportLayerInfo={layers}"]
    if timing_cache is not None:
        command.append(f"--timingCacheFile={timing_cache}")
    if workspace_mib is not None:
        command.append(f"--memPoolSize=workspace:{workspace_mib}")
    command += [f"--{flag}" for flag in wish.flags]
    if wish.layer_precisions:
        spec = ",".join(f"{node}:{precision}" for node, precision in wish.layer_precisions.items())
        command += ["--precisionConstraints=obey", f"--layerPrecisions={spec}"]
    if wish.typing == "strong" and features.strong_flag:
        command.append("--stronglyTyped")
    if wish.dla_core is not None:
        command += [f"--useDLACore={wish.dla_core}", "--allowGPUFallback"]
    if verbose:
        command.append("--verbose")
    return [*command, "--skipInference"]


def run_command(
    tool: Path, *, engine: Path, inputs: Mapping[str, Path], shapes: Mapping[str, Sequence[int]], outputs: Path
) -> list[str]:
    """One inference on given inputs, outputs to a JSON file."""
    return [
        str(tool),
        f"--loadEngine={engine}",
        *_shapes(shapes),
        "--loadInputs=" + ",".join(f"{_quoted(name)}:{path}" for name, path in inputs.items()),
        f"--exportOutput={outputs}",
        "--warmUp=0",
        "--duration=0",
        "--iterations=1",
        "--avgRuns=1",
    ]


def time_command(
    tool: Path,
    features: Features,
    *,
    engine: Path,
    shapes: Mapping[str, Sequence[int]],
    times: Path,
    profile: Path,
    warm_up_ms: int,
    seconds: int,
    iterations: int,
) -> list[str]:
    """Latency of the GPU's work alone, the same in every release: no transfers, no CUDA graph, spin wait."""
    command = [
        str(tool),
        f"--loadEngine={engine}",
        *_shapes(shapes),
        f"--warmUp={warm_up_ms}",
        f"--duration={seconds}",
        f"--iterations={iterations}",
        f"--exportTimes={times}",
        f"--exportProfile={profile}",
    ]
    if features.separate_profile:
        command.append("--separateProfileRun")  # else the profiler's synchronisation is in the times
    if features.timing_defaults == "host":
        return [*command, "--noDataTransfers", "--useSpinWait"]
    return [*command, "--noCudaGraph"]


def shapes_spec(profiles: Profiles, key: str) -> str:
    """``a:1x3x8x8,b:1x10``."""
    return ",".join(f"{_quoted(name)}:{_size(shape[key])}" for name, shape in profiles.items())


def _shapes(shapes: Mapping[str, Sequence[int]]) -> list[str]:
    spec = ",".join(f"{_quoted(name)}:{_size(shape)}" for name, shape in shapes.items())
    return [f"--shapes={spec}"] if spec else []


def _size(shape: Sequence[int]) -> str:
    return "x".join(str(n) for n in shape) if shape else "scalar"


def _quoted(name: str) -> str:
    """Input names with a colon stand in single quotes; no shell is involved."""
    return f"'{name}'" if ":" in name else name
