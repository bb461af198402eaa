#!/usr/bin/env python3
"""Writes docs/gpu.md from the latest report of a GPU (docs/gpu.json, if there is one) and the
predictions (docs/gpu_predictions.json).

    page.py [--check]    with --check, only compares
"""
import json
import math
import pathlib
import sys
import textwrap

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"

HEAD = """# GPUs

`--target cuda` and `--target opencl` compile a model for a GPU. The object, the header, and the
class are those of any other target; the driver is opened at run time.
[The design page](design/devices.md) describes how it works.

```sh
tfcompile build model.pb --target cuda:sm_80,sm_90a -o out
tfcompile run model.pb --target opencl --random 0
tfcompile verify model.pb --target cuda
```

`--target opencl:c` has OpenCL C in place of SPIR-V, for drivers that take none. `run`, `bench`, and
`verify` choose it by themselves for such a device. `--emit opencl` writes the text of the kernels
([OpenCL C](c-source.md#opencl-c)).

## Where the data is

A run copies the arguments to the GPU and the results back. All interfaces can also keep data there:

| language | run on device memory | copy, or use memory of others |
|---|---|---|
| [C++](header.md#on-a-gpu) | `RunAsync(stream)`, `Synchronize()` | `CopyToArg`, `CopyFromResult`, `set_arg_NAME_device_data` |
| [C](embedded.md#on-a-gpu) | `NAME_run_async`, `NAME_synchronize` | `tfcompile_device_copy_in`, `NAME_set_arg_x_device_data` |
| [Rust](cargo.md#device-memory) | `run_async()`, `synchronize()` | `arg_NAME_on_device()`: `copy_from`, `copy_to`, `set_address` |
| [Python](python.md#device-memory) | `model.run_on_device(...)` | `model.to_device`, `DeviceArray`, `__cuda_array_interface__` |

"""

NEVER = """## What has run on a GPU

Nothing yet. Everything on this page about CUDA was assembled and predicted, not run. The kernels
run in tests through OpenCL on a processor, and the host's part runs on a stand-in for CUDA's
driver. `make gpu-check` packs cases, models, and one script for a machine with CUDA; its report
replaces this section.

"""


def seconds(value):
    unit, factor = ("ms", 1e3) if value >= 1e-3 else ("us", 1e6)
    return f"{value * factor:.3g} {unit}"


def measured(report):
    device = report["device"]
    failed = report.get("failed", [])
    text = "## What has run on a GPU\n\n"
    text += f"On {report['date']}, commit `{report['commit'][:12]}`, {device['name']}: "
    text += f"{report['passed']} recorded cases passed, {len(failed)} failed.\n\n"
    for case in failed[:20]:
        text += f"- `{case['case']}`: {case['error'][:120]}\n"
    peers = {name: peer for name, peer in report.get("peers", {}).items() if "models" in peer}
    heads = ["model", "kernels"] + [f"{name} {peer['version']}" for name, peer in peers.items()]
    text += "\n| " + " | ".join(heads) + " |\n|" + "---|" * len(heads) + "\n"
    ratios = {name: [] for name in peers}
    for model in report.get("models", []):
        if "error" in model:
            text += f"| {model['model']} | {model['error'][:80]} |" + " |" * len(peers) + "\n"
            continue
        cells = [model["model"], seconds(model["kernels_s"])]
        for name, peer in peers.items():
            other = peer["models"].get(model["model"])
            cells.append("" if other is None else f"{seconds(other)} ({other / model['kernels_s']:.2f})")
            ratios[name] += [] if other is None else [other / model["kernels_s"]]
        text += "| " + " | ".join(cells) + " |\n"
    for name, values in ratios.items():
        if values:
            mean = math.exp(sum(map(math.log, values)) / len(values))
            text += f"\nGeometric mean of {name}'s time over ours: {mean:.2f}.\n"
    return text + "\n"


def predicted(predictions):
    gpu = predictions["gpu"]
    text = "## Predictions\n\n"
    paragraph = (
        f"Written down before a measurement, for an {gpu['name'].split()[0]}: the larger of the time for the bytes "
        f"({gpu['copy_bytes_per_s'] / 1e12:.1f} TB/s) and for the operations ({gpu['f32_flops'] / 1e12:.0f} TFLOP/s in "
        f"f32, {gpu['matrix_flops'] / 1e12:.0f} with matrix instructions) of each kernel, plus one launch. Registers "
        f"and occupancy are those that `ptxas` reports for {gpu['architecture']}."
    )
    text += textwrap.fill(paragraph, 100) + "\n\n"
    text += "| model | kernels | time | largest kernel | registers | occupancy | limit |\n|---|---|---|---|---|---|---|\n"
    for name, model in predictions["models"].items():
        kernels = model["kernels"]
        if not kernels:
            continue
        largest = max(kernels, key=lambda kernel: kernel["seconds"])
        text += f"| {name} | {len(kernels)} | {seconds(model['seconds'])} | {largest['grid'][0]} x {largest['grid'][1]} | "
        text += f"{largest['registers']} | {largest['occupancy']:.0%} | {largest['limit']} |\n"
    return text


def page():
    text = HEAD
    report = DOCS / "gpu.json"
    text += measured(json.loads(report.read_text())) if report.exists() else NEVER
    predictions = DOCS / "gpu_predictions.json"
    if predictions.exists():
        text += predicted(json.loads(predictions.read_text()))
    return text


def main():
    path = DOCS / "gpu.md"
    text = page()
    if "--check" not in sys.argv[1:]:
        path.write_text(text)
    elif not path.exists() or path.read_text() != text:
        sys.exit("docs/gpu.md is not current: run scripts/gpu/page.py")


if __name__ == "__main__":
    main()
