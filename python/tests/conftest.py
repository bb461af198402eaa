"""Graphs as text, and a separate constants directory for each test."""

import pytest

LAYER = b"""
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: 2 } dim { size: 3 } } } } }
node { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } dim { size: 2 } }
         float_val: 1 float_val: -1 float_val: 2 float_val: -2 float_val: 3 float_val: 0.5 } } } }
node { name: "product" op: "MatMul" input: "x" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y" op: "Relu" input: "product" attr { key: "T" value { type: DT_FLOAT } } }
"""

COUNTER = b"""
node { name: "step" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "shape" value { shape { } } } }
node { name: "count" op: "VarHandleOp" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "shape" value { shape { } } } attr { key: "shared_name" value { s: "count" } } }
node { name: "add" op: "AssignAddVariableOp" input: "count" input: "step" attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "now" op: "ReadVariableOp" input: "count" input: "^add" attr { key: "dtype" value { type: DT_INT32 } } }
"""

CHOSEN = b"""
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "shape" value { shape { dim { size: 5 } } } } }
node { name: "places" op: "Where" input: "x" attr { key: "T" value { type: DT_INT32 } } }
"""


# Reverses six integers that stand for real numbers.
QUANTIZED = b"""
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_INT8 } }
       attr { key: "shape" value { shape { dim { size: 6 } } } }
       attr { key: "_scales" value { list { f: 0.5 } } } attr { key: "_zero_points" value { list { i: -3 } } } }
node { name: "axis" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 0 } } } }
node { name: "y" op: "ReverseV2" input: "x" input: "axis" attr { key: "T" value { type: DT_INT8 } }
       attr { key: "_scales" value { list { f: 0.25 } } } attr { key: "_zero_points" value { list { i: 4 } } } }
"""


@pytest.fixture(autouse=True)
def constants_directory(tmp_path, monkeypatch):
    directory = tmp_path / "constants"
    monkeypatch.setenv("TFCOMPILE_CONSTANTS_DIR", str(directory))
    return directory
