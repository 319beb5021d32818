"""Layer listings inside text: inspector and builder dumps, the verbose build list, names-only lists, Polygraphy."""

from __future__ import annotations

from typing import Literal

from deploychain.engine.layerjson import named_layer
from deploychain.engine.layertext import io_tensor, parse_build_line, parse_layer_line
from deploychain.engine.model import Listing
from deploychain.engine.polygraphy import TITLE, InspectReader
from deploychain.records import LayerRecord

Source = Literal["json", "inspector", "builder", "build list", "names", "polygraphy"]
_NEW = ("Engine Layer Information:", "Layers:", "Layer Information:", "Layer information:", "Engine information:")
_PENDING_LIMIT = 1 << 20


class _Block:
    def __init__(self, stamped: bool) -> None:
        self.layers: list[LayerRecord] = []
        self.names: list[str] = []
        self.stamped = stamped  # its header was a log message
        self.source: Source = "inspector"
        self.inputs: set[str] = set()
        self.outputs: set[str] = set()
        self.bindings: list[str] = []
        self.closed = False  # its end was seen
        self.headed = False  # a "Layers:" line began it: TensorRT then closes it with the tensors of the network
        self.broken = 0


class BlockReader:
    """Collects the listings of one run. `header` takes message texts, `plain` the lines without a stamp."""

    def __init__(self, max_layers: int) -> None:
        self._room = max_layers
        self._block: _Block | None = None
        self._mode = ""  # "", "layers", "bindings", "io", "other"
        self._pending = ""
        self._pieces = 0  # lines that were joined to the pending one
        self._inspect: InspectReader | None = None
        self._listings: list[Listing] = []
        self._last_is_layer = False
        self.full = False
        self.cut = False  # the text ends inside a listing

    @property
    def found(self) -> bool:
        """Whether a listing was begun."""
        return bool(self._listings or self._block or self._inspect)

    def message(self, text: str) -> bool:
        """Take a stamped message; True where it belongs to a listing."""
        self._last_is_layer = False
        if self._inspect is not None and TITLE not in text:
            self._end_inspect()
        if text.startswith(("Layer(", "Name: ")):
            return self._layer(text)
        if text.startswith(_NEW):
            return self._header(text, stamped=True)
        if TITLE in text:
            self._end()
            self._inspect = InspectReader(self._room)
            return True
        if text.startswith(("Bindings:", "I/O Tensors:", "Engine Metadata:")):
            return self.plain(text)
        if self._mode and text.strip():
            self._pending = ""
            if self._mode == "layers" and self._block is not None and self._block.names:
                self._block.closed = self._block.stamped
            self._mode = "layers" if self._block is not None and self._block.layers else ""
        return False

    def plain(self, line: str) -> bool:
        """Take a line without a stamp; True where it belongs to a listing."""
        self._last_is_layer = self._last_is_layer and not line.strip()
        if self._inspect is not None:
            self._inspect.feed(line)
            return True
        if line.startswith(("Name: ", "Layer(")):
            return self._layer(line)
        if line.startswith(_NEW):
            return self._header(line, stamped=False)
        if line.startswith("==== ") and TITLE in line:
            self._end()
            self._inspect = InspectReader(self._room)
            return True
        if self._block is None:
            return False
        if line.startswith("Bindings:"):
            self._mode, self._block.closed, self._pending = "bindings", True, ""
            return True
        if line.startswith("I/O Tensors:"):
            self._mode, self._block.closed, self._pending = "io", True, ""
            if self._block.layers:
                self._block.source = "builder" if self._block.source == "inspector" else self._block.source
            return True
        if line.startswith("Engine Metadata:"):
            self._mode, self._pending = "other", ""
            return True
        return self._inside(line)

    def _inside(self, line: str) -> bool:
        block = self._block
        if block is None or not self._mode:
            return False
        if not line.strip():
            return True
        if self._mode == "io":
            tensor = io_tensor(line)
            if tensor is not None:
                (block.inputs if tensor[1] == "Input" else block.outputs).add(tensor[0])
                return True
            self._mode = ""
            return False
        if self._mode == "bindings":
            if len(block.bindings) < 10_000 and len(line) < 5000:
                block.bindings.append(line)
            return True
        if self._mode == "layers":
            if self._pending:
                self._continue(line)
                return True
            if not block.layers and len(block.names) < self._room and len(line) < 5000:
                block.names.append(line)
                return True
        return False

    def _continue(self, line: str) -> None:
        """Join a line to the unfinished one before it: a line break in a name, or the cut of a log driver (16 KB)."""
        joiner = "" if len(self._pending) >= 4000 else "\n"
        self._pieces += 1
        # A name has a few line breaks at most, and a log driver cuts into long pieces: everything else is other text.
        if len(self._pending) + len(line) >= _PENDING_LIMIT or (self._pieces > 8 and len(line) < 4000):
            self._flush()
            return
        joined, self._pending = f"{self._pending}{joiner}{line}", ""
        layer = parse_build_line(joined) if joined.startswith("Layer(") else parse_layer_line(joined)
        if layer is None:
            self._pending = joined
        else:
            self._take(layer, joined)

    def _layer(self, line: str) -> bool:
        build = line.startswith("Layer(")
        layer = parse_build_line(line) if build else parse_layer_line(line)
        if self._block is None or (self._mode in ("bindings", "io", "other") and self._block.layers):
            self._end()
            self._block = _Block(stamped=False)
        self._flush()
        self._mode = "layers"
        if layer is not None:
            self._take(layer, line)
        elif ", IOMode: " not in line:
            self._pending = line
        return True

    def _take(self, layer: LayerRecord, line: str) -> None:
        block = self._block
        if block is None:
            return
        if line.startswith("Layer("):
            block.source = "build list"
        elif layer.constants or ", Constants: [" in line:
            block.source = "builder"
        if len(block.layers) >= self._room:
            self.full = True
        else:
            block.layers.append(layer)
            self._last_is_layer = True

    def _flush(self) -> None:
        if self._pending and self._block is not None:
            self._block.broken += 1
        self._pending = ""
        self._pieces = 0

    def _header(self, text: str, stamped: bool) -> bool:
        if text.startswith("Layers:") and self._block is not None and not self._block.layers and not self._block.names:
            self._block.stamped = self._block.stamped or stamped
        else:
            self._end()
            self._block = _Block(stamped)
        self._mode = "layers" if not text.startswith(("Layer Information:", "Engine information:")) else "other"
        self._block.headed = text.startswith("Layers:")
        if text.startswith("Engine Layer Information:"):
            self._block.source = "build list"
        return True

    def _end_inspect(self) -> None:
        if self._inspect is not None:
            listing = self._inspect.finish()
            self._inspect = None
            if listing is not None:
                self._add(listing)

    def _end(self) -> None:
        self._end_inspect()
        self._flush()
        block, self._block, self._mode = self._block, None, ""
        if block is None:
            return
        # Names alone need their closing part, or a header that TensorRT stamped: else any text would do.
        named = (
            block.names if not block.layers and block.source != "build list" and (block.closed or block.stamped) else []
        )
        if not block.layers and not named:
            return
        layers = tuple(block.layers) if block.layers else tuple(named_layer(name) for name in named)
        self._add(
            Listing(
                layers,
                block.source if block.layers else "names",
                frozenset(block.inputs),
                frozenset(block.outputs),
                _true_bindings(block),
                complete=block.broken == 0,
                verbosity="" if block.layers else "names only",
            )
        )

    def _add(self, listing: Listing) -> None:
        """Keep a listing, unless it repeats (a part of) one that is there: some scripts dump each layer again."""
        names = [layer.name for layer in listing.layers]
        for known in self._listings:
            if known.source == listing.source and _repeats(names, known, len(listing.layers) <= len(known.layers)):
                return
        self._room -= len(listing.layers)
        if len(self._listings) < 64:
            self._listings.append(listing)
        else:
            self._listings[-1] = listing

    def finish(self) -> tuple[Listing, ...]:
        block = self._block
        self.cut = self._last_is_layer and block is not None and block.headed and not block.closed
        self._end()
        return tuple(self._listings)


def _repeats(names: list[str], known: Listing, smaller: bool) -> bool:
    if not smaller:
        return False
    if len(names) == len(known.layers):
        return all(layer.name == name for layer, name in zip(known.layers, names, strict=True))
    there = {layer.name for layer in known.layers}
    return all(name in there for name in names)


def _true_bindings(block: _Block) -> tuple[str, ...]:
    """The lines after ``Bindings:`` that are tensors of the listing (other output may follow)."""
    if not block.layers:
        return tuple(block.bindings[:1000])
    known = {t.name for layer in block.layers for t in (*layer.inputs, *layer.outputs)}
    return tuple(name for name in block.bindings if name in known)


_SOURCE_RANK = {"json": 5, "inspector": 4, "builder": 4, "polygraphy": 3, "build list": 2, "names": 1}


def best_listing(listings: tuple[Listing, ...]) -> Listing | None:
    """The most telling listing of a run: the richest source, and of equals the last (the engine that was used)."""
    best: Listing | None = None
    for listing in listings:
        if best is None or _SOURCE_RANK[listing.source] >= _SOURCE_RANK[best.source]:
            best = listing
    return best
