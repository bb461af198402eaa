"""Compiling, loading, and sending to another process."""

import gc
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import tfcompile
from conftest import CHOSEN, COUNTER, LAYER, QUANTIZED

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
# relu(x w), by hand.
Y = [[14, 0], [32, 0]]


def test_a_graph_becomes_a_callable():
    model = tfcompile.compile(LAYER).load()
    assert model.feeds == {"x": (np.dtype(np.float32), (2, 3))}
    assert model(x=X)["y"].tolist() == Y
    assert model(X)["y"].tolist() == Y
    # Lists, other types of the same kind, and arrays with another layout are copied.
    assert model([[1, 2, 3], [4, 5, 6]])["y"].tolist() == Y
    assert model(X.astype(np.float64))["y"].tolist() == Y
    assert model(np.asfortranarray(X))["y"].tolist() == Y


def test_results_are_each_calls_own_and_aligned():
    model = tfcompile.compile(LAYER).load(threads=2)
    first, second = model(X)["y"], model(-X)["y"]
    assert first.tolist() == Y
    assert second.tolist() == [[0, 3.5], [0, 11]]
    assert first.ctypes.data % 64 == 0


def test_a_file_is_read_where_it_is(tmp_path):
    path = tmp_path / "layer.pbtxt"
    path.write_bytes(LAYER)
    artifact = tfcompile.compile(path)
    assert artifact.name == "layer_model"
    assert "class LayerModel final" in artifact.header
    artifact.save(tmp_path / "out")
    assert (tmp_path / "out" / "layer_model.o").read_bytes() == artifact.object
    assert (tmp_path / "out" / "layer_model.constants").read_bytes().startswith(b"TFCCONST")


def test_an_artifact_is_a_value(constants_directory):
    artifact = tfcompile.compile(LAYER)
    data = pickle.dumps(artifact)
    assert pickle.loads(data).load()(X)["y"].tolist() == Y
    # Both use the same constants file.
    assert len(list(constants_directory.iterdir())) == 1
    for path in constants_directory.iterdir():
        path.unlink()
    # Another process, as on another machine.
    code = (
        "import pickle, sys; import numpy as np\n"
        "model = pickle.load(sys.stdin.buffer).load()\n"
        "print(model(np.array([[1, 2, 3], [4, 5, 6]], np.float32))['y'].tolist())"
    )
    run = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True)
    assert run.stdout.decode().strip() == "[[14.0, 0.0], [32.0, 0.0]]"
    assert len(list(constants_directory.iterdir())) == 1


def test_a_pickle_with_damaged_weights_is_refused(constants_directory):
    artifact = tfcompile.compile(LAYER)
    function, (object, header, name, constants, digest, notes) = artifact.__reduce__()
    for path in constants_directory.iterdir():
        path.unlink()
    damaged = constants[:-1] + bytes([constants[-1] ^ 1])
    with pytest.raises(ValueError, match="damaged"):
        function(object, header, name, damaged, digest, notes)


def test_weights_are_mapped_and_shared(constants_directory):
    artifact = tfcompile.compile(LAYER)
    models = [artifact.load(), artifact.load()]
    (path,) = constants_directory.iterdir()
    with open("/proc/self/maps") as maps:
        mapped = [line for line in maps if str(path) in line]
    assert len(mapped) == 2 and all(line.split()[1].startswith("r--") for line in mapped)
    assert [model(X)["y"].tolist() for model in models] == [Y, Y]


def test_models_that_are_no_longer_used_leave_no_memory():
    artifact = tfcompile.compile(LAYER)

    def mapped():
        for _ in range(50):
            assert artifact.load()(X)["y"].tolist() == Y
        gc.collect()
        return len(Path("/proc/self/maps").read_text().splitlines())

    before = mapped()
    # A model has a few mappings of its own, for its code and its weights.
    assert mapped() < before + 50


def test_variables_live_from_call_to_call():
    model = tfcompile.compile(COUNTER, fetches=["now"], shapes={"step": []}).load()
    assert [int(model(step=3)["now"]) for _ in range(2)] == [3, 6]
    model.variables["count"][...] = 100
    assert int(model(1)["now"]) == 101


# Returns twice the variable of COUNTER.
READER = b"""
node { name: "count" op: "VarHandleOp" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "shape" value { shape { } } } attr { key: "shared_name" value { s: "count" } } }
node { name: "now" op: "ReadVariableOp" input: "count" attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "twice" op: "AddV2" input: "now" input: "now" attr { key: "T" value { type: DT_INT32 } } }
"""


def test_models_share_variables():
    counter = tfcompile.compile(COUNTER, fetches=["now"], shapes={"step": []}).load()
    reader = tfcompile.compile(READER, fetches=["twice"]).load(variables_of=counter)
    counter(step=3)
    assert int(reader()["twice"]) == 6
    reader.set_variable("count", 10)
    assert int(counter(step=1)["now"]) == 11
    assert counter.variables["count"] is reader.variables["count"]
    # A call of one model waits for a call of the other.
    with counter._lock:
        waiting = threading.Thread(target=reader)
        waiting.start()
        waiting.join(timeout=0.2)
        assert waiting.is_alive()
    waiting.join()


