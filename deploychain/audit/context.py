"""What a rule gets to see of one file, and what a rule is."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from deploychain.audit.amp import Amp
from deploychain.audit.astnames import Scope, last_name
from deploychain.audit.dtypes import DtypeWalk
from deploychain.audit.exports import Export, exports
from deploychain.audit.finding import Finding, Severity
from deploychain.audit.flow import GraphBuilder
from deploychain.audit.gradients import Gradients
from deploychain.audit.paths import Graph
from deploychain.audit.sources import Source
from deploychain.audit.symbols import Symbols
from deploychain.audit.tensorrt import CommandLines
from deploychain.audit.values import Seen

# Without one of these nothing in a file is known to be in half precision.
_HALF_WORDS = (
    "autocast",
    "half",
    "float16",
    "fp16",
    "bf16",
    "16-mixed",
    "16-true",
    "precision=16",
    "HalfTensor",
    "autocast_ctx",
)
ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the catalogue and what is worth knowing about it.

    Attributes:
        how: where it looks: "code", "model", "run", "graph", "log", in any combination.
        belief: what is commonly said about it.
        truth: what was measured.
        experiment: what `--demo` runs.
        bad, good: a few lines of code.
    """

    id: str
    name: str
    title: str
    how: str
    belief: str
    truth: str
    experiment: str
    bad: str
    good: str
    check: Callable[[Context], Iterator[Finding]] | None = None
    # A regular expression, or a test, that any file with a finding passes: most files need no analysis.
    trigger: str | Callable[[str], bool] = ""


@cache
def mentioned(trigger: str | Callable[[str], bool]) -> Callable[[str], bool]:
    """The test of a trigger. Alternatives that are plain words are looked for with `in`: ten times faster."""
    if callable(trigger):
        return trigger
    words: list[str] = []
    patterns: list[str] = []
    for part in re.split(r"\|(?![^(]*(?<!\\)\))", trigger):  # at every | that is not inside a group
        plain = re.sub(r"\\([^\w\s])", r"\1", part)
        if re.escape(plain).replace("\\-", "-") == part.replace("\\-", "-"):
            words.append(plain)
        else:
            patterns.append(part)
    search = re.compile("|".join(patterns)).search if patterns else None
    return lambda text: any(word in text for word in words) or (search is not None and search(text) is not None)


class Context:
    """One file under audit. The analyses are made when a rule first asks for them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.code
        self._says: dict[re.Pattern[str], bool] = {}

    def says(self, pattern: re.Pattern[str]) -> bool:
        """Whether the text of the file has a match; rules ask it of one call after the other."""
        known = self._says.get(pattern)
        if known is None:
            known = self._says[pattern] = pattern.search(self.text) is not None
        return known

    @cached_property
    def lines(self) -> list[str]:
        return self.source.text.split("\n")

    @cached_property
    def symbols(self) -> Symbols:
        return Symbols(self.source)

    @cached_property
    def amp(self) -> Amp:
        return Amp(self.symbols)

    @cached_property
    def gradients(self) -> Gradients:
        return Gradients(self.symbols)

    @cached_property
    def graphs(self) -> list[Graph]:
        if not any(word in self.text for word in ("backward", "scaler", "Scaler")):
            return []
        return GraphBuilder(self.symbols, self.amp).graphs()

    @property
    def exhausted(self) -> bool:
        """The names of the file were too many to follow."""
        return "symbols" in self.__dict__ and self.symbols.exhausted

    def unfinished(self) -> list[int]:
        """Lines of the functions whose paths were too many: what was not found there may still be there."""
        made = self.__dict__.get("graphs", [])
        return sorted(getattr(g.root.node, "lineno", 1) for g in made if g.exhausted)

    @cached_property
    def walk(self) -> DtypeWalk:
        walk = DtypeWalk(self.symbols, self.amp)
        if any(word in self.text for word in _HALF_WORDS):
            walk.run()
        return walk

    @cached_property
    def exports(self) -> list[Export]:
        """Every call that writes an ONNX file."""
        return list(exports(self.symbols))

    @cached_property
    def command_lines(self) -> CommandLines:
        """The words of the command lines of a file."""
        return CommandLines(self.symbols)

    @property
    def seen(self) -> list[Seen]:
        return self.walk.seen

    def finding(self, rule: str, node: ast.AST, severity: Severity, message: str, fix: str) -> Finding:
        """A finding at a node of the syntax tree."""
        line, offset = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        # ast counts bytes of UTF-8, editors and SARIF count characters
        column = (
            len(self.lines[line - 1].encode()[:offset].decode(errors="ignore")) + 1 if line <= len(self.lines) else 1
        )
        return Finding(self.source.path, line, column, rule, severity, message, fix)

    def calls(self, *names: str) -> Iterator[tuple[ast.Call, Scope]]:
        """Calls whose canonical name is one of these."""
        for call in self._in_order(self._by_qual, names):
            yield call, self.symbols.scope(call)

    def calls_named(self, *leaves: str) -> Iterator[tuple[ast.Call, Scope]]:
        """Calls whose last name is one of these (as written, or as it was imported), whatever it belongs to."""
        for call in self._in_order(self._by_leaf, leaves):
            yield call, self.symbols.scope(call)

    @cached_property
    def _by_qual(self) -> dict[str, list[int]]:
        """Canonical name -> places in `symbols.calls`."""
        found: dict[str, list[int]] = {}
        for place, call in enumerate(self.symbols.calls):
            found.setdefault(self.symbols.qual(call.func) or "", []).append(place)
        return found

    @cached_property
    def _by_leaf(self) -> dict[str, list[int]]:
        """Last name, as written and as imported -> places in `symbols.calls`."""
        found: dict[str, list[int]] = {}
        for place, call in enumerate(self.symbols.calls):
            for leaf in {last_name(call.func), (self.symbols.qual(call.func) or "").rpartition(".")[2]}:
                found.setdefault(leaf, []).append(place)
        return found

    def _in_order(self, table: dict[str, list[int]], names: Iterable[str]) -> list[ast.Call]:
        places = {place for name in names if name for place in table.get(name, ())}
        return [self.symbols.calls[place] for place in sorted(places)]

    def is_module_class(self, scope: Scope) -> bool:
        """A class of this file that is a torch module (by a base that is one, or is named like one)."""
        for cls in self.symbols.bases(scope):
            for base in getattr(cls.node, "bases", []):
                name = self.symbols.qual(base, cls) or last_name(base)
                leaf = name.rpartition(".")[2]
                if leaf in ("Module", "LightningModule", "PreTrainedModel") or name.startswith("torch.nn."):
                    return True
        return False

    def str(self, node: ast.AST) -> str:
        return self.symbols.text(node)
