"""Calls with arrays of any size up to the largest, without another compilation."""

import pickle
import threading

import numpy as np
import pytest
import tfcompile
from conftest import LAYER
from tfcompile import Config

ROWS = b"""HloModule rows, size_parameters={ (3, 1, 64) }

ENTRY main {
  x = f32[64,16] parameter(0)
  w = f32[16,8] parameter(1)
  z = f32[64,8] parameter(2)
  batch = s32[] parameter(3)
  rows = f32[<=64,16] set-dimension-size(x, batch), dimensions={0}
  summands = f32[<=64,8] set-dimension-size(z, batch), dimensions={0}
  product = f32[<=64,8] dot(rows, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = f32[<=64,8] add(product, summands)
  ROOT r = (f32[<=64,8]) tuple(y)
}
"""

# The sums of the rows of a matrix of any size in a range, and twice a size that no array has.
SUMS = b"""HloModule sums, size_parameters={ (0, 0, 4), (2, 2, 6), (3, 1, 9) }

add {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT sum = s32[] add(a, b)
}

ENTRY main {
  n = s32[] parameter(0)
  x = s32[4,6] parameter(1)
  m = s32[] parameter(2)
  k = s32[] parameter(3)
  zero = s32[] constant(0)
  rows = s32[<=4,6] set-dimension-size(x, n), dimensions={0}
  all = s32[<=4,<=6] set-dimension-size(rows, m), dimensions={1}
  negative = s32[<=4,<=6] negate(all)
  sums = s32[<=4] reduce(all, zero), dimensions={1}, to_apply=add
  twice = s32[] add(k, k)
  ROOT r = (s32[<=4], s32[<=4,<=6], s32[]) tuple(sums, negative, twice)
}
"""


# relu(x w) with w = [[1, -1], [2, -2], [3, 0.5]] for any number of rows.
OPEN = LAYER.replace(b"dim { size: 2 }", b"dim { size: -1 }", 1)
W = np.array([[1, -1], [2, -2], [3, 0.5]])


def arrays(batch, seed=0):
    random = np.random.default_rng(seed)
    # Sums of small integers are exact in any order.
    return [random.integers(-5, 6, shape).astype(np.float32) for shape in [(batch, 16), (16, 8), (batch, 8)]]


def expected(x, w, z):
    return x.astype(np.float64) @ w.astype(np.float64) + z


def load(text, tmp_path):
    path = tmp_path / "model.hlo"
    path.write_bytes(text)
    return tfcompile.compile(path).load()


def test_any_number_of_rows(tmp_path):
    model = load(ROWS, tmp_path)
    assert model.dimensions == {"batch": (1, 64)}
    assert list(model.feeds) == ["x", "w", "z"]
    assert model.feeds["x"] == (np.dtype(np.float32), (64, 16))
    for seed, batch in enumerate([1, 7, 64, 33, 2, 64, 1]):
        x, w, z = arrays(batch, seed)
        y = model(x, w, z)["result0"]
        assert y.shape == (batch, 8)
        assert np.array_equal(y, expected(x, w, z))
        assert np.array_equal(model(z=z, x=x, w=w, batch=batch)["result0"], y)
        assert np.array_equal(model(x.tolist(), w, np.asfortranarray(z))["result0"], y)


def test_an_artifact_keeps_its_dimensions(tmp_path):
    path = tmp_path / "model.hlo"
    path.write_bytes(ROWS)
    model = pickle.loads(pickle.dumps(tfcompile.compile(path))).load(threads=2)
    x, w, z = arrays(5)
    assert np.array_equal(model(x, w, z)["result0"], expected(x, w, z))


def test_sizes_must_agree_and_be_in_range(tmp_path):
    model = load(ROWS, tmp_path)
    x, w, z = arrays(5)
    with pytest.raises(ValueError, match=r"different sizes of batch: feed 'x' has 5 in dimension 0, but feed 'z' has 4 in dimension 0"):
        model(x, w, z[:4])
    with pytest.raises(ValueError, match=r"different sizes of batch: batch is 4, but feed 'x' has 5 in dimension 0"):
        model(x, w, z, batch=4)
    for batch in [0, 65]:
        x, w, z = arrays(batch)
        with pytest.raises(ValueError, match=rf"batch is out of range: 1\.\.64 \(feed 'x' has {batch} in dimension 0\)"):
            model(x, w, z)
    x, w, z = arrays(5)
    with pytest.raises(ValueError, match=r"feed 'x' expected 2 dimensions, got 1"):
        model(x[0], w, z)
    with pytest.raises(ValueError, match=r"feed 'x' expected shape \[5, 16\], got \[5, 15\]"):
        model(x[:, 1:], w, z)
    with pytest.raises(TypeError, match="unknown feed 'rows'"):
        model(x, w, z, rows=5)