def test_models_without_common_variables_are_refused():
    counter = tfcompile.compile(COUNTER, fetches=["now"], shapes={"step": []}).load()
    with pytest.raises(ValueError, match="no variable in common: this one has none, the other one count; .*variables_to_feed"):
        tfcompile.compile(LAYER).load(variables_of=counter)
    wide = READER.replace(b"shape { } }", b"shape { dim { size: 2 } } }").replace(b"DT_INT32", b"DT_FLOAT")
    with pytest.raises(ValueError, match=r"variable 'count' is float32\[2\], but int32\[\] in the other model"):
        tfcompile.compile(wide, fetches=["twice"]).load(variables_of=counter)


def test_a_loaded_model_stays_in_its_process():
    with pytest.raises(TypeError, match="pickle the artifact"):
        pickle.dumps(tfcompile.compile(LAYER).load())


def test_bounded_results_are_cut():
    model = tfcompile.compile(CHOSEN).load()
    assert model(np.array([0, 7, 0, 0, 9], np.int32))["places"].tolist() == [[1], [4]]
    assert model(np.zeros(5, np.int32))["places"].shape == (0, 1)


def test_wrong_calls_are_told():
    model = tfcompile.compile(LAYER).load()
    with pytest.raises(ValueError, match=r"feed 'x' expected shape \[2, 3\], got \[3, 2\]"):
        model(X.T)
    with pytest.raises(TypeError, match="unknown feed 'z'; the feeds are x"):
        model(X, z=1)
    with pytest.raises(TypeError, match="missing feed 'x'"):
        model()
    with pytest.raises(TypeError, match="feed 'x' expected type float32, got complex64"):
        model(X.astype(np.complex64))


def test_wrong_models_are_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such model"):
        tfcompile.compile(tmp_path / "nothing.pb")
    with pytest.raises(ValueError, match="nope") as raised:
        tfcompile.compile(LAYER, fetches=["nope"])
    assert raised.value.code == "E0305"
    with pytest.raises(TypeError, match="unknown option 'fetch'"):
        tfcompile.compile(LAYER, fetch="y")
    with pytest.raises(TypeError, match="expected a model, got int"):
        tfcompile.compile(5)


def test_nothing_is_left_of_a_failed_build(constants_directory):
    with pytest.raises(ValueError):
        tfcompile.compile(LAYER, fetches=["nope"])
    assert list(constants_directory.iterdir()) == []


def test_one_array_for_two_variables_is_refused():
    two = COUNTER + COUNTER.replace(b'"count"', b'"other"').replace(b'"add"', b'"add2"').replace(
        b'"now"', b'"now2"'
    ).replace(b'"^add"', b'"^add2"').replace(b'name: "step"', b'name: "step2"').replace(b'"step"', b'"step2"')
    model = tfcompile.compile(two, fetches=["now", "now2"], shapes={"step": [], "step2": []}).load()
    model._memory["other"].array = model._memory["count"].array
    with pytest.raises(ValueError, match="share memory"):
        model(1, 1)


def test_quantized_arrays_have_scale_and_zero_point():
    model = tfcompile.compile(QUANTIZED).load()
    assert model.quantization == {"x": (0.5, -3), "y": (0.25, 4)}
    # In steps of 0.5: -2.5, 0.5, 0.4, both ends, and no number.
    values = [-1.25, 0.25, 0.2, 1e30, -np.inf, np.nan]
    x = model.quantize("x", values)
    assert x.dtype == np.int8 and x.tolist() == [-6, -2, -3, 127, -128, -3]
    y = model(x=x)["y"]
    assert y.tolist() == [-3, -128, 127, -3, -2, -6]
    # 0.25 * (stored - 4).
    assert model.dequantize("y", y).tolist() == [-1.75, -33, 30.75, -1.75, -1.5, -2.5]
    for given in (np.array(values, np.float32), values):
        with pytest.raises(TypeError, match=r"feed 'x' expected type int8, got float.*model.quantize\('x', array\)"):
            model(x=given)
    with pytest.raises(ValueError, match="'y' is not quantized; these are: x"):
        model.quantize("y", values)
    assert tfcompile.compile(LAYER).load().quantization == {}


def test_a_feed_becomes_a_constant_that_sizes_follow():
    graph = b"""
        node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
          attr { key: "shape" value { shape { dim { size: 6 } } } } }
        node { name: "sizes" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } }
          attr { key: "shape" value { shape { dim { size: 2 } } } } }
        node { name: "y" op: "Reshape" input: "x" input: "sizes" attr { key: "T" value { type: DT_FLOAT } }
          attr { key: "Tshape" value { type: DT_INT32 } } }"""
    with pytest.raises(ValueError, match="--feed-constant sizes=VALUE"):
        tfcompile.compile(graph)
    model = tfcompile.compile(graph, feed_constants={"sizes": [2, 3]}).load()
    assert list(model.feeds) == ["x"]
    assert model([1, 2, 3, 4, 5, 6])["y"].tolist() == [[1, 2, 3], [4, 5, 6]]
