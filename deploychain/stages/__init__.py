"""The stages, one thin module each. `registry` names them in the order in which they run."""

from __future__ import annotations

from functools import cache

from deploychain.job import Stage


@cache
def registry() -> dict[str, Stage]:
    """name -> declaration. Stage modules import no framework until they run."""
    from deploychain.stages import build, compare, evaluate, export, plan, qat, train, weights

    modules = (train, weights, qat, export, plan, build, evaluate, compare)
    return {module.STAGE.name: module.STAGE for module in modules}
