"""The one exception tree of deploychain, and the exit code of each branch.

    DeploychainError            1  a finding that the user asked to fail on, or an unexpected state
    ├── ConfigError             2  pipeline.yaml, command-line values, the task file: wrong before anything ran
    ├── StageError              3  a stage could not do its work
    │   └── ArtifactError       3  a file is missing, damaged, cut or of another kind
    ├── CapabilityError         4  this machine lacks something: a package, a GPU, disk space, TensorRT
    └── Interrupted           130  Ctrl-C or SIGTERM

Each error says what happened, where (file:line, key, node, module) and what to do about it.
"""

from __future__ import annotations

from typing import ClassVar


class DeploychainError(Exception):
    """Base of every error that deploychain raises on purpose.

    Args:
        message: what happened, one sentence.
        where: file:line, configuration key, ONNX node or torch module, as precise as known.
        remedy: what the user can do, one sentence; empty when nothing sensible can be said.
    """

    exit_code: ClassVar[int] = 1
    kind: ClassVar[str] = "error"

    def __init__(self, message: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text} ({self.remedy})" if self.remedy else text

    def to_dict(self) -> dict[str, str]:
        """The form that ``--json`` prints under ``"error"``."""
        return {"kind": self.kind, "message": self.message, "where": self.where, "remedy": self.remedy}


class ConfigError(DeploychainError):
    """The user's configuration, command line or task is wrong."""

    exit_code = 2
    kind = "configuration"


class StageError(DeploychainError):
    """A stage failed while doing its work."""

    exit_code = 3
    kind = "stage"


class ArtifactError(StageError):
    """A file cannot be used: missing, damaged, cut, or not what its kind says."""

    kind = "artefact"


class CapabilityError(DeploychainError):
    """This machine cannot do what was asked: a package, device or resource is missing."""

    exit_code = 4
    kind = "environment"


class Interrupted(DeploychainError):
    """Somebody stopped the command."""

    exit_code = 130
    kind = "interrupted"
