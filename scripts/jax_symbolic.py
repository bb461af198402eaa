#!/usr/bin/env python3
"""Writes JAX functions with symbolic shapes as artifacts of `jax.export`, with JAX's answers for a few sizes.

    PYTHON scripts/jax_symbolic.py OUT [NAME...] [--runs N]

For each function NAME of the modules in `scripts/symbolic`: OUT/NAME.jax, and OUT/NAME.npz with the arguments `K/in0`,
`K/in1`, ..., the results `K/out0`, ..., and the size `K/size/b` of the name `b` of N runs (3), whose sizes differ.
Names the functions that JAX does not export. PYTHON has jax 0.10.2 and flatbuffers (`scripts/venv.sh venv-jax
jax==0.10.2 flatbuffers` makes such a one). The programs in `tests/stablehlo/symbolic` were made so, and

    target/release/stablehlo-cases --fixed --tolerance 2e-5 OUT/*.jax

compares all of them with JAX's answers and with programs for each size.
"""

import argparse
import os
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

import symbolic.batched
import symbolic.models
import symbolic.numerics
import symbolic.operations
from symbolic.registry import PROGRAMS, RANDOM, TYPES, normal

# Sizes of names in recorded runs, before constraints.
LARGEST = 9


def arguments_of(shapes, constraints):
    """The abstract arguments, and the names in their shapes."""
    scope = export.SymbolicScope(constraints)
    arguments = []
    for shape in shapes:
        sizes, _, element_type = shape.partition(":")
        sizes = export.symbolic_shape(sizes, scope=scope) if sizes.strip() else ()
        arguments.append(jax.ShapeDtypeStruct(sizes, TYPES[element_type]))
    return arguments, sorted(set(re.findall(r"[a-z]", " ".join(shape.partition(":")[0] for shape in shapes))))


def random(shape, element_type):
    if element_type == jnp.bool_:
        return RANDOM.integers(0, 2, shape).astype(bool)
    if jnp.issubdtype(element_type, jnp.integer):
        return RANDOM.integers(0, 100, shape).astype(element_type)
    if element_type == jnp.complex64:
        return (normal(*shape) + 1j * normal(*shape)).astype(np.complex64)
    return normal(*shape).astype(element_type)


def recorded(array):
    """An array as NumPy can store it."""
    array = np.asarray(array)
    return array.view(np.uint16) if array.dtype == jnp.bfloat16 else array


def run_of(exported, names):
    """Sizes that fulfill the constraints, random arguments of them, and the results."""
    while True:
        sizes = {name: int(RANDOM.integers(1, LARGEST + 1)) for name in names}
        arguments = []
        for abstract in exported.in_avals:
            shape = [int(eval(str(size), {}, dict(sizes))) for size in abstract.shape]
            arguments.append(random(shape, abstract.dtype))
        try:
            return sizes, arguments, jax.tree_util.tree_leaves(exported.call(*arguments))
        except ValueError as error:
            if "do not match" not in str(error):
                raise


def write(out, name, runs):
    function, shapes, constraints = PROGRAMS[name]
    abstract, symbols = arguments_of(shapes, constraints)
    exported = export.export(jax.jit(function))(*abstract)
    arrays = {}
    for run in range(runs):
        sizes, arguments, results = run_of(exported, symbols)
        kept = exported.module_kept_var_idx
        arrays.update({f"{run}/size/{name}": np.int32(size) for name, size in sizes.items()})
        arrays.update({f"{run}/in{k}": recorded(arguments[number]) for k, number in enumerate(kept)})
        arrays.update({f"{run}/out{k}": recorded(result) for k, result in enumerate(results)})
    with open(f"{out}/{name}.jax", "wb") as file:
        file.write(exported.serialize())
    np.savez_compressed(f"{out}/{name}.npz", **arrays)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_intermixed_args()
    os.makedirs(arguments.out, exist_ok=True)
    refused = 0
    for name in arguments.names or PROGRAMS:
        try:
            write(arguments.out, name, arguments.runs)
        except Exception as error:
            refused += 1
            print(f"{name}: {type(error).__name__}: {str(error).strip().splitlines()[0]}", flush=True)
    sys.exit(refused > 0)


if __name__ == "__main__":
    main()
