"""The task: the user's model, data, loss and metrics. Plain PyTorch; nothing is inherited but a Protocol."""

from __future__ import annotations

import copy
import hashlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from deploychain.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch

METHODS = ("model", "train_data", "test_data", "loss", "metrics")


@runtime_checkable
class Task(Protocol):
    """What a task file provides.

    A data item is ``(input, target)``; ``input`` is a tensor, a tuple of tensors, or a dict of tensors named after
    the arguments of the model's ``forward``. ``train_data`` and ``test_data`` return a ``torch.utils.data.Dataset``
    (the chain makes the loader: seeded shuffling, sharding over processes) or a ``DataLoader`` (its dataset,
    collate function and workers are used).
    """

    def model(self) -> torch.nn.Module:
        """A new, untrained model on the CPU in FP32."""
        ...

    def train_data(self) -> Any: ...

    def test_data(self) -> Any: ...

    def loss(self, outputs: Any, targets: Any) -> torch.Tensor:
        """Scalar loss; it is called inside autocast, on the model's outputs as they are."""
        ...

    def metrics(
        self, outputs: Mapping[str, npt.NDArray[np.float32]], targets: Any
    ) -> Mapping[str, float | npt.NDArray[np.float64] | Sequence[float]]:
        """Metrics over the whole test set.

        Args:
            outputs: per output name an array of shape (samples, ...), float32.
            targets: the targets of the test set, stacked to an array where they are tensors, else a list.

        Returns:
            name -> number, or name -> one score per sample: its mean is the metric, and the scores allow a paired
            comparison between stages. The first name is the main metric. Higher is better unless the optional
            attribute ``lower_is_better: Sequence[str]`` names it.
        """
        ...


# Optional members of a task, looked up by name:
#   classes(targets) -> array of one class index per sample  (per-class metrics, worst class)
#   lower_is_better: Sequence[str]                           (metrics where lower is better)
#   example() -> one batch of inputs                         (default: the first test samples)
#   calibration_data() -> Dataset                            (default: train_data())


def score(task: Task, outputs: Mapping[str, npt.NDArray[Any]], targets: Any) -> Any:
    """What the task's `metrics` say. It gets copies: what it writes into them must not reach the next artefact."""
    return task.metrics({name: array.copy() for name, array in outputs.items()}, copy.deepcopy(targets))


def lower_is_better(task: Task | None) -> frozenset[str]:
    """Names of the metrics where lower is better; a single name may stand without brackets."""
    given = getattr(task, "lower_is_better", ()) or ()
    return frozenset((given,) if isinstance(given, str) else given)


@dataclass(frozen=True, slots=True)
class TaskRef:
    """Where a task lives: ``file.py:Name`` (path resolved) or ``module:Name``."""

    source: str
    file: Path | None
    module: str | None
    attribute: str
    args: Mapping[str, Any]

    @classmethod
    def parse(cls, text: str, base: Path, args: Mapping[str, Any]) -> TaskRef:
        """Split ``file.py:Name`` or ``module:Name``.

        Raises:
            ConfigError: the form is wrong or the file does not exist.
        """
        place, colon, attribute = text.rpartition(":")
        if not colon or not place or not attribute.isidentifier():
            raise ConfigError(
                f"task is {text!r}", remedy='write it as "task.py:ClassName" or "package.module:ClassName"'
            )
        if place.endswith(".py"):
            file = base / place
            if not file.is_file():
                raise ConfigError(
                    f"the task file {file} does not exist", remedy="the path is relative to pipeline.yaml"
                )
            return cls(text, file.resolve(), None, attribute, args)
        return cls(text, None, place, attribute, args)

    def fingerprint(self) -> str:
        """sha256 over the task's code: every .py file of the task's folder or package, so that helpers count too.

        Raises:
            ConfigError: a file cannot be read.
        """
        digest = hashlib.sha256(f"{self.source} {sorted(self.args.items())!r}".encode())
        if self.file is not None:
            folders = [self.file.parent]
        else:
            assert self.module is not None
            folders, files = _code_of(self.module)
            for path in files:
                digest.update(_bytes(path))
        for folder in folders:
            for path in sorted(folder.glob("**/*.py")):
                relative = path.relative_to(folder)
                if any(part.startswith(".") or part in ("runs", "__pycache__") for part in relative.parts):
                    continue
                if path.is_file():
                    digest.update(str(relative).encode() + b"\0" + _bytes(path))
        return digest.hexdigest()

    def load(self) -> Task:
        """Import the user's code and make the task.

        Raises:
            ConfigError: the file does not import, has no such class, or the class lacks a method; the place in the
                user's file is named.
        """
        module = self._import()
        made = getattr(module, self.attribute, None)
        if made is None:
            names = [n for n, v in vars(module).items() if inspect.isclass(v) and v.__module__ == module.__name__]
            raise ConfigError(
                f"{self.source}: there is no {self.attribute!r}",
                remedy=f"classes found: {', '.join(names) or 'none'}",
            )
        try:
            task = made(**self.args) if callable(made) else made
        except (Exception, SystemExit) as error:
            raise ConfigError(
                f"the task could not be made: {type(error).__name__}: {error}",
                where=place_in(error, self.file),
                remedy="check the constructor and task_args",
            ) from error
        missing = [name for name in METHODS if not callable(getattr(task, name, None))]
        if missing:
            raise ConfigError(
                f"{self.source} lacks {', '.join(f'{m}()' for m in missing)}",
                remedy="a task has model(), train_data(), test_data(), loss() and metrics()",
            )
        checked: Task = task
        return checked

    def _import(self) -> Any:
        try:
            if self.file is None:
                assert self.module is not None
                return importlib.import_module(self.module)
            name = f"deploychain_task_{hashlib.sha256(str(self.file).encode()).hexdigest()[:12]}"
            if name in sys.modules:
                return sys.modules[name]
            spec = importlib.util.spec_from_file_location(name, self.file)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            folder = str(self.file.parent)
            if folder not in sys.path:  # the task may import its neighbours
                sys.path.insert(0, folder)
            try:
                spec.loader.exec_module(module)
            except BaseException:
                del sys.modules[name]
                raise
            return module
        except (Exception, SystemExit) as error:  # a script that calls sys.exit() when it is imported
            raise ConfigError(
                f"the task does not import: {type(error).__name__}: {error}",
                where=place_in(error, self.file) or self.source,
                remedy="`deploychain doctor` lists missing packages" if isinstance(error, ImportError) else "",
            ) from error


def _code_of(module: str) -> tuple[list[Path], list[Path]]:
    """Folders of a package, or the file of a single module; neither where it is not found: then `load` tells it."""
    try:
        spec = importlib.util.find_spec(module.partition(".")[0])
    except (ImportError, ValueError):
        return [], []
    if spec is None:
        return [], []
    if spec.submodule_search_locations is not None:
        return [Path(folder) for folder in spec.submodule_search_locations], []
    return [], [Path(spec.origin)] if spec.origin and Path(spec.origin).is_file() else []


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read the task's code: {error.strerror}", where=str(path)) from None


def place_in(error: BaseException, file: Path | None) -> str:
    """``file:line`` of the deepest frame of a traceback that lies in the folder of ``file``; empty if none does."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    if file is None:
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [f for f in frames if Path(f.filename).is_relative_to(file.parent) and "site-packages" not in f.filename]
    return f"{inside[-1].filename}:{inside[-1].lineno}" if inside else ""
