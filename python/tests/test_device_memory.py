"""Arrays in device memory: with an OpenCL driver for processors, and with the stand-in for CUDA's."""

import gc
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import tfcompile
from conftest import CHOSEN, COUNTER, LAYER
from test_device import X, Y, needs_opencl

PAIR = b"""
node { name: "a" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "b" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "difference" op: "Sub" input: "a" input: "b" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "product" op: "Mul" input: "a" input: "b" attr { key: "T" value { type: DT_FLOAT } } }
"""

# Where as columns: the size of dimension 1 depends on the data.
COLUMNS = CHOSEN + b"""
node { name: "order" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 1 int_val: 0 } } } }
node { name: "columns" op: "Transpose" input: "places" input: "order" attr { key: "T" value { type: DT_INT64 } }
       attr { key: "Tperm" value { type: DT_INT32 } } }
"""


@pytest.fixture
def layer():
    return tfcompile.compile(LAYER, target="opencl").load()


@needs_opencl
@pytest.mark.parametrize("dtype", ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"])
def test_an_array_goes_to_the_device_and_back(layer, dtype):
    array = np.arange(6).reshape(2, 1, 3).astype(dtype)
    on_device = layer.to_device(array)
    assert isinstance(on_device, tfcompile.DeviceArray)
    assert (on_device.shape, on_device.dtype, on_device.nbytes) == (array.shape, array.dtype, array.nbytes)
    assert on_device.device == layer.device == "opencl:0"
    back = np.asarray(on_device)
    assert back.dtype == array.dtype and back.tolist() == array.tolist()
    # A copy, which is the caller's.
    back[...] = 0
    assert np.asarray(on_device).tolist() == array.tolist()


@needs_opencl
def test_arrays_of_all_layouts_are_copied(layer):
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    for given in [array.T, array[::2, 1:3], array[1, 2], array[:0], np.float32(2), [1.5, 2.5]]:
        assert np.asarray(layer.to_device(given)).tolist() == np.asarray(given).tolist()
        assert layer.to_device(given).shape == np.shape(given)
    assert repr(layer.to_device(array)) == "<tfcompile.DeviceArray float32[3, 4] on opencl:0>"
    assert np.asarray(layer.to_device(array), dtype=np.int64).dtype == np.int64
    with pytest.raises(ValueError, match="without a copy"):
        layer.to_device(array).__array__(copy=False)
    with pytest.raises(AttributeError, match="only arrays of CUDA"):
        layer.to_device(array).__cuda_array_interface__
    assert not hasattr(layer.to_device(array), "__cuda_array_interface__")
    with pytest.raises(TypeError, match="unsupported array type"):
        layer.to_device(np.array(["text"]))


@needs_opencl
def test_narrow_types_go_to_the_device_and_back(layer):
    narrow = pytest.importorskip("ml_dtypes")
    array = np.array([1.5, -2], narrow.bfloat16)
    on_device = layer.to_device(array)
    assert on_device.dtype == array.dtype and np.asarray(on_device).tolist() == [1.5, -2]


@needs_opencl
def test_results_are_arrays_of_the_host_or_of_the_device(layer):
    x = layer.to_device(X)
    for _ in range(3):
        assert layer(x)["y"].tolist() == layer(X)["y"].tolist() == Y
        assert isinstance(layer(x)["y"], np.ndarray)
        for given in [x, X]:
            y = layer.run_on_device(given)["y"]
            assert isinstance(y, tfcompile.DeviceArray) and y.shape == (2, 2) and y.dtype == np.float32
            assert np.asarray(y).tolist() == Y
    # relu(-x w), by hand: results of other runs keep their values.
    other = layer.run_on_device(x=-X)["y"]
    assert np.asarray(other).tolist() == [[0, 3.5], [0, 11]] and np.asarray(y).tolist() == Y


@needs_opencl
def test_results_of_one_model_are_arguments_of_another(layer):
    pair = tfcompile.compile(PAIR, target="opencl", fetches=["difference", "product"]).load()
    a = pair.run_on_device([5, 7], [1, 2])["difference"]
    # Host and device arguments, in both orders.
    results = pair(a, [10, 100])
    assert results["difference"].tolist() == [-6, -95] and results["product"].tolist() == [40, 500]
    assert pair(a=[1, 1], b=a)["difference"].tolist() == [-3, -4]
    results = pair.run_on_device(a=a, b=a)
    assert np.asarray(results["product"]).tolist() == [16, 25]
    assert pair(results["product"], results["difference"])["difference"].tolist() == [16, 25]


@needs_opencl
def test_arrays_outlive_their_model():
    layer = tfcompile.compile(LAYER, target="opencl").load()
    y = layer.run_on_device(X)["y"]
    del layer
    gc.collect()
    assert np.asarray(y).tolist() == Y


@needs_opencl
def test_variables_are_updated_in_place_on_the_device():
    model = tfcompile.compile(COUNTER, target="opencl", shapes={"step": []}).load()
    count = model.to_device(np.int32(40))
    model.set_variable("count", count)
    assert model.variables["count"] is count
    assert int(model(step=2)["now"]) == 42 and int(np.asarray(count)) == 42
    now = model.run_on_device(step=model.to_device(np.int32(3)))["now"]
    assert int(np.asarray(now)) == 45 and int(np.asarray(count)) == 45
    # Another model continues with the same variable.
    other = tfcompile.compile(COUNTER, target="opencl", shapes={"step": []}).load()
    other.set_variable("count", count)
    assert int(other(step=5)["now"]) == 50 and int(model(step=1)["now"]) == 51
    # Back to the host.
    model.set_variable("count", 7)
    assert int(model(step=1)["now"]) == 8 and model.variables["count"] == 8
    assert int(np.asarray(model.run_on_device(step=1)["now"])) == 9 and model.variables["count"] == 9
    assert int(np.asarray(count)) == 51
    with pytest.raises(ValueError, match="unknown variable 'counts'; the variables are count"):
        model.set_variable("counts", 1)


@needs_opencl
def test_models_share_variables_on_the_device():
    first = tfcompile.compile(COUNTER, target="opencl", shapes={"step": []}).load()
    second = tfcompile.compile(COUNTER, target="opencl", shapes={"step": []}).load(variables_of=first)
    assert int(first(step=2)["now"]) == 2 and int(second(step=3)["now"]) == 5
    # Both follow the variable to the device and back.
    first.set_variable("count", first.to_device(np.int32(40)))
    assert int(second(step=1)["now"]) == 41 and int(first(step=1)["now"]) == 42
    second.set_variable("count", 7)
    assert int(first(step=1)["now"]) == 8


@needs_opencl
def test_a_variable_shares_no_memory_with_other_arguments():
    model = tfcompile.compile(COUNTER, target="opencl", shapes={"step": []}).load()
    count = model.to_device(np.int32(1))
    model.set_variable("count", count)
    with pytest.raises(ValueError, match="share memory"):
        model(step=count)
    assert int(model(step=1)["now"]) == 2


@needs_opencl
def test_sizes_that_depend_on_data():
    model = tfcompile.compile(COLUMNS, target="opencl", fetches=["places", "columns"]).load()
    for x in [[0, 3, 0, 0, 1], [0] * 5, [1] * 5]:
        places = [[k] for k in range(5) if x[k] != 0]
        results = model.run_on_device(x=model.to_device(np.array(x, np.int32)))
        assert results["places"].shape == (len(places), 1) and results["columns"].shape == (1, len(places))
        assert np.asarray(results["places"]).tolist() == places
        assert np.asarray(results["columns"]).tolist() == [[k for [k] in places]]
        assert model(x=model.to_device(np.array(x, np.int32)))["places"].tolist() == places


@needs_opencl
def test_unsuitable_arrays_are_named(layer):
    with pytest.raises(ValueError, match=r"feed 'x' expected shape \[2, 3\], got \[3, 2\]"):
        layer(layer.to_device(X.T))
    with pytest.raises(TypeError, match="feed 'x' expected type float32, got float64; arrays on a GPU are not converted"):
        layer(x=layer.to_device(X.astype(np.float64)))

    class OfCuda:
        __cuda_array_interface__ = {"version": 3, "shape": (2, 3), "typestr": "<f4", "data": (4096, False), "stream": None}

    with pytest.raises(ValueError, match="feed 'x' expected an array on opencl:0, got one on a CUDA device"):
        layer(OfCuda())
    counter = tfcompile.compile(COUNTER, target="opencl", shapes={"step": []}).load()
    with pytest.raises(TypeError, match="variable 'count' expected type int32, got float32"):
        counter.set_variable("count", layer.to_device(np.float32(1)))
    with pytest.raises(ValueError, match=r"variable 'count' expected shape \[\], got \[2, 3\]"):
        counter.set_variable("count", X)
    on_processor = tfcompile.compile(LAYER).load()
    assert on_processor.device is None
    for given in [OfCuda(), layer.to_device(X)]:
        with pytest.raises(ValueError, match="feed 'x' expected an array on the host, since the model runs on the processor"):
            on_processor(given)


def test_a_model_on_the_processor_has_no_device_memory():
    model = tfcompile.compile(LAYER).load()
    for call in [model.to_device, model.run_on_device]:
        with pytest.raises(ValueError, match="compile it with target='cuda' or 'opencl'"):
            call(X)
    with pytest.raises(TypeError, match="DeviceArray"):
        tfcompile.DeviceArray()
    counter = tfcompile.compile(COUNTER, shapes={"step": []}).load()
    counter.set_variable("count", 5)
    assert int(counter(step=1)["now"]) == 6 and counter.variables["count"] == 6


def test_arrays_that_refuse_the_interface_are_of_the_host():
    class Sharded:
        def __array__(self, dtype=None, copy=None):
            return X

        @property
        def __cuda_array_interface__(self):
            raise ValueError("only for one device")

    assert tfcompile.compile(LAYER).load()(Sharded())["y"].tolist() == Y


@needs_opencl
def test_threads_share_a_model_and_arrays(layer):
    x, wrong = layer.to_device(X), []

    def run():
        for _ in range(50):
            if np.asarray(layer.run_on_device(x)["y"]).tolist() != Y or layer(x)["y"].tolist() != Y:
                wrong.append(True)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


STAND_IN = Path(__file__).parents[2] / "tests/device/standin_cuda.c"


@pytest.mark.skipif(shutil.which("gcc") is None or not STAND_IN.exists(), reason="needs gcc and the stand-in's source")
def test_memory_of_cuda_with_the_stand_in(tmp_path):
    library = tmp_path / "standin.so"
    subprocess.run(["gcc", "-std=c11", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", STAND_IN, "-o", library, "-lpthread"], check=True)
    # A process opens one driver.
    program = Path(__file__).with_name("on_cuda.py")
    subprocess.run([sys.executable, program], env={**os.environ, "TFCOMPILE_CUDA_DRIVER": str(library)}, check=True)
