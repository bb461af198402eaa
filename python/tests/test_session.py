"""Sessions and their traces."""

import json

import numpy as np
import pytest
import tfcompile
from conftest import COUNTER, LAYER

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)


def test_fetches_keep_their_structure():
    with tfcompile.Session(LAYER) as session:
        assert session.run("y", {"x": X}).tolist() == [[14, 0], [32, 0]]
        both = session.run({"a": ["y:0", "product:0"], "b": ("y:0",)}, feed_dict={"x:0": X})
        assert both["a"][1].tolist() == [[14, -3.5], [32, -11]]
        assert both["b"][0].tolist() == [[14, 0], [32, 0]]


def test_variables_stay():
    session = tfcompile.Session(COUNTER)
    session.set_variable("count", np.int32(5))
    assert session.run("now", {"step": np.int32(2)}) == 7
    assert session.run(["now", "^add"], {"step": np.int32(1)})[1] is None
    assert session.variables()["count"] == 8
    session.close()
    with pytest.raises(RuntimeError, match="closed"):
        session.run("now", {"step": np.int32(1)})


def test_a_run_is_traced_and_drawn():
    session = tfcompile.Session(LAYER)
    metadata = tfcompile.RunMetadata()
    options = tfcompile.RunOptions(trace_level=tfcompile.RunOptions.FULL_TRACE)
    session.run("y", {"x": X}, options=options, run_metadata=metadata)
    trace = json.loads(tfcompile.timeline.Timeline(metadata.step_stats).generate_chrome_trace_format())
    ops = {event["name"] for event in trace["traceEvents"] if event["ph"] == "X"}
    assert {"MatMul", "Relu"} <= ops


def test_a_config_is_read():
    session = tfcompile.Session(LAYER, config="device_count { key: 'CPU' value: 2 } inter_op_parallelism_threads: 2")
    assert len([device for device in session.list_devices() if ":CPU:" in device]) == 2
    with pytest.raises(ValueError, match="no_such_field"):
        tfcompile.Session(LAYER, config="no_such_field: 1").run("y", {"x": X})


def test_numbers_become_their_placeholders_type():
    with tfcompile.Session(LAYER) as session:
        assert session.run("y", {"x": [[1, 2, 3], [4, 5, 6]]}).tolist() == [[14, 0], [32, 0]]
        assert session.run("y", {"x": X.astype(np.float64)}).tolist() == [[14, 0], [32, 0]]


def test_wrong_runs_are_told():
    session = tfcompile.Session(LAYER)
    with pytest.raises(ValueError, match="z"):
        session.run("z", {"x": X})
    with pytest.raises(ValueError, match="x"):
        session.run("y", {"x": np.ones((2, 3), np.complex64)})
    with pytest.raises(ValueError, match="in this process"):
        tfcompile.Session("grpc://host:1", LAYER)
