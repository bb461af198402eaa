"""Device memory of CUDA, in a process of its own with the stand-in for CUDA's driver (`tests/device/standin_cuda.c`).

The stand-in executes copies but no PTX, so the program consists of copies. It executes them as late as CUDA permits.
"""

import ctypes
import gc
import os

import numpy as np
import pytest
import tfcompile

# new = v = x, and old is the previous value of v.
EXCHANGE = b"""
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: 2 } dim { size: 3 } } } } }
node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: 2 } dim { size: 3 } } } } attr { key: "shared_name" value { s: "v" } } }
node { name: "old" op: "ReadVariableOp" input: "v" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "set" op: "AssignVariableOp" input: "v" input: "x" input: "^old" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "new" op: "ReadVariableOp" input: "v" input: "^set" attr { key: "dtype" value { type: DT_FLOAT } } }
"""


class Controls(ctypes.Structure):
    """`struct standin` of `tests/device/standin.h`."""

    _fields_ = [
        ("machine", ctypes.c_void_p),
        ("reset", ctypes.CFUNCTYPE(None)),
        ("fail_call", ctypes.c_void_p),
        ("fail_function", ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_long, ctypes.c_int)),
        ("failed", ctypes.c_void_p),
        ("calls", ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_char_p)),
        ("log", ctypes.CFUNCTYPE(ctypes.c_char_p)),
        ("misuse", ctypes.CFUNCTYPE(ctypes.c_char_p)),
        ("alive", ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_int)),
    ]


class Foreign:
    """An array of another library: a DeviceArray's memory with other entries of the interface."""

    def __init__(self, array, without=(), **entries):
        self.array = array
        interface = {**array.__cuda_array_interface__, **entries}
        self.__cuda_array_interface__ = {key: value for key, value in interface.items() if key not in without}

    @property
    def address(self):
        return self.__cuda_array_interface__["data"][0]


def main():
    library = ctypes.CDLL(os.environ["TFCOMPILE_CUDA_DRIVER"])
    library.standin_controls.restype = ctypes.POINTER(Controls)
    standin = library.standin_controls().contents

    a, b, c = (np.arange(6, dtype=np.float32).reshape(2, 3) + 10 * k for k in (1, 2, 3))
    model = tfcompile.compile(EXCHANGE, target="cuda", fetches=["old", "new"]).load()
    x = model.to_device(a)
    interface = x.__cuda_array_interface__
    assert interface.pop("data")[0] % 16 == 0
    assert interface == {"version": 3, "shape": (2, 3), "typestr": "<f4", "strides": None, "stream": None}
    empty = model.to_device(a[:0])
    assert empty.__cuda_array_interface__["data"] == (0, False) and empty.__cuda_array_interface__["shape"] == (0, 3)
    assert model.to_device(np.ones(2, bool)).__cuda_array_interface__["typestr"] == "|b1"

    # Arrays of other libraries are used where they are: nothing is copied from or to the host.
    v = model.to_device(b)
    model.set_variable("v", Foreign(v))
    standin.reset()
    results = model.run_on_device(Foreign(x))
    copies = standin.log().split()
    assert b"in" not in copies and b"out" not in copies and b"copy" in copies, copies
    assert np.array_equal(results["old"], b) and np.array_equal(results["new"], a) and np.array_equal(v, a)
    # Successive runs on the same addresses are graphs.
    for given in [b, c, a, c]:
        last = np.asarray(v)
        results = model(model.to_device(given))
        assert np.array_equal(results["old"], last) and np.array_equal(results["new"], given) and np.array_equal(v, given)
    results = model(c)
    assert np.array_equal(results["new"], c) and np.array_equal(v, c)

    # The stream of the interface is waited for.
    stream = ctypes.c_void_p()
    context = ctypes.c_void_p()
    assert library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert library.cuCtxPushCurrent_v2(context) == 0
    assert library.cuStreamCreate(ctypes.byref(stream), 1) == 0
    foreign = Foreign(x, stream=stream.value)
    whole = Foreign(x, without=["stream"], version=2)
    for given, value in [(foreign, b), (whole, c), (foreign, a)]:
        source = model.to_device(value)
        # Queued, and not executed before someone waits.
        bytes = ctypes.c_size_t(x.nbytes)
        addresses = [ctypes.c_uint64(array.address) for array in (given, Foreign(source))]
        assert library.cuMemcpyDtoDAsync_v2(*addresses, bytes, stream) == 0
        calls = standin.calls(b"cuStreamSynchronize"), standin.calls(b"cuCtxSynchronize")
        results = model.run_on_device(given)
        assert standin.calls(b"cuCtxSynchronize") - calls[1] == (given is whole)
        assert np.array_equal(results["new"], value), value
    # Without an entry for a stream, the run does not wait.
    before = standin.calls(b"cuCtxSynchronize")
    model.run_on_device(Foreign(x))
    assert standin.calls(b"cuCtxSynchronize") == before

    # Memory that others know returns to the pool when their work is done.
    unknown = model.to_device(b)
    del unknown
    assert standin.calls(b"cuCtxSynchronize") == before
    known = model.to_device(b)
    assert known.__cuda_array_interface__["data"][0] != 0
    del known
    gc.collect()
    assert standin.calls(b"cuCtxSynchronize") == before + 1

    strided = {"shape": (2, 3), "strides": (12, 4)}
    assert np.array_equal(model(Foreign(x, **strided))["new"], np.asarray(x))
    for entries, error, text in [
        ({"shape": (3, 2)}, ValueError, r"feed 'x' expected shape \[2, 3\], got \[3, 2\]"),
        ({"typestr": "<f8"}, TypeError, "feed 'x' expected type float32, got float64; arrays on a GPU are not converted"),
        ({"typestr": ">f4"}, TypeError, "feed 'x' expected type float32, got >f4"),
        ({"strides": (4, 8)}, ValueError, "feed 'x' expected a contiguous array in row-major order"),
        ({"data": (x.__cuda_array_interface__["data"][0] + 4, False)}, ValueError, "feed 'x' expected memory aligned to 16 bytes"),
        ({"mask": Foreign(x)}, ValueError, "feed 'x' expected an array without a mask"),
        ({"stream": 0}, ValueError, "feed 'x' has stream 0"),
    ]:
        with pytest.raises(error, match=text):
            model(Foreign(x, **entries))
    read_only = (x.__cuda_array_interface__["data"][0], True)
    model(Foreign(x, data=read_only))
    with pytest.raises(ValueError, match="variable 'v' expected a writable array: the run updates it in place"):
        model.set_variable("v", Foreign(v, data=read_only))
    with pytest.raises(ValueError, match="share memory"):
        model(v)
    # Another device of the same kind.
    other = tfcompile.compile(EXCHANGE, target="cuda:sm_80", fetches=["old", "new"]).load(device="cuda:1")
    with pytest.raises(ValueError, match="feed 'x' expected an array on cuda:1, got one on cuda:0"):
        other(x)

    # A driver's error is one of the run. The next run works.
    standin.fail_function(b"cuMemcpyDtoDAsync_v2", 0, 2)
    with pytest.raises(ValueError, match="CUDA_ERROR_OUT_OF_MEMORY"):
        model.run_on_device(model.to_device(b))
    standin.fail_function(None, 0, 0)
    assert np.array_equal(model.run_on_device(b)["new"], b)
    assert standin.misuse() == b"", standin.misuse()


if __name__ == "__main__":
    main()
