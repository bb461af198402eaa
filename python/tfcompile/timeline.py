"""Timelines of traced runs, for chrome://tracing and Perfetto, with the interface of TensorFlow's module `timeline`."""

from typing import Any

from . import _native


class Timeline:
    """Timeline of a run's `StepStats`: `Timeline(run_metadata.step_stats)`."""

    def __init__(self, step_stats: Any, graph: Any = None):
        # TensorFlow's second argument is the graph, which TensorFlow also ignores.
        self._stats = step_stats if isinstance(step_stats, bytes) else step_stats.SerializeToString()

    def generate_chrome_trace_format(self, show_dataflow: bool = True, show_memory: bool = False, op_time: str = "schedule") -> str:
        """Returns the timeline as JSON. `op_time` is accepted but ignored: the only time is when a node ran."""
        # step_stats is field 1 of RunMetadata.
        metadata = b"\x0a" + _varint(len(self._stats)) + self._stats
        return _native.chrome_trace(metadata, show_dataflow, show_memory)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
