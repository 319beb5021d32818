"""pipeline.yaml -> typed settings. Every error carries file, line, key, what was expected and the nearest valid key."""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from deploychain.errors import ConfigError
from deploychain.settings import STAGE_ORDER, PipelineSettings
from deploychain.task import TaskRef

MAX_BYTES = 1 << 20  # a pipeline is a page of text; anything larger is another file
MAX_NODES = 100_000  # after alias expansion: refuses "billion laughs" documents

Key = tuple[str | int, ...]


@dataclass(frozen=True)
class Pipeline:
    """A validated pipeline.yaml."""

    file: Path
    settings: PipelineSettings
    lines: Mapping[Key, int]  # 1-based line of each key
    task: TaskRef | None

    @property
    def base(self) -> Path:
        """Paths in the file are relative to this folder."""
        return self.file.parent

    def where(self, *key: str | int) -> str:
        """``file:line`` of a key, or of its nearest parent that the file has."""
        return _where(self.file, self.lines, key)


def load_pipeline(file: Path, overrides: Sequence[str] = ()) -> Pipeline:
    """Read and validate a pipeline file, with ``a.b=c`` overrides from the command line.

    Raises:
        ConfigError: the file is missing, not YAML, or a key or value is wrong.
    """
    raw, lines = load_yaml(file)
    # Stages last: which stages there are by default depends on `start`.
    for text in sorted(overrides, key=_is_of_stages):
        _override(raw, text)
    stages = raw.get("stages")
    if isinstance(stages, dict):
        # `weights:` with nothing behind it runs with its defaults; `qat: false` leaves the stage out.
        raw["stages"] = {k: ({} if v is None else v) for k, v in stages.items() if v is not False}
    elif stages is None:
        raw["stages"] = _default_stages(raw)
    else:
        raise ConfigError(
            f"stages: expected a mapping of stage names to settings, found {_kind(stages)}",
            where=_where(file, lines, ("stages",)),
            remedy=f"stages are {', '.join(STAGE_ORDER)}",
        )
    raw.setdefault("name", re.sub(r"[^A-Za-z0-9._-]+", "-", file.resolve().parent.name).strip("-.") or "pipeline")
    settings = validate(PipelineSettings, raw, file=file, lines=lines, overrides=overrides)
    return Pipeline(file, settings, lines, _task(file, lines, settings))


def load_yaml(file: Path) -> tuple[dict[str, Any], dict[Key, int]]:
    """Read a YAML mapping with the line of each key.

    Raises:
        ConfigError: missing, too large, not UTF-8, not YAML, a duplicate key, or not a mapping.
    """
    try:
        data = file.read_bytes()
    except IsADirectoryError:
        raise ConfigError(
            "this is a folder, not a file", where=str(file), remedy=f"try {file / 'pipeline.yaml'}"
        ) from None
    except OSError as error:
        near = difflib.get_close_matches(file.name, _siblings(file), 1)
        raise ConfigError(
            f"cannot read the file: {error.strerror}",
            where=str(file),
            remedy=f"did you mean {file.parent / near[0]}?" if near else "`deploychain init` writes a starter pipeline",
        ) from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{len(data)} bytes is too large for a pipeline (limit {MAX_BYTES})", where=str(file))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"not UTF-8 text (byte {error.start})", where=str(file), remedy="save it as UTF-8") from None
    try:
        loader = yaml.SafeLoader(text)
    except yaml.YAMLError as error:  # a control character
        raise ConfigError(f"not valid YAML: {' '.join(str(error).split())}", where=str(file)) from None
    try:
        node = loader.get_single_node()
        lines: dict[Key, int] = {}
        if node is not None:
            if _expanded_size(node, {}, (), file) > MAX_NODES:
                raise ConfigError("aliases expand to too many values", where=str(file), remedy="write them out")
            _collect(node, (), lines, file)
        value = loader.construct_document(node) if node is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"{file}:{mark.line + 1}" if mark else str(file)
        raise ConfigError(
            f"not valid YAML: {error.problem or error.context}",
            where=line,
            remedy="check indentation, colons and quotes",
        ) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ConfigError(f"not valid YAML: {' '.join(str(error).split())}", where=str(file)) from None
    finally:
        loader.dispose()
    if not isinstance(value, dict):
        raise ConfigError(
            f"expected a mapping of keys, found {_kind(value)}",
            where=f"{file}:1",
            remedy="start with `task: task.py:Name`",
        )
    return {str(k): v for k, v in value.items()}, lines


M = typing.TypeVar("M", bound=BaseModel)


def validate(
    model: type[M], raw: Mapping[str, Any], *, file: Path, lines: Mapping[Key, int], overrides: Sequence[str] = ()
) -> M:
    """Validate a mapping; all errors come in one ConfigError, one line each.

    Raises:
        ConfigError: one or more keys or values are wrong.
    """
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        problems = [_explain(model, e, file, lines, overrides) for e in error.errors()]
    if len(problems) == 1:
        raise problems[0]
    listed = "".join(f"\n  {problem}" for problem in problems)
    raise ConfigError(f"{len(problems)} problems{listed}", where=problems[0].where)


def nearest(word: str, choices: Sequence[str]) -> str:
    """``did you mean X?``, or the list of choices."""
    match = difflib.get_close_matches(word, choices, 1, cutoff=0.5)
    return f"did you mean {match[0]!r}?" if match else f"valid here: {', '.join(sorted(choices))}"


