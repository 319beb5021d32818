"""What an engine depends on: it is valid on this very device, with this very library, for this very request."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from deploychain.machine import Machine

_FORMAT = 1  # raised when the meaning of a key changes
# Told in the result, but an engine does not depend on them.
_HARMLESS = ("driver", "container")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Where an engine was built."""

    library: str  # TensorRT, TensorRT for RTX
    tensorrt: str  # four parts where known
    device: str
    compute_capability: str
    memory_gib: int  # Orin modules share a compute capability and differ in memory and cores
    architecture: str
    l4t: str
    driver: str
    container: str

    @classmethod
    def of(cls, machine: Machine, library: str, tensorrt: str) -> Fingerprint:
        gpu = machine.gpus[0] if machine.gpus else None
        memory = (gpu.memory_mib if gpu else None) or machine.memory_mib or 0
        return cls(
            library=library,
            tensorrt=tensorrt,
            device=gpu.name if gpu else "no GPU",
            compute_capability=(gpu.compute_capability if gpu else None) or "unknown",
            memory_gib=round(memory / 1024),
            architecture=machine.architecture,
            l4t=machine.l4t or "none",
            driver=machine.driver or "unknown",
            container=machine.container or "none",
        )


@dataclass(frozen=True, slots=True)
class EngineKey:
    """Everything that one engine was made from."""

    fingerprint: Fingerprint
    model_sha256: str
    profiles: Mapping[str, Mapping[str, Sequence[int]]]
    typing: str
    flags: tuple[str, ...]
    layer_precisions: Mapping[str, str]
    dla_core: int | None
    workspace_mib: int | None

    def facts(self) -> dict[str, str]:
        """Readable name -> value, for the key and for telling what changed."""
        known = asdict(self.fingerprint)
        facts = {name: str(known[name]) for name in known if name not in _HARMLESS}
        facts |= {
            "model": self.model_sha256[:16],
            "profiles": json.dumps(self.profiles, sort_keys=True, default=list),
            "typing": self.typing,
            "flags": ",".join(self.flags),
            "layer precisions": json.dumps(dict(self.layer_precisions), sort_keys=True),
            "DLA core": str(self.dla_core),
            "workspace": str(self.workspace_mib),
        }
        return facts

    def digest(self) -> str:
        """Name of the engine's folder in the cache."""
        text = json.dumps({"format": _FORMAT, **self.facts()}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[str, ...]:
    """``tensorrt 10.3.0.30 -> 10.16.2.10`` for every fact that differs; long ones are not spelled out."""
    changed = []
    for name in new:
        before, after = old.get(name, "unknown"), new[name]
        if before != after:
            plain = max(len(before), len(after)) < 60
            changed.append(f"{name} {before} -> {after}" if plain else f"{name} changed")
    return tuple(changed)


def clocks(root: Path = Path("/")) -> str:
    """Whether the GPU's clock is locked: ``locked at 1300 MHz``, ``not locked (306 to 1300 MHz)``, ``unknown``."""
    for folder in sorted((root / "sys/class/devfreq").glob("*")):
        if "gpu" not in folder.name and "ga10b" not in folder.name and "gp10b" not in folder.name:
            continue
        low, high = _hertz(folder / "min_freq"), _hertz(folder / "max_freq")
        if low and high:
            if low == high:
                return f"locked at {high // 1_000_000} MHz"
            return f"not locked ({low // 1_000_000} to {high // 1_000_000} MHz)"
    return "unknown"


def _hertz(path: Path) -> int:
    try:
        return int(path.read_text().strip())
    except (OSError, ValueError):
        return 0


def to_dict(fingerprint: Fingerprint) -> dict[str, Any]:
    return asdict(fingerprint)
