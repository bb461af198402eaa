"""Calls with arrays that need no conversion, and those that must not be mistaken for them."""

import threading
import tracemalloc

import numpy as np
import pytest
import tfcompile
from conftest import CHOSEN, COUNTER, LAYER

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
# relu(x w), by hand.
Y = [[14, 0], [32, 0]]
# The same layer for 1 to 64 rows.
OPEN = LAYER.replace(b"dim { size: 2 }", b"dim { size: -1 }", 1)
W = np.array([[1, -1], [2, -2], [3, 0.5]])

# The difference of two vectors of a type.
DIFFERENCE = b"""
node { name: "a" op: "Placeholder" attr { key: "dtype" value { type: TYPE } }
       attr { key: "shape" value { shape { dim { size: 3 } } } } }
node { name: "b" op: "Placeholder" attr { key: "dtype" value { type: TYPE } }
       attr { key: "shape" value { shape { dim { size: 3 } } } } }
node { name: "d" op: "Sub" input: "a" input: "b" attr { key: "T" value { type: TYPE } } }
"""

# Runs that take long enough to release the GIL.
LONG = b"""HloModule long

ENTRY main {
  x = f32[256,256] parameter(0)
  y = f32[256,256] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[256,256]) tuple(y)
}
"""


def is_exact(model, *arguments, **named):
    return model._exact.call(arguments, named) is not None


@pytest.fixture
def layer():
    return tfcompile.compile(LAYER).load()


@pytest.fixture
def difference():
    return tfcompile.compile(DIFFERENCE.replace(b"TYPE", b"DT_FLOAT")).load()


def test_arrays_of_the_right_type_are_read_where_they_are(layer):
    frozen = X.copy()
    frozen.flags.writeable = False
    # A part of an array, at an address that is no multiple of 64.
    part = np.concatenate([[0], X.ravel()]).astype(np.float32)[1:].reshape(2, 3)
    for x in (X, frozen, part):
        assert is_exact(layer, x) and is_exact(layer, x=x)
        assert layer(x)["y"].tolist() == Y and layer(x=x)["y"].tolist() == Y


def test_other_arrays_are_converted(layer):
    class Special(np.ndarray):
        pass

    unaligned = np.frombuffer(b"." + X.tobytes(), np.uint8)[1:].view(np.float32).reshape(2, 3)
    wide = np.zeros((2, 6), np.float32)
    wide[:, ::2] = X
    others = [np.asfortranarray(X), wide[:, ::2], unaligned, X.astype(">f4"), X.astype(np.float64), X.tolist(), X.view(Special)]
    for x in others:
        assert not is_exact(layer, x) and not is_exact(layer, x=x)
        assert layer(x)["y"].tolist() == Y and layer(x=x)["y"].tolist() == Y


def test_wrong_arrays_are_refused_by_name(layer):
    with pytest.raises(TypeError, match="feed 'x' expected type float32, got complex64"):
        layer(X.astype(np.complex64))
    for wrong, shape in [(X[:1], r"\[1, 3\]"), (X.T.copy(), r"\[3, 2\]"), (X.ravel(), r"\[6\]"), (np.float32(1), r"\[\]")]:
        with pytest.raises(ValueError, match=rf"feed 'x' expected shape \[2, 3\], got {shape}"):
            layer(wrong)
        with pytest.raises(ValueError, match=rf"feed 'x' expected shape \[2, 3\], got {shape}"):
            layer(x=np.array(wrong))


def test_wrong_names_are_refused(difference):
    a, b = np.array([5, 7, 9], np.float32), np.array([1, 2, 4], np.float32)
    for found in (difference(a, b), difference(a, b=b), difference(b=b, a=a)):
        assert found["d"].tolist() == [4, 5, 5]
    with pytest.raises(TypeError, match="unknown feed 'c'; the feeds are a, b"):
        difference(a, c=b)
    with pytest.raises(TypeError, match="feed 'a' is given more than once"):
        difference(a, a=b)
    with pytest.raises(TypeError, match="missing feed 'b'; the feeds are a, b"):
        difference(a)
    with pytest.raises(TypeError, match="expected at most 2 arguments, got 3"):
        difference(a, b, a)


@pytest.mark.parametrize("name", ["float16", "float64", "int32", "int64", "uint8", "complex64", "complex128"])
def test_types(name):
    types = {"float16": "DT_HALF", "float64": "DT_DOUBLE", "complex64": "DT_COMPLEX64", "complex128": "DT_COMPLEX128"}
    text = DIFFERENCE.replace(b"TYPE", types.get(name, f"DT_{name.upper()}").encode())
    model = tfcompile.compile(text).load()
    a, b = np.array([5, 7, 9], name), np.array([1, 2, 4], name)
    assert is_exact(model, a, b)
    d = model(a, b)["d"]
    assert d.dtype == name and d.tolist() == [4, 5, 5]


