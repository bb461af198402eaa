"""Writes tests/tflite/README.md from the recorded archives."""

import glob
import json
import os
from collections import Counter

import numpy as np

HEAD = """# Models in TensorFlow Lite's format

Small `.tflite` models with inputs and the results of LiteRT's kernels. `scripts/tflite/make_cases.py` creates all files
here, `malformed/` excepted:

```
PYTHON scripts/tflite/make_cases.py [FILE...]
PYTHON scripts/tflite/malformed.py
```

`PYTHON` is a Python 3.11 with `ai-edge-litert` 2.3.0, `flatbuffers`, `ml_dtypes`, and `numpy`. Equal versions write
equal files. `FILE` is the name of an archive without its extension.

| path | contents |
|---|---|
| `OP.npz` | cases of one op |
| `if.npz`, `while.npz`, `variables.npz`, `stablehlo_composite.npz`, `stablehlo_case.npz` | control flow and state |
| `float16_weights.npz` | float ops with float16 weights, converted by `DEQUANTIZE` |
| `mobilenet_block.npz`, `attention_block.npz`, `detection_head.npz` | networks in every kind of quantization |
| `outputs.npz` | outputs that are inputs or constants, repeated outputs, repeated and odd names, a dynamic batch |
| `signatures.npz` | models with signatures |
| `malformed/` | files that a reader must refuse; see its README |

## A case

Each archive has these members for each case NAME:

| member | contents |
|---|---|
| `NAME/model.tflite` | `u8` array: the file |
| `NAME/meta.json` | `u8` array: JSON, described below |
| `NAME/feed/<k>` | input k of the subgraph |
| `NAME/fetch/<k>` | output k of the subgraph |
| `NAME/fetch_2/<k>` | output k of a second run with the same inputs, for models with state |

`bfloat16` is stored as `uint16`. `int4` is stored as one `int8` per element.

| key of meta.json | value |
|---|---|
| `op` | the op under test; the name of the archive for networks |
| `feeds`, `fetches` | name, type, and shape of each input and output |
| `atol`, `rtol` | floats are correct if `abs(got - want) <= atol + rtol * abs(want)`; NaN matches NaN |
| `step` | 1 if LiteRT's reference and optimized kernels differ in an integer; a difference of 1 is then correct |
| `kind` | types, as in the table below |
| `dynamic` | outputs whose sizes depend on data |
| `runs` | 2 for models with state |
| `signature` | the signature that ran; the first subgraph if absent |
| `kernels` | `optimized` where LiteRT has no reference kernel, or a wrong one |
| `difference` | greatest difference between integer results of the two sets of kernels; null if sizes differ |
| `float_difference` | true if float results of the two sets of kernels differ by more than the tolerance |

Results come from the reference kernels. Each case ran twice, in processes whose fresh memory contained different bytes;
cases whose results depend on uninitialized memory are left out, as are those that LiteRT refuses.
Tolerances are in `scripts/tflite/tolerances.py`.
"""

NOTES = """
- `SUM` of int8 and int16: the reference kernel reads the operand's bytes as uint8. The results are the optimized
  kernel's.
- `LOCAL_RESPONSE_NORMALIZATION`: the reference kernel omits the last channel of each window. The results are the
  optimized kernel's, which agree with TensorFlow's.
- `LOGISTIC` and `TANH` of int16: the kernels approximate in different ways. At some scales they differ by several
  steps. The results are the reference kernels'.
- Comparisons of int16 ignore scales, in both sets of kernels. Those of int8 and uint8 do not.
- Fused TANH has no effect in arithmetic, convolutions, and poolings, in both sets of kernels.
- `REDUCE_MIN` of NaN: the kernels compare in different orders.
- `FULLY_CONNECTED` of floats with int4 weights and asymmetric inputs: the results differ by more than the tolerance.
"""


def write_readme(folder):
    """Writes FOLDER/README.md."""
    rows, differences, replaced, total = [], {}, {}, 0
    for path in sorted(glob.glob(os.path.join(folder, "*.npz"))):
        file = os.path.basename(path).removesuffix(".npz")
        archive = np.load(path)
        kinds = Counter()
        for member in archive.files:
            if not member.endswith("/meta.json"):
                continue
            name = member.removesuffix("/meta.json")
            meta = json.loads(archive[member].tobytes())
            kinds[meta["kind"]] += 1
            if "difference" in meta or meta.get("float_difference"):
                differences.setdefault(file, []).append((name, meta.get("difference")))
            if "kernels" in meta:
                replaced[file] = replaced.get(file, 0) + 1
        total += sum(kinds.values())
        rows.append(f"| `{file}` | {sum(kinds.values())} | {', '.join(f'{kind} {n}' for kind, n in types(kinds))} |")
    lines = [
        HEAD,
        "## Cases",
        "",
        f"{total} cases in {len(rows)} archives.",
        "",
        "| archive | cases | by type |",
        "|---|---|---|",
    ]
    lines += [*rows, "", "`A x B` has activations of type A and weights of type B.", "", "## Kernels that disagree", ""]
    lines += ["LiteRT's reference and optimized kernels differ in these cases, by one step unless noted.", ""]
    lines += ["| archive | cases |", "|---|---|"]
    for file, cases in differences.items():
        lines.append(f"| `{file}` | {', '.join(described(*case) for case in cases)} |")
    lines += [NOTES, "Archives with results of optimized kernels:", ""]
    lines.append(", ".join(f"`{file}` ({count})" for file, count in replaced.items()) + ".")
    with open(os.path.join(folder, "README.md"), "w") as file:
        file.write("\n".join(lines) + "\n")


def types(kinds):
    """Types with their counts. Conversions are counted by their source."""
    merged = Counter()
    for kind, count in kinds.items():
        source, *target = kind.split(" to ")
        merged[f"from {source}" if target else kind] += count
    return merged.items()


def described(name, difference):
    """A case and the difference of its kernels, if it is not one step."""
    if difference == 1:
        return f"`{name}`"
    return f"`{name}` (floats)" if difference in (None, 0) else f"`{name}` ({difference})"
