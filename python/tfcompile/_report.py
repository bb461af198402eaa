"""Reports without code: a model's HLO, and the problems that prevent it from compiling."""

import dataclasses
from typing import Any

from . import _models, _native


@dataclasses.dataclass(frozen=True)
class Problem:
    """A problem that prevents a model from compiling."""

    kind: str
    """`invalid`, `unsupported`, or `internal`."""
    node: str
    op: str
    message: str


@dataclasses.dataclass(frozen=True)
class Report:
    """Result of `check`. True if the model compiles."""

    problems: list[Problem]
    warnings: list[str]
    notes: list[str]
    ops: dict[str, tuple[int, bool]]
    """Number of nodes per op, and whether the op is supported."""

    def __bool__(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        lines = [f"{problem.kind}: {problem.message}" for problem in self.problems]
        return "\n".join(lines or ["no problems: it compiles"])


def check(model: Any, *, inputs: Any = None, **options: Any) -> Report:
    """Lists everything that prevents a model from compiling. Accepts the models and options of `compile`."""
    with _models.on_disk(model, inputs) as (path, name):
        problems, warnings, notes, ops = _native.check(_models.wanted(path, name, options))
    return Report([Problem(*problem) for problem in problems], warnings, notes, ops)


def hlo(model: Any, *, stage: str = "import", format: str = "text", inputs: Any = None, **options: Any) -> str | bytes:
    """Returns a model as HLO.

    `stage` is `import`, `optimized` or `scheduled`; `format` is `text`, `stablehlo`, `dot` or `html`, which are strings, or `proto` or
    `snapshot`, serialized messages of XLA's. Models and options are those of `compile`.
    """
    with _models.on_disk(model, inputs) as (path, name):
        data = _native.hlo(_models.wanted(path, name, options), stage, format)
    return data if format in ("proto", "snapshot") else data.decode()