def test_several_dimensions(tmp_path):
    model = load(SUMS, tmp_path)
    assert model.dimensions == {"n": (0, 4), "m": (2, 6), "k": (1, 9)}
    random = np.random.default_rng(1)
    for n in range(5):
        for m in range(2, 7):
            x = random.integers(-100, 100, (n, m)).astype(np.int32)
            results = model(x, k=n + m - 1)
            assert results["result0"].tolist() == x.sum(1).tolist()
            assert results["result1"].shape == (n, m) and np.array_equal(results["result1"], -x)
            assert results["result2"] == 2 * (n + m - 1)
    assert model(np.zeros((1, 2), np.int32))["result2"] == 18
    with pytest.raises(ValueError, match=r"k is out of range: 1\.\.9 \(k is 10\)"):
        model(np.zeros((1, 2), np.int32), k=10)
    with pytest.raises(TypeError):
        model(np.zeros((1, 2), np.int32), k=2.5)


def test_threads_may_call_with_different_sizes(tmp_path):
    model = load(ROWS, tmp_path)
    wrong = []

    def call(seed):
        for batch in range(1, 65, 3):
            x, w, z = arrays(batch, seed + batch)
            if not np.array_equal(model(x, w, z)["result0"], expected(x, w, z)):
                wrong.append((seed, batch))

    threads = [threading.Thread(target=call, args=(1000 * k,)) for k in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert wrong == []


def check_layer(model, batches):
    for batch in batches:
        x = np.random.default_rng(batch).integers(-9, 10, (batch, 3)).astype(np.float32)
        assert np.array_equal(model(x)["y"], np.maximum(x @ W, 0)), batch


def test_an_open_batch_has_a_range():
    artifact = tfcompile.compile(OPEN)
    assert any("any size from 1 to 64" in note for note in artifact.notes)
    model = artifact.load()
    assert model.dimensions == {"batch": (1, 64)}
    check_layer(model, [1, 2, 5, 8, 31, 64])


def test_ranges_are_options():
    for options in ({"dims": {"batch": (2, 9)}}, {"batch": (2, 9)}, {"batch": [2, 9], "sizes": {"batch": [3]}}):
        model = tfcompile.compile(OPEN, **options).load()
        assert model.dimensions == {"batch": (2, 9)}
        check_layer(model, [2, 3, 9])
        with pytest.raises(ValueError, match=r"batch is out of range: 2\.\.9"):
            model(np.zeros((1, 3), np.float32))
    fixed = tfcompile.compile(OPEN, batch=4).load()
    assert fixed.dimensions == {} and fixed.feeds["x"][1] == (4, 3)
    assert tfcompile.compile(OPEN, dims={"x.0": "rows", "rows": (1, 3)}).load().dimensions == {"rows": (1, 3)}
    for wrong in [(3, 2), (-1, 3), -1, (0, 1 << 31)]:
        with pytest.raises(ValueError, match="dims: expected a size such as 16"):
            tfcompile.compile(OPEN, batch=wrong)
    with pytest.raises(TypeError):
        tfcompile.compile(OPEN, batch=(1, 2, 3))


def test_configs_have_dimensions():
    config = tfcompile.config.infer(OPEN, batch=(1, 16), sizes={"batch": [4, 12]})
    assert config["x"].shape == ["batch", 3]
    assert config.dimensions == [tfcompile.config.Dimension("batch", 1, 16, [4, 12])]
    assert Config.from_text(config.to_text()) == config
    own = Config()
    own.feed("x", shape=["rows", 3], dtype="float32")
    own.dimension("rows", 1, 5, sizes=[2])
    own.fetch("y")
    model = tfcompile.compile(OPEN, config=own).load()
    assert model.dimensions == {"rows": (1, 5)}
    check_layer(model, range(1, 6))


def test_a_batch_of_independent_rows_is_read_where_it_is():
    model = tfcompile.compile(OPEN).load()
    assert model.dimensions == {"batch": (1, 64)}
    for rows in [64, 7, 1, 63, 8]:
        x = np.random.default_rng(rows).integers(-5, 6, (rows, 3)).astype(np.float32)
        (result,) = model(x).values()
        np.testing.assert_array_equal(result, np.maximum(x.astype(np.float64) @ W, 0))
    # No memory for copies.
    assert model._room == {}
    masked = tfcompile.compile(ROWS).load()
    x, w, z = arrays(7)
    (result,) = masked(x, w, z).values()
    np.testing.assert_array_equal(result, x @ w + z)
    assert masked._room.keys() == {"x", "z"}