def _explain(
    model: type[BaseModel], error: Any, file: Path, lines: Mapping[Key, int], overrides: Sequence[str]
) -> ConfigError:
    loc: Key = tuple(error["loc"])
    name = ".".join(str(part) for part in loc) or "the file"
    where = _where(file, lines, loc)
    short = ".".join(str(part) for part in (loc[1:] if loc and loc[0] == "stages" else loc))
    for text in overrides:
        key = text.partition("=")[0].strip()
        if key in (name, short) or key.startswith(f"{name}."):
            where = f"--set {text}"
    if error["type"] == "extra_forbidden":
        what = "unknown stage" if loc[:-1] == ("stages",) else "unknown key"
        valid = _fields_at(model, loc[:-1])
        if where.startswith("--set") and len(loc) == 1:
            valid += STAGE_ORDER  # `--set train.epochs=3` is short for stages.train.epochs
        return ConfigError(f"{name}: {what}", where=where, remedy=nearest(str(loc[-1]), valid))
    found = error.get("input")
    expected = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "model_type":
        expected = "expected a mapping of settings"
    if error["type"] == "literal_error":
        expected = f"expected {error['ctx']['expected']}"
        if isinstance(found, str):
            return ConfigError(
                f"{name}: {expected}, found {found!r}",
                where=where,
                remedy=nearest(found, re.findall(r"'([^']*)'", error["ctx"]["expected"])),
            )
    shown = repr(found) if isinstance(found, (str, int, float, bool, type(None))) else _kind(found)
    return ConfigError(
        f"{name}: {expected[:1].lower()}{expected[1:]}, found {shown}", where=where, remedy="see `deploychain schema`"
    )


def _fields_at(model: type[BaseModel], loc: Key) -> list[str]:
    current: type[BaseModel] | None = model
    for part in loc:
        if current is None:
            return []
        field = current.model_fields.get(str(part))
        # A dict of models (shapes: {input: ShapeRange}) has a free key in between.
        current = _model_in(field.annotation) if field else current
    return list(current.model_fields) if current else []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if typing.get_origin(annotation) in (typing.Union, types.UnionType, dict, typing.Annotated):
        for argument in typing.get_args(annotation):
            found = _model_in(argument)
            if found is not None:
                return found
    return None


def _default_stages(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Everything behind what the chain starts from."""
    start = raw.get("start")
    first = "train"
    if isinstance(start, Mapping):
        first = "plan" if start.get("onnx") else "qat" if start.get("weights") else "weights"
    return {name: {} for name in STAGE_ORDER[STAGE_ORDER.index(first) :]}


def _is_of_stages(text: str) -> bool:
    return text.strip().partition(".")[0] in ("stages", *STAGE_ORDER)


def _override(raw: dict[str, Any], text: str) -> None:
    key, equals, value = text.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        raise ConfigError(
            f"expected key=value, found {text!r}", where="--set", remedy="for example --set train.epochs=3"
        )
    if parts[0] in STAGE_ORDER:
        parts.insert(0, "stages")
    try:
        parsed = yaml.safe_load(value) if value.strip() else None
    except yaml.YAMLError:
        raise ConfigError(f"the value of {text!r} is not valid YAML", where="--set", remedy="quote it") from None
    if parts[0] == "stages" and raw.get("stages") is None:
        raw["stages"] = _default_stages(raw)  # to set one key is not to leave the other stages out
    here = raw
    for part in parts[:-1]:
        child = here.get(part)
        if child is None:
            child = here[part] = {}
        if not isinstance(child, dict):
            raise ConfigError(f"{part} is not a mapping, {key} cannot be set", where=f"--set {text}")
        here = child
    here[parts[-1]] = parsed


def _task(file: Path, lines: Mapping[Key, int], settings: PipelineSettings) -> TaskRef | None:
    if settings.task is None:
        return None
    try:
        return TaskRef.parse(settings.task, file.parent, settings.task_args)
    except ConfigError as error:
        raise ConfigError(error.message, where=_where(file, lines, ("task",)), remedy=error.remedy) from None


def _where(file: Path, lines: Mapping[Key, int], key: Key) -> str:
    for end in range(len(key), -1, -1):
        if key[:end] in lines:
            return f"{file}:{lines[key[:end]]}"
    return str(file)


def _collect(node: yaml.Node, path: Key, lines: dict[Key, int], file: Path) -> None:
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key_node, value_node in node.value:
            name = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else "?"
            line = key_node.start_mark.line + 1
            if name in seen and name != "<<":
                dotted = ".".join(str(p) for p in (*path, name))
                raise ConfigError(f"{dotted}: the key appears twice", where=f"{file}:{line}", remedy="keep one of them")
            seen.add(name)
            lines[(*path, name)] = line
            _collect(value_node, (*path, name), lines, file)
    elif isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            _collect(child, (*path, index), lines, file)


def _expanded_size(node: yaml.Node, sizes: dict[int, int], above: tuple[int, ...], file: Path) -> int:
    if id(node) in above or len(above) > 50:
        raise ConfigError(
            "the document contains itself or is nested too deeply", where=f"{file}:{node.start_mark.line + 1}"
        )
    if id(node) not in sizes:
        children: list[yaml.Node] = []
        if isinstance(node, yaml.MappingNode):
            children = [child for pair in node.value for child in pair]
        elif isinstance(node, yaml.SequenceNode):
            children = list(node.value)
        sizes[id(node)] = 1 + sum(_expanded_size(child, sizes, (*above, id(node)), file) for child in children)
    return sizes[id(node)]


def _siblings(file: Path) -> list[str]:
    try:
        return [p.name for p in file.parent.iterdir()]
    except OSError:
        return []


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    return {dict: "a mapping", list: "a list", str: "text", bool: "true/false"}.get(type(value), type(value).__name__)
