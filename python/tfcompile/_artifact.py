"""Artifacts: compiled models as values."""

import hashlib
import operator
import os
import re
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np

from . import _arrays, _device, _models, _native


def _store() -> Path:
    """Returns the user's directory on this machine for constants files, which are named by their hash."""
    place = os.environ.get("TFCOMPILE_CONSTANTS_DIR")
    directory = Path(place) if place else Path(tempfile.gettempdir()) / f"tfcompile-constants-{os.getuid()}"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if directory.stat().st_uid != os.getuid():
        raise PermissionError(f"'{directory}' belongs to another user: set TFCOMPILE_CONSTANTS_DIR to a directory that you own")
    return directory


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Artifact:
    """A compiled model: object file, C++ header, and weights.

    It can be pickled and sent to other processes and machines. Where it is loaded, its weights are written once to a file of the
    machine's (in `$TFCOMPILE_CONSTANTS_DIR`, or the directory for temporary files), which all processes map.
    """

    def __init__(self, object: bytes, header: str, name: str, constants: Path, digest: str, notes: tuple[str, ...] = ()):
        self.object = object
        self.header = header
        self.name = name
        self.notes = notes
        self._constants = constants
        self._digest = digest

    @property
    def constants(self) -> bytes:
        """Contents of the constants file."""
        return self._constants.read_bytes()

    def save(self, directory: str | os.PathLike) -> None:
        """Writes the files that a C++ program needs: `NAME.o`, `NAME.h`, `NAME.constants`; `tfcompile headers` writes the run-time headers."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{self.name}.o").write_bytes(self.object)
        (directory / f"{self.name}.h").write_text(self.header)
        (directory / f"{self.name}.constants").write_bytes(self.constants)

    def load(self, threads: int = 1, device: str | None = None, variables_of: "Model | None" = None) -> "Model":
        """Loads the model into this process.

        A model for GPUs runs on `device`, such as `cuda:0` or `opencl:1`; by default, on the first one of its kind. Variables that also
        `variables_of` has, by name, are one variable of both models; a call of one model waits for a call of the other.
        """
        return Model(self, threads, device, variables_of)

    def __reduce__(self):
        return _unpickle, (self.object, self.header, self.name, self.constants, self._digest, self.notes)

    def __repr__(self) -> str:
        return f"<tfcompile.Artifact {self.name}: {len(self.object)} bytes of object>"


def _unpickle(object, header, name, constants, digest, notes) -> Artifact:
    return Artifact(object, header, name, _keep(constants, digest), digest, notes)


def _keep(constants: bytes, digest: str) -> Path:
    """Returns the path of the file on this machine with these constants."""
    path = _store() / digest
    if path.exists() and path.stat().st_size == len(constants):
        return path
    if hashlib.sha256(constants).hexdigest() != digest:
        raise ValueError("the constants of the artifact are damaged")
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(constants)
    os.replace(file.name, path)
    return path


def compile(model: Any, *, inputs: Any = None, name: str | None = None, class_name: str | None = None, **options: Any) -> Artifact:
    """Compiles a model.

    `model` is a path (SavedModel, GraphDef, MetaGraph, StableHLO, HLO), the bytes of one, a graph of TensorFlow's, a Keras model, a
    `tf.function`, or a function for JAX; `inputs` are examples of a function's arguments. Options: `config` (a `Config`, a file, a
    proto), `signature`, `tags`, `checkpoint`, `variables_to_feed`, `function`, `fetches`, `shapes`, `dims`, `batch`, `sizes`,
    `feed_constants` (such as `{"ratio": 0.5}`), `loop_bounds`, and for the machine `target` (also a GPU: `cuda`, `cuda:sm_80`,
    `opencl`), `triple`, `cpu` (`native` for this one's), `features`; they mean what the flags of `tfcompile build` mean. A size in `dims` or `batch` may be
    a range, such as `(1, 64)`; the model then takes arrays of any size in it, and `sizes={"batch": [16, 32]}` adds code for some.

    A `ValueError` says what is wrong with the model, a `NotImplementedError` what cannot be compiled.
    """
    with _models.on_disk(model, inputs) as (path, told):
        if name is None:
            stem = path.stem if isinstance(model, (str, os.PathLike)) else getattr(model, "__name__", "")
            words = [word for word in re.split(r"[^A-Za-z0-9]+", stem) if word]
            # With this suffix, the name is neither a C keyword nor a C library function.
            name = "_".join(["model" if not words or words[0][0].isdigit() else "", *words, "model"]).strip("_")
        if class_name is None:
            class_name = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
            class_name = f"{class_name}Class" if class_name == name else class_name
        handle, written = tempfile.mkstemp(dir=_store())
        os.close(handle)
        written = Path(written)
        try:
            wanted = _models.wanted(path, told, options)
            object, header, notes = _native.build(wanted, name, class_name, written)
            digest = _digest(written)
            constants = written.parent / digest
            os.replace(written, constants)
        finally:
            written.unlink(missing_ok=True)
    return Artifact(object, header, name, constants, digest, tuple(notes))


class Model:
    """A model that runs in this process.

    Calling it with feeds by name, or in their order, returns the fetches by name. Feeds are read where they are if their type and
    layout are the model's, and copied otherwise. Variables live in `variables`, from call to call. One call runs at a time.

    Feeds with named dimensions have any sizes in the ranges that `dimensions` lists, the same wherever a name occurs. Smaller feeds than
    the largest are copied, unless the only such dimension is a batch of independent rows. A size that no feed has is an argument with its
    name, by default the largest.

    On a GPU, feeds and variables may also be `DeviceArray`s and, with CUDA, objects with `__cuda_array_interface__`, such as arrays of
    PyTorch and CuPy. They are used where they are, without a copy through the host.
    """

    def __init__(self, artifact: Artifact, threads: int = 1, device: str | None = None, variables_of: "Model | None" = None):
        self._program = _native.Program(artifact.object, artifact._constants, device)
        if threads != 1:
            self._program.set_threads(threads)
        entries = [_Entry(*told) for told in self._program.arguments]
        for number, entry in enumerate(entries):
            entry.number = number
        self._arguments = entries
        self._sizes = [_Size(entries, *told) for told in self._program.sizes]
        # Memory for feeds that are smaller than the largest.
        self._room: dict[str, np.ndarray] = {}
        self._feeds = [entry for entry in entries if entry.kind == "feed"]
        self._variables = [entry for entry in entries if entry.kind not in ("feed", "size")]
        self._fetches = [entry for entry in (_Entry(*told) for told in self._program.results) if entry.kind == "fetch"]
        # Models that share variables run one at a time.
        self._lock = threading.Lock() if variables_of is None else variables_of._lock
        shared = {} if variables_of is None else self._shared(variables_of)
        self._memory = {entry.name: shared.get(entry.name) or _Memory(entry.zeros()) for entry in self._variables}
        # Runs calls whose arrays need no conversion.
        self._exact = None if self.device else self._exact_calls()

    def __reduce__(self):
        raise TypeError("a loaded model belongs to its process: pickle the artifact, and load it in the other process")

    def _shared(self, other: "Model") -> dict[str, "_Memory"]:
        """Returns the memory of the variables that both models have."""
        theirs = {entry.name: entry for entry in other._variables}
        common = [(entry, theirs[entry.name]) for entry in self._variables if entry.name in theirs]
        if not common:
            own, others = (", ".join(entry.name for entry in entries) or "none" for entries in (self._variables, other._variables))
            raise ValueError(
                f"the models have no variable in common: this one has {own}, the other one {others}; "
                "variables that a model only reads become constants unless it is compiled with variables_to_feed"
            )
        for own, entry in common:
            if (own.element, own.shape) != (entry.element, entry.shape):
                raise ValueError(
                    f"{own.label} is {own.dtype}{list(own.shape)}, but {entry.dtype}{list(entry.shape)} in the other model"
                )
        return {own.name: other._memory[own.name] for own, _ in common}

    def _exact_calls(self) -> _native.ExactCalls:
        feeds, fetches = ([(entry.name, entry.dtype) for entry in entries] for entries in (self._feeds, self._fetches))
        return _native.ExactCalls(self._program, feeds, [(self._memory[entry.name], entry.dtype) for entry in self._variables], fetches)

    @property
    def feeds(self) -> dict[str, tuple[np.dtype, tuple[int, ...]]]:
        """Names, types, and shapes of the feeds. Named dimensions have their largest sizes."""
        return {entry.name: (entry.dtype, entry.shape) for entry in self._feeds}

    @property
    def fetches(self) -> dict[str, tuple[np.dtype, tuple[int, ...]]]:
        """Names, types, and shapes of the fetches. Sizes that differ from run to run are upper bounds."""
        return {entry.name: (entry.dtype, entry.shape) for entry in self._fetches}

    @property
    def dimensions(self) -> dict[str, tuple[int, int]]:
        """Names of dimensions, with the smallest and the largest size of each."""
        return {size.name: (size.low, size.high) for size in self._sizes}

    @property
    def quantization(self) -> dict[str, tuple[float, int]]:
        """Scale and zero point of the arrays of integers that stand for real numbers: real = scale * (stored - zero point).

        If a fetch has the name of a feed or variable, the entry is that of the latter.
        """
        entries = [*self._fetches, *self._variables, *self._feeds]
        return {entry.name: entry.quantization for entry in entries if entry.quantization is not None}

    def quantize(self, name: str, values: Any) -> np.ndarray:
        """Returns real numbers as the integers of a quantized feed or variable.

        Each becomes the nearest integer, halves away from zero. Numbers beyond the type's range become its nearest end, and NaN becomes
        the zero point.
        """
        entry = self._quantized(name, [*self._feeds, *self._variables])
        return _arrays.quantize(values, entry.dtype, *entry.quantization)

    def dequantize(self, name: str, array: Any) -> np.ndarray:
        """Returns the integers of a quantized fetch or variable as real numbers of type float32."""
        entry = self._quantized(name, [*self._fetches, *self._variables])
        return _arrays.dequantize(array, *entry.quantization)

    def _quantized(self, name: str, entries: list["_Entry"]) -> "_Entry":
        names = [entry.name for entry in entries if entry.quantization is not None]
        if name not in names:
            raise ValueError(f"{name!r} is not quantized; these are: {', '.join(names) or 'none'}")
        return next(entry for entry in entries if entry.name == name)

    @property
    def device(self) -> str | None:
        """Name of the GPU that runs the model, such as `cuda:0`. `None` for the processor."""
        return self._program.device

    @property
    def variables(self) -> dict[str, Any]:
        """The model's variables: NumPy arrays, initially zero, which may be written to, or the device memory from `set_variable`."""
        return {name: memory.array for name, memory in self._memory.items()}

    def set_variable(self, name: str, value: Any) -> None:
        """Sets a variable.

        An array on a GPU becomes the variable's memory: runs use it where it is, and update it in place. Other values are copied to a
        NumPy array.
        """
        entry = next((entry for entry in self._variables if entry.name == name), None)
        if entry is None:
            raise ValueError(f"unknown variable {name!r}; the variables are {', '.join(entry.name for entry in self._variables)}")
        with self._lock:
            if _device.is_on_device(value):
                self._operand(entry, value)
                self._memory[name].array = value
                return
            value = entry.array(value)
            if not isinstance(self._memory[name].array, np.ndarray):
                self._memory[name].array = entry.zeros()
            self._memory[name].array[...] = value

    def to_device(self, array: Any) -> _native.DeviceArray:
        """Copies an array to the model's GPU."""
        array = np.require(array, requirements="C")
        return self._program.to_device(_arrays.element(array.dtype), array.shape, _arrays.bytes_of(array))

    def run_on_device(self, *arguments: Any, **named: Any) -> dict[str, _native.DeviceArray]:
        """Like a call, with results that stay in the memory of the GPU."""
        feeds, named_sizes = self._given(arguments, named)
        with self._lock:
            arrays, sizes = self._program.run_on_device(self._operands(feeds, named_sizes), None)
        sizes = iter(sizes)
        return {entry.name: self._cut(entry, array, sizes) for entry, array in zip(self._fetches, arrays)}

    def __call__(self, *arguments: Any, **named: Any) -> dict[str, np.ndarray]:
        if self._exact is not None:
            if self._memory:
                with self._lock:
                    found = self._exact.call(arguments, named)
            else:
                found = self._exact.call(arguments, named)
            if found is not None:
                return found
        feeds, named_sizes = self._given(arguments, named)
        results = [_arrays.empty(entry.element, entry.shape) for entry in self._fetches]
        buffers = [_arrays.bytes_of(array) for array in results]
        with self._lock:
            if any(_device.is_on_device(array) for array in [*feeds, *self.variables.values()]):
                _, sizes = self._program.run_on_device(self._operands(feeds, named_sizes), buffers)
            else:
                sizes = self._program.run(self._operands(feeds, named_sizes), buffers)
        sizes = iter(sizes)
        return {entry.name: entry.cut(array, sizes) for entry, array in zip(self._fetches, results)}

    def _given(self, arguments: tuple, named: dict[str, Any]) -> tuple[list[Any], list[int]]:
        """Returns the feeds in their order, and the sizes of named dimensions."""
        if len(arguments) > len(self._feeds):
            raise TypeError(f"expected at most {len(self._feeds)} arguments, got {len(arguments)}")
        given = {entry.name: array for entry, array in zip(self._feeds, arguments)}
        twice = given.keys() & named.keys()
        if twice:
            raise TypeError(f"feed {sorted(twice)[0]!r} is given more than once")
        given.update(named)
        names = [entry.name for entry in self._feeds]
        chosen = {size.name: given.pop(size.name) for size in self._sizes if size.name in given and size.name not in names}
        unknown, missing = given.keys() - set(names), [name for name in names if name not in given]
        if unknown or missing:
            what = f"unknown feed {sorted(unknown)[0]!r}" if unknown else f"missing feed {missing[0]!r}"
            raise TypeError(f"{what}; the feeds are {', '.join(names)}")
        # Conversions precede the lock.
        arrays = [given[entry.name] for entry in self._feeds]
        shapes = {entry.number: np.shape(array) for entry, array in zip(self._feeds, arrays) if entry.has_names}
        sizes = [size.chosen(chosen.get(size.name), self._arguments, shapes) for size in self._sizes]
        feeds = [
            array if _device.is_on_device(array) else entry.array(array, self._true_shape(entry, sizes))
            for entry, array in zip(self._feeds, arrays)
        ]
        return feeds, sizes

    def _true_shape(self, entry: "_Entry", sizes: list[int]) -> tuple[int, ...]:
        """Returns the shape of a feed for these sizes of named dimensions."""
        shape = list(entry.shape)
        for size, value in zip(self._sizes, sizes):
            for number, dimension in size.places:
                if number == entry.number:
                    shape[dimension] = value
        return tuple(shape)

    def _operands(self, feeds: list[Any], sizes: list[int]) -> list[Any]:
        """Returns all arguments for the native part."""
        values = {entry.number: array for entry, array in zip(self._feeds, feeds)}
        values.update((entry.number, self._memory[entry.name].array) for entry in self._variables)
        values.update((size.number, np.array(value, np.int32)) for size, value in zip(self._sizes, sizes))
        return [self._operand(entry, values[entry.number]) for entry in self._arguments]

    def _operand(self, entry: "_Entry", array: Any) -> Any:
        if entry.has_names and array.shape != entry.shape and not self._program.takes_true_sizes:
            # Compiled code may read elements beyond the sizes.
            if entry.name not in self._room:
                self._room[entry.name] = entry.zeros()
            room = self._room[entry.name]
            room[tuple(map(slice, array.shape))] = array
            array = room
        if not _device.is_on_device(array):
            return _arrays.bytes_of(array)
        is_written = entry.kind == "variable"
        return _device.operand(array, entry.label, entry.dtype, entry.shape, is_written, self.device)

    def _cut(self, entry: "_Entry", array: _native.DeviceArray, sizes) -> _native.DeviceArray:
        """Returns the part of the array on the device that the run computed."""
        true = entry.true_sizes(sizes)
        if true == entry.shape:
            return array
        if true[1:] == entry.shape[1:]:
            return array._first(true[0])
        part = np.require(np.asarray(array)[tuple(slice(size) for size in true)], requirements="C")
        return self._program.to_device(entry.element, true, _arrays.bytes_of(part))


class _Memory:
    """Memory of a variable, which models may share."""

    def __init__(self, array: Any):
        self.array = array


class _Size:
    """The size of a named dimension."""

    def __init__(self, arguments: list["_Entry"], number: int, low: int, high: int, places: list[tuple[int, int]]):
        self.number, self.name = number, arguments[number].name
        self.low, self.high = low, high
        # Arguments and their dimensions that have this size.
        self.places = places
        for argument, _ in places:
            arguments[argument].has_names = True

    def chosen(self, value: Any, arguments: list["_Entry"], shapes: dict[int, tuple[int, ...]]) -> int:
        """Returns the size in a call: `value`, if the caller passes it, and that of all feeds, whose shapes are given."""
        source = None if value is None else f"{self.name} is {value}"
        for number, dimension in self.places:
            if number not in shapes:
                continue
            entry, shape = arguments[number], shapes[number]
            if len(shape) != len(entry.shape):
                raise ValueError(f"{entry.label} expected {len(entry.shape)} dimensions, got {len(shape)}")
            here = f"{entry.label} has {shape[dimension]} in dimension {dimension}"
            if value is None:
                value, source = shape[dimension], here
            elif value != shape[dimension]:
                raise ValueError(f"different sizes of {self.name}: {source}, but {here}")
        if value is None:
            return self.high
        value = operator.index(value)
        if not self.low <= value <= self.high:
            raise ValueError(f"{self.name} is out of range: {self.low}..{self.high} ({source})")
        return value


class _Entry:
    """An argument or a result."""

    def __init__(
        self,
        kind: str,
        name: str,
        node: str,
        element: str,
        sizes: list[int],
        bounded: list[bool],
        quantization: tuple[float, int] | None,
    ):
        # A tensor without a name in the config is named after its node.
        self.kind, self.node, self.element = kind, node, element
        self.name = name.removesuffix(":0")
        self.shape, self.bounded, self.quantization = tuple(sizes), bounded, quantization
        self.dtype = _arrays.dtype(element)
        self.label = f"{'feed' if kind == 'feed' else 'variable'} {self.name!r}"
        # True for an argument that has named dimensions.
        self.has_names = False
        # Number of an argument.
        self.number = -1

    def zeros(self) -> np.ndarray:
        array = _arrays.empty(self.element, self.shape)
        array[...] = np.zeros((), self.dtype)
        return array

    def array(self, given: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
        """Returns the array itself if it is contiguous and has the right type, otherwise a copy.

        `shape` is the expected shape if named dimensions differ from the largest.
        """
        array = np.asarray(given)
        shape = self.shape if shape is None else shape
        if array.shape != shape:
            raise ValueError(f"{self.label} expected shape {list(shape)}, got {list(array.shape)}")
        if array.dtype != self.dtype:
            if self.quantization is not None and array.dtype.kind == "f":
                hint = f"pass integers, such as model.quantize({self.name!r}, array)"
                raise TypeError(f"{self.label} expected type {self.dtype}, got {array.dtype}: it is quantized; {hint}")
            if not np.can_cast(array.dtype, self.dtype, "same_kind") and not isinstance(given, (int, float, list, tuple)):
                raise TypeError(f"{self.label} expected type {self.dtype}, got {array.dtype}")
            array = array.astype(self.dtype)
        return np.require(array, requirements="CA")

    def cut(self, array: np.ndarray, sizes) -> np.ndarray:
        """Returns the part of the array that the run computed."""
        if not any(self.bounded):
            return array
        return array[tuple(slice(size) for size in self.true_sizes(sizes))]

    def true_sizes(self, sizes) -> tuple[int, ...]:
        """Returns the sizes after a run, which reports those of bounded dimensions."""
        return tuple(next(sizes) if bounded else size for size, bounded in zip(self.shape, self.bounded))

