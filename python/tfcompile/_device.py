"""Arrays in the memory of GPUs: those of this package, and those of other libraries for CUDA."""

from typing import Any

import numpy as np

from ._native import DeviceArray

_ALIGNMENT = 16


def is_on_device(given: Any) -> bool:
    """Returns whether an object is an array in the memory of a GPU."""
    try:
        return isinstance(given, DeviceArray) or hasattr(given, "__cuda_array_interface__")
    except ValueError:
        # An array of JAX's that is on several devices, perhaps of the host.
        return False


def operand(given: Any, what: str, dtype: np.dtype, shape: tuple[int, ...], is_written: bool, device: str | None) -> Any:
    """Returns an array on a GPU as an argument of the native part.

    `what` names it in messages. Raises `TypeError` for another type, and `ValueError` for another shape, layout, or device.
    """
    if isinstance(given, DeviceArray):
        _check(what, dtype, shape, given.dtype, given.shape)
        if given.device != device:
            raise ValueError(f"{what} expected an array on {_place(device)}, got one on {given.device}")
        return given
    interface = given.__cuda_array_interface__
    if device is None or not device.startswith("cuda:"):
        raise ValueError(f"{what} expected an array on {_place(device)}, got one on a CUDA device")
    address, is_readonly = interface["data"]
    _check(what, dtype, shape, np.dtype(interface["typestr"]), tuple(interface["shape"]))
    if interface.get("mask") is not None:
        raise ValueError(f"{what} expected an array without a mask")
    if not _is_contiguous(shape, interface.get("strides"), dtype.itemsize):
        raise ValueError(f"{what} expected a contiguous array in row-major order: pass a contiguous copy")
    if is_written and is_readonly:
        raise ValueError(f"{what} expected a writable array: the run updates it in place")
    if (address or 0) % _ALIGNMENT:
        raise ValueError(f"{what} expected memory aligned to {_ALIGNMENT} bytes: pass a copy")
    return (address or 0, _stream(interface, what))


def _check(what: str, dtype: np.dtype, shape: tuple[int, ...], given_dtype: np.dtype, given_shape: tuple[int, ...]) -> None:
    if given_shape != shape:
        raise ValueError(f"{what} expected shape {list(shape)}, got {list(given_shape)}")
    # Other libraries describe the types that are missing in NumPy as raw bytes.
    is_raw = given_dtype.kind == dtype.kind == "V" and given_dtype.itemsize == dtype.itemsize
    if given_dtype != dtype and not is_raw:
        raise TypeError(f"{what} expected type {dtype}, got {given_dtype}; arrays on a GPU are not converted")


def _place(device: str | None) -> str:
    return device if device is not None else "the host, since the model runs on the processor"


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int) -> bool:
    if strides is None or 0 in shape:
        return True
    expected = itemsize
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _stream(interface: dict, what: str) -> int | None:
    """Returns the stream that a run waits for: `None` for none, and 0 for all of the device.

    An interface without the entry `stream`, such as PyTorch's, does not say which stream writes the array.
    """
    if "stream" not in interface:
        return 0
    stream = interface["stream"]
    if stream == 0:
        raise ValueError(f"{what} has stream 0 in its __cuda_array_interface__, which does not name a stream: use 1 for the default one")
    return stream