def test_arrays_without_dimensions():
    model = tfcompile.compile(COUNTER, fetches=["now"], shapes={"step": []}).load()
    step = np.array(3, np.int32)
    for count in (3, 6):
        now = model(step)["now"]
        assert now.shape == () and now == count
    assert is_exact(model, step) and not is_exact(model, 3) and not is_exact(model, np.int32(3))
    # A variable whose array cannot be written is not overwritten.
    model.variables["count"].flags.writeable = False
    assert not is_exact(model, step)
    with pytest.raises(ValueError, match="writable"):
        model(step)
    assert model.variables["count"] == 9


def test_a_variable_that_is_also_a_feed_is_refused():
    model = tfcompile.compile(COUNTER, fetches=["now"], shapes={"step": []}).load()
    with pytest.raises(ValueError, match="share memory"):
        model(model.variables["count"])


def test_results_are_new_arrays(layer):
    first = layer(X)["y"]
    second = layer(-X)["y"]
    assert first.tolist() == Y and second.tolist() == [[0, 3.5], [0, 11]]
    for array in (first, second):
        assert array.flags.c_contiguous and array.flags.writeable and array.flags.aligned and array.ctypes.data % 64 == 0
        assert type(array) is np.ndarray and array.dtype == np.float32
    first[...] = 0
    assert second.tolist() == [[0, 3.5], [0, 11]]


def test_results_have_the_true_sizes():
    model = tfcompile.compile(CHOSEN).load()
    for x, places in ([0, 4, 0, 0, 9], [[1], [4]]), ([0] * 5, []), ([1] * 5, [[0], [1], [2], [3], [4]]):
        x = np.array(x, np.int32)
        assert is_exact(model, x)
        (found,) = model(x).values()
        assert found.shape == (len(places), 1) and found.tolist() == places


def test_any_number_of_rows_in_the_range():
    model = tfcompile.compile(OPEN).load()
    for rows in (1, 64, 7):
        x = np.random.default_rng(rows).integers(-9, 10, (rows, 3)).astype(np.float32)
        assert is_exact(model, x)
        y = model(x)["y"]
        assert np.array_equal(y, np.maximum(x @ W, 0))
        # Memory for these rows, not for the largest number of them.
        assert y.base.nbytes <= y.nbytes + 64
        assert not is_exact(model, x, batch=rows) and np.array_equal(model(x, batch=rows)["y"], y)
    for rows in (0, 65):
        with pytest.raises(ValueError, match=rf"batch is out of range: 1\.\.64 \(feed 'x' has {rows} in dimension 0\)"):
            model(np.zeros((rows, 3), np.float32))


def test_parts_of_results_that_are_not_rows(tmp_path):
    path = tmp_path / "columns.hlo"
    path.write_bytes(b"""HloModule columns

ENTRY main {
  x = s32[2,5] parameter(0)
  n = s32[] parameter(1)
  part = s32[2,<=5] set-dimension-size(x, n), dimensions={1}
  y = s32[2,<=5] negate(part)
  ROOT r = (s32[2,<=5]) tuple(y)
}
""")
    model = tfcompile.compile(path).load()
    x, n = np.arange(10, dtype=np.int32).reshape(2, 5), np.array(3, np.int32)
    assert is_exact(model, x, n)
    assert model(x, n)["result0"].tolist() == [[0, -1, -2], [-5, -6, -7]]


def test_threads_call_at_the_same_time(tmp_path):
    path = tmp_path / "long.hlo"
    path.write_bytes(LONG)
    short, long = tfcompile.compile(OPEN).load(), tfcompile.compile(path).load(threads=2)
    wrong = []

    def call(seed):
        random = np.random.default_rng(seed)
        for rows in random.integers(1, 65, 200):
            x = random.integers(-9, 10, (rows, 3)).astype(np.float32)
            # Some arrays need a conversion.
            if not np.array_equal(short(x if rows % 3 else np.asfortranarray(x))["y"], np.maximum(x @ W, 0)):
                wrong.append(rows)
            if rows % 16 == 0:
                square = random.integers(-3, 4, (256, 256)).astype(np.float32)
                if not np.array_equal(long(square)["result0"], square.astype(np.int64) @ square.astype(np.int64)):
                    wrong.append("long")

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert wrong == []


def test_threads_count_together():
    model = tfcompile.compile(COUNTER, fetches=["now"], shapes={"step": []}).load()
    one = np.array(1, np.int32)
    seen = []

    def call():
        seen.extend([int(model(one)["now"]) for _ in range(250)])

    threads = [threading.Thread(target=call) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(seen) == list(range(1, 1001))


def test_calls_leave_no_memory(layer):
    def live():
        tracemalloc.start()
        for _ in range(2000):
            layer(X)
            layer(x=X)
            with pytest.raises(ValueError):
                layer(X[:1])
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return used

    live()
    assert live() < 20_000
