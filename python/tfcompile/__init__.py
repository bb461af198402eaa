"""Compiles TensorFlow graphs, SavedModels, StableHLO, and HLO to machine code, and runs them.

    artifact = tfcompile.compile("saved_model")     # an object file, its C++ header, its weights
    model = artifact.load()                         # code in this process, called with NumPy arrays
    y = model(x=x)["y"]

`Session` runs a graph node by node as TensorFlow 1 does, `config` builds what says which tensors are fed and fetched, `hlo` and
`check` show what the compiler sees. A `DeviceArray` keeps data on a GPU between calls.
"""

from . import config, timeline
from ._artifact import Artifact, Model, compile
from ._native import VERSION as __version__, DeviceArray
from ._report import Report, check, hlo
from ._session import RunMetadata, RunOptions, Session
from .config import Config

__all__ = [
    "Artifact",
    "Config",
    "DeviceArray",
    "Model",
    "Report",
    "RunMetadata",
    "RunOptions",
    "Session",
    "check",
    "compile",
    "config",
    "hlo",
    "timeline",
]
