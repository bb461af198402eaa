"""Requests and responses: TensorFlow Serving's REST form, and raw bytes. Knows neither Ray nor the engines.

JSON: {"instances": [ROW...]} gives {"predictions": [ROW...]}, and {"inputs": {NAME: ARRAY}} gives {"outputs": {NAME: ARRAY}}. The name is
left out where there is only one. Bytes (application/octet-stream): for each feed, its rows in the machine's byte order; the response has
the rows of each fetch in this form.
"""

import json
import math
from typing import Any

import numpy as np

JSON, BYTES = "application/json", "application/octet-stream"
# No number in JSON needs more bytes. Spaces for indentation are included.
NUMBER = 40

# Name to type and shape of a row.
Entries = dict[str, tuple[np.dtype, tuple[int, ...]]]


class Wrong(Exception):
    """A request that cannot be answered: the HTTP status, and what to tell the client."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


def row_bytes(entries: Entries) -> int:
    """Returns the number of bytes of one row of all arrays."""
    return sum(dtype.itemsize * math.prod(shape) for dtype, shape in entries.values())


def largest_body(kind: str, feeds: Entries, limit: int) -> int:
    """Returns the number of bytes of the longest request."""
    if kind == BYTES:
        return limit * row_bytes(feeds)
    return 1000 + limit * sum(100 + NUMBER * math.prod(shape) for _, shape in feeds.values())


def parse(kind: str, body: bytes, feeds: Entries, limit: int) -> tuple[dict[str, np.ndarray], str]:
    """Returns the feeds of a request, and the form of its response. Raises `Wrong`."""
    if kind == BYTES:
        arrays, form = _from_bytes(body, feeds), BYTES
    else:
        arrays, form = _from_json(body, feeds)
    rows = {name: len(array) for name, array in arrays.items()}
    count = max(rows.values())
    if min(rows.values()) != count:
        raise Wrong(400, f"the feeds have different numbers of rows: {rows}")
    if count == 0:
        raise Wrong(400, "expected at least one row")
    if count > limit:
        raise Wrong(413, f"expected at most {limit} rows, got {count}")
    return arrays, form


def write(form: str, fetches: dict[str, np.ndarray]) -> tuple[str, bytes]:
    """Returns the type and the bytes of a response."""
    if form == BYTES:
        return BYTES, b"".join(np.ascontiguousarray(array).tobytes() for array in fetches.values())
    lists = {name: array.tolist() for name, array in fetches.items()}
    if len(lists) == 1:
        (answer,) = lists.values()
    elif form == "predictions":
        answer = [dict(zip(lists, row)) for row in zip(*lists.values())]
    else:
        answer = lists
    return JSON, json.dumps({form: answer}).encode()


def _from_bytes(body: bytes, feeds: Entries) -> dict[str, np.ndarray]:
    size = row_bytes(feeds)
    rows, rest = divmod(len(body), size)
    if rest:
        raise Wrong(400, f"expected a multiple of {size} bytes, the size of a row, got {len(body)} bytes")
    arrays, begin = {}, 0
    for name, (dtype, shape) in feeds.items():
        count = rows * math.prod(shape)
        arrays[name] = np.frombuffer(body, dtype, count, begin).reshape(rows, *shape)
        begin += count * dtype.itemsize
    return arrays


def _from_json(body: bytes, feeds: Entries) -> tuple[dict[str, np.ndarray], str]:
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Wrong(400, f"the body is not JSON: {error}") from None
    if not isinstance(given, dict) or ("instances" in given) == ("inputs" in given):
        raise Wrong(400, 'expected an object with either "instances" or "inputs"')
    if "inputs" in given:
        form, values = "outputs", given["inputs"]
        if not isinstance(values, dict):
            values = {_only(feeds): values}
    else:
        form, rows = "predictions", given["instances"]
        if not isinstance(rows, list):
            raise Wrong(400, '"instances" is not a list of rows')
        if any(isinstance(row, dict) for row in rows):
            names = {frozenset(row) if isinstance(row, dict) else None for row in rows}
            if len(names) != 1:
                raise Wrong(400, '"instances" has rows with different feeds')
            values = {name: [row[name] for row in rows] for name in rows[0]}
        else:
            values = {_only(feeds): rows}
    if values.keys() != feeds.keys():
        raise Wrong(400, f"expected the feeds {', '.join(sorted(feeds))}, got {', '.join(sorted(values)) or 'none'}")
    return {name: _array(name, values[name], *feeds[name]) for name in feeds}, form


def _only(feeds: Entries) -> str:
    if len(feeds) != 1:
        raise Wrong(400, f"the model has several feeds, which must be named: {', '.join(sorted(feeds))}")
    return next(iter(feeds))


def _array(name: str, value: Any, dtype: np.dtype, row: tuple[int, ...]) -> np.ndarray:
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError):
        raise Wrong(400, f"feed '{name}': the rows have different shapes") from None
    if array.size == 0 and array.ndim <= 1:
        return np.empty((0, *row), dtype)
    if array.dtype.kind not in "biuf":
        raise Wrong(400, f"feed '{name}': expected numbers of type {dtype}")
    if array.ndim == 0 or array.shape[1:] != row:
        got = list(array.shape[1:]) if array.ndim else "one number"
        raise Wrong(400, f"feed '{name}': expected rows of shape {list(row)}, got {got}")
    with np.errstate(all="ignore"):
        converted = array.astype(dtype)
    if dtype.kind != "f" and not np.array_equal(converted, array):
        raise Wrong(400, f"feed '{name}': expected numbers of type {dtype}")
    return converted
