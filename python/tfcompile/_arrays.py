"""Conversion between NumPy's and the compiler's types."""

import numpy as np

_NUMPY = {
    "pred": np.bool_,
    "s8": np.int8,
    "s16": np.int16,
    "s32": np.int32,
    "s64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "c64": np.complex64,
    "c128": np.complex128,
}
# Types from the package ml_dtypes, which TensorFlow and JAX install. Without it, they are raw bits.
_NARROW = {
    "bf16": "bfloat16",
    "f8e5m2": "float8_e5m2",
    "f8e4m3": "float8_e4m3",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e4m3b11fnuz": "float8_e4m3b11fnuz",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e3m4": "float8_e3m4",
    "f8e8m0fnu": "float8_e8m0fnu",
}
_ALIGNMENT = 64


def dtype(element: str) -> np.dtype:
    """Returns NumPy's type for a type of the compiler, such as `f32`."""
    if element in _NUMPY:
        return np.dtype(_NUMPY[element])
    if element in _NARROW:
        try:
            import ml_dtypes

            return np.dtype(getattr(ml_dtypes, _NARROW[element]))
        except (ImportError, AttributeError):
            pass
    if element == "bf16":
        return np.dtype(np.uint16)
    return np.dtype(np.int8 if element.startswith("s") else np.uint8)


def element(of: np.dtype) -> str:
    """Returns the compiler's type of an array. Raises `TypeError` if there is none."""
    for name, known in _NUMPY.items():
        if of == known:
            return name
    for name, known in _NARROW.items():
        if of.name == known:
            return name
    raise TypeError(f"unsupported array type: {of}")


def quantize(values, of: np.dtype, scale: float, zero_point: int) -> np.ndarray:
    """Returns the integers nearest to real numbers.

    Halves are rounded away from zero. Numbers beyond the type's range become its nearest end, and NaN becomes the zero point.
    """
    range_of = np.iinfo(of)
    with np.errstate(over="ignore"):
        steps = np.asarray(values, np.float32) / np.float32(scale)
    steps = np.clip(np.asarray(steps, np.float64), range_of.min - zero_point, range_of.max - zero_point)
    steps = np.where(np.isnan(steps), 0, steps)
    # The difference is exact, so this rounds 0.49999997 down.
    whole = np.trunc(steps)
    return (whole + (steps - whole >= 0.5) - (steps - whole <= -0.5) + zero_point).astype(of)


def dequantize(array, scale: float, zero_point: int) -> np.ndarray:
    """Returns the real numbers that integers stand for."""
    return np.float32(scale) * (np.asarray(array).astype(np.int64) - zero_point).astype(np.float32)


def empty(element_type: str, shape: tuple[int, ...]) -> np.ndarray:
    """Allocates an array aligned to 64 bytes, as compiled code requires for results."""
    of = dtype(element_type)
    size = int(np.prod(shape, dtype=np.int64)) * of.itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % _ALIGNMENT
    return memory[begin : begin + size].view(of).reshape(shape)


def bytes_of(array: np.ndarray) -> np.ndarray:
    """Returns the memory of a contiguous array as bytes."""
    return array.reshape(-1).view(np.uint8)


def from_native(value) -> np.ndarray:
    """Converts a session's result to an array."""
    if len(value) == 2:
        sizes, strings = value
        array = np.empty(len(strings), object)
        array[:] = strings
        return array.reshape(sizes)
    element_type, sizes, data = value
    return np.frombuffer(data, dtype(element_type)).reshape(sizes)


def to_native(value):
    """Converts an array, a number, or strings for a session."""
    array = np.asarray(value)
    if array.dtype.kind in "OSU":
        strings = [s.encode() if isinstance(s, str) else bytes(s) for s in array.reshape(-1).tolist()]
        return (list(array.shape), strings)
    return (element(array.dtype), list(array.shape), array.tobytes())
