"""Artefacts: a file, its kind, its sha256. What stages hand to each other."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from deploychain.errors import ArtifactError

# Every kind that the chain knows, and what a reader may expect in it.
KINDS: dict[str, str] = {
    "checkpoint": "training state: model, optimizer, scaler, schedule, RNG (torch.save, weights_only)",
    "train-log": "per-epoch loss, metric, scale history, skipped steps (JSON)",
    "train-times": "wall time and throughput of the epochs (JSON); no stage reads it: it differs from run to run",
    "train-monitor": "sampled activation and gradient statistics (JSON lines)",
    "weights": "FP32 master weights (safetensors)",
    "weights-report": "what the weight checks found (JSON)",
    "qat-weights": "fake-quantised model state: weights, scales, zero points (safetensors)",
    "quantizers": "quantiser table: module, axis, scale, range, clipped share (JSON)",
    "onnx-fp32": "FP32 ONNX model, opset 17",
    "onnx-qat": "Q/DQ ONNX model, opset 17",
    "export-report": "how the exported files were proved, node to module map (JSON)",
    "onnx-fp16": "FP16 ONNX model with FP32 inputs and outputs",
    "onnx-int8": "Q/DQ ONNX model with FP16 outside the quantised regions",
    "precision-plan": "for every node the precision it should compute in, and why (JSON)",
    "engine-fp32": "TensorRT engine",
    "engine-fp16": "TensorRT engine",
    "engine-int8": "TensorRT engine",
    "engine-evidence": "what the builder said about each engine: raw text, network types, settings (JSON)",
    "eval-reports": "one evaluation per artefact over the same test data (JSON)",
    "comparison": "layer precision and accuracy, stage by stage (JSON)",
    "data": "test or calibration arrays named after the model's inputs (npz)",
}


@dataclass(frozen=True, slots=True)
class Artifact:
    """A published file. `open` proves that the bytes are still those that were published."""

    kind: str
    path: Path
    sha256: str
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, kind: str, path: Path) -> Artifact:
        """Hash a file.

        Raises:
            ArtifactError: the file is missing, unreadable or not a regular file.
        """
        try:
            if not path.is_file():
                raise ArtifactError(
                    f"the {kind} file does not exist",
                    where=str(path),
                    remedy="check the path or run the stage again",
                )
            stat = path.stat()
            return cls(kind, path, sha256_of(path), stat.st_size, stat.st_mtime_ns)
        except OSError as error:
            raise ArtifactError(f"cannot read the {kind} file: {error.strerror}", where=str(path)) from None

    def unchanged_on_disk(self) -> bool:
        """True when size and time are as recorded, or else when the bytes still hash to the recorded sha256."""
        try:
            stat = self.path.stat()
        except OSError:
            return False
        if stat.st_size != self.size:
            return False
        return stat.st_mtime_ns == self.mtime_ns or sha256_of(self.path) == self.sha256

    def open(self) -> Path:
        """The path, after verifying the sha256.

        Raises:
            ArtifactError: the file is missing or its bytes changed since it was published.
        """
        try:
            actual = sha256_of(self.path)
        except OSError as error:
            raise ArtifactError(
                f"cannot read the {self.kind} artefact: {error.strerror}",
                where=str(self.path),
                remedy="run the stage that makes it again with --force",
            ) from None
        if actual != self.sha256:
            raise ArtifactError(
                f"the {self.kind} artefact changed since it was published "
                f"(sha256 {actual[:12]}, recorded {self.sha256[:12]})",
                where=str(self.path),
                remedy="run the stage that makes it again with --force",
            )
        return self.path


def sha256_of(path: Path) -> str:
    """Hex sha256 of a file, read in pieces of 1 MiB."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
