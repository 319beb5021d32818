"""From a trtexec log to one sentence: why it failed, where, and what to do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from deploychain.process import Ended

_TAIL = 4 << 20


@dataclass(frozen=True, slots=True)
class Failure:
    reason: str
    remedy: str


_MEMORY = (
    "close the desktop and other programs, add swap, or lower the workspace (--workspace MiB) and the largest batch of "
    "the profile"
)
_NODE = re.compile(r"[Cc]ould not find any implementation for node (.+?)(?:\.\)|\. In |\)?\.?\s*$)", re.MULTILINE)
_PARSE = re.compile(r'While parsing node number (\d+) \[(\S+?)(?: -> "(.*?)")?\]')
_NAME = re.compile(r"^(?:Node )?name: \"?([^\"\n]+)\"?", re.MULTILINE | re.IGNORECASE)
_WHY = re.compile(r"ERROR: \S+ In function \S+:\s*\n?(?:\[[^\]]*\] ?\[E\] (?:\[TRT\] )?)?\[?\d*\]? ?(.+)")


def explain(ended: Ended, log: Path, timeout: float) -> Failure:
    """Why a run of trtexec failed. Its own words are kept; the exit status decides where they say nothing."""
    text = _tail(log)
    if ended.timed_out:
        return Failure(
            f"it did not end within {timeout / 60:.3g} minutes and was killed",
            "raise --timeout; a build for an Orin can take ten minutes and more",
        )
    for pattern, reason, remedy in _KNOWN:
        found = re.search(pattern, text)
        if found:
            line = _line(text, found.start())
            return Failure(f"{reason}: {line}" if line else reason, remedy)
    if ended.killed_for_memory:
        return Failure("it was ended by SIGKILL, as the kernel does when memory runs out", _MEMORY)
    if ended.signal_name:
        return Failure(f"it was ended by {ended.signal_name}; {_last_error(text)}", "report the model to NVIDIA")
    node = _NODE.search(text)
    if node:
        return Failure(
            f"no implementation for node {node.group(1)}",
            "this release has no kernel for it: change the node, keep it in FP32, or use a newer TensorRT",
        )
    parse = _PARSE.search(text)
    if parse:
        after = text[parse.end() :]
        name = _NAME.search(after[:4000])
        why = _WHY.search(after[:8000])
        place = f"node {name.group(1)}" if name else f"node number {parse.group(1)}"
        said = f": {why.group(1).strip()}" if why else ""
        return Failure(
            f"{place} ({parse.group(2)}) is not supported{said}",
            "replace that operator in the model, or move it out of the network",
        )
    return Failure(f"trtexec ended with status {ended.status}; {_last_error(text)}", "read the log")


# Fragments of messages, in the order in which they decide.
_KNOWN: tuple[tuple[str, str, str], ...] = (
    (r"libnvdla_compiler\.so", "the Jetson libraries are missing", "start the container with --runtime nvidia"),
    (
        r"error while loading shared libraries",
        "trtexec does not load",
        "start the container with --runtime nvidia, or reinstall TensorRT",
    ),
    (
        r"Unknown option: ",
        "this trtexec does not know an option",
        "report it as a defect of deploychain",
    ),
    (
        r"No space left on device|[Ee]rror writing engine|Could not write engine",
        "the disk is full",
        "free space, or name another disk with --cache",
    ),
    (
        r"CUDA out of memory|out of memory|OutOfMemory|Error Code 2: OutOfMemory|cudaErrorMemoryAllocation",
        "memory ran out",
        _MEMORY,
    ),
    (
        r"Version tag does not match|incompatible serialization version|stdVersionRead == |magicTag",
        "the engine is of another TensorRT",
        "build it again with `deploychain device build`",
    ),
    (
        r"no CUDA-capable device|CUDA driver version is insufficient|cudaErrorNoDevice|Cannot find any available GPU",
        "no GPU answers",
        "start the container with --runtime nvidia (docker) or with the nvidia CDI device",
    ),
    (
        r"Static dimension mismatch while setting input shape|Dimensions? specified .* out of range",
        "an input shape does not fit",
        "check the profile in the bundle",
    ),
)


def _tail(log: Path) -> str:
    try:
        with log.open("rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - _TAIL))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""


def _line(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return _clean(text[start : end if end >= 0 else len(text)])


def _last_error(text: str) -> str:
    """The first error of the run: those after it are mostly its consequences."""
    for line in text.splitlines():
        if re.search(r"\[(?:E|F)\]", line):
            return f"its first error: {_clean(line)}"
    last = next((line for line in reversed(text.splitlines()) if line.strip()), "")
    return f"its last words: {_clean(last)}" if last else "it said nothing"


def _clean(line: str) -> str:
    return re.sub(r"^\s*(?:\[[\d/:-]+\] )?\[[VIWEF]\] (?:\[TRT\] )?", "", line).strip()[:300]
