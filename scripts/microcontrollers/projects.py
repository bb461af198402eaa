#!/usr/bin/env python3
"""Builds the projects of `tfcompile init` for microcontrollers, and runs their programs in QEMU.

    scripts/microcontrollers/projects.py TOOL [--only REGEX]

The SDKs are those of tests/microcontrollers/stand_ins, so that the programs run on emulated boards.
In addition, PICO_SDK_PATH names a real Pico SDK, for which the project is built; and CMSIS_PACKS a
directory with ARM's repositories CMSIS_6 and Cortex_DFP, whose startup code and linker scripts then
replace ours.
"""

import argparse
import os
import pathlib
import re
import shlex
import sys
import tempfile

import yaml
from boards import BOARDS, ROOT, SOURCES, Failure, call, execute, link_flags

STAND_INS = SOURCES / "stand_ins"
MODEL = ["--model", ROOT / "tests" / "artifacts" / "layer.pbtxt", "--shape", "x=2,4"]
# The model's bias is 1, -2, 3, and it ends in a Relu. Of zeros, the first result is 1.
EXPECTED = re.compile(r"^= 1(\.0+)?$")
# Configuration of the kernels for boards.
ZEPHYR = {
    "cortex-m0plus": ["CONFIG_CPU_CORTEX_M0PLUS=y"],
    "cortex-m4f": ["CONFIG_CPU_CORTEX_M4=y", "CONFIG_FPU=y"],
    "cortex-m33": ["CONFIG_CPU_CORTEX_M33=y", "CONFIG_FPU=y", "CONFIG_FP_SOFTABI=y"],
    "cortex-m7": ["CONFIG_CPU_CORTEX_M7=y"],
    "rv32imc": ["CONFIG_RISCV=y"],
}
ESP_IDF = {
    "rv32imc": ["CONFIG_IDF_TARGET_ARCH_RISCV=y"],
    # Chips with Xtensa compile C source.
    "cortex-m4f": ["CONFIG_IDF_TARGET_ARCH_XTENSA=y"],
}
PICO = {"cortex-m0plus": "rp2040", "cortex-m33": "rp2350-arm-s", "rv32imc": "rp2350-riscv"}
CMSIS = {"cortex-m0plus": "CM0plus", "cortex-m4f": "CM4", "cortex-m7": "CM7", "cortex-m33": "CM33", "cortex-m55": "CM55"}


def flags_of(target, abi=None):
    """Flags of GCC for a board, with another convention for passing floats if it is given."""
    flags = [flag for flag in BOARDS[target][1][1:] if not (abi and flag.startswith("-mfloat-abi"))]
    flags = [flag for flag in flags if not (abi == "soft" and flag.startswith("-mfpu"))]
    return flags + ([f"-mfloat-abi={abi}"] if abi else [])


def library(target, flags):
    """The library of GCC's functions. It has no variant with the instructions of Zicsr."""
    flags = [flag.removesuffix("_zicsr") for flag in flags]
    return call([BOARDS[target][1][0], *flags, "-print-libgcc-file-name"]).strip()


def board_file(out, target, flags, configuration=()):
    """Writes the description of a board that the stand-ins of CMake read."""
    quoted = lambda items: " ".join(f'"{item}"' for item in items)
    (out / "board.cmake").write_text(
        f'set(BOARD_COMPILER "{BOARDS[target][1][0]}")\n'
        f"set(BOARD_FLAGS {quoted(flags)})\n"
        f"set(BOARD_LINK_FLAGS {quoted(link_flags(BOARDS[target]))})\n"
        f"set(BOARD_LIBRARY {library(target, flags)})\n"
        f"set(BOARD_CONFIGURATION {quoted(configuration)})\n"
        + "".join("set({} {})\n".format(*line.split("=", 1)) for line in configuration)
    )
    return f"-DSTAND_IN_BOARD={out / 'board.cmake'}"


def check(target, program):
    """Runs a program and checks what it prints."""
    lines = execute(BOARDS[target], program, limit=60).get("result_y[0]", [])
    if len(lines) != 1 or not EXPECTED.match(lines[0]):
        raise Failure(f"{program} prints {lines}, expected result_y[0] = 1")


def cmake(tool, project, out, program, settings, environment):
    """Configures and builds a project with CMake. Returns the program."""
    os.environ.update(environment)
    call(["cmake", "-G", "Ninja", "-S", project, "-B", out, f"-DTFCOMPILE_EXECUTABLE={tool}", *settings])
    call(["cmake", "--build", out])
    if "no work to do" not in call(["cmake", "--build", out]):
        raise Failure(f"{project}: a second build compiles again")
    return out / program


def pico_sdk(tool, project, out):
    for target, platform in PICO.items():
        at = out / target
        at.mkdir()
        flags = flags_of(target, "softfp" if target == "cortex-m33" else None)
        settings = [board_file(at, target, flags), f"-DPICO_PLATFORM={platform}", f"-DPICO_SDK_PATH={STAND_INS / 'pico-sdk'}"]
        check(target, cmake(tool, project, at, "app", settings, {}))
        yield f"stand-in, {target}"
    sdk = os.environ.get("PICO_SDK_PATH")
    for platform in ("rp2040", "rp2350-arm-s") if sdk else ():
        settings = [f"-DPICO_PLATFORM={platform}", "-DPICO_NO_PICOTOOL=1", f"-DPICO_SDK_PATH={sdk}"]
        program = cmake(tool, project, out / f"sdk-{platform}", "app.elf", settings, {})
        (symbol,) = (line for line in call(["nm", program]).splitlines() if line.endswith(" layer_constants"))
        if not symbol.startswith("100"):
            raise Failure(f"the weights are not in flash: {symbol}")
        yield f"the SDK, {platform}"


def zephyr(tool, project, out):
    for target, configuration in ZEPHYR.items():
        at = out / target
        at.mkdir()
        abi = {"cortex-m33": "softfp", "cortex-m7": "soft"}.get(target)
        settings = [board_file(at, target, flags_of(target, abi), configuration)]
        check(target, cmake(tool, project, at, "zephyr.elf", settings, {"ZEPHYR_BASE": str(STAND_INS / "zephyr")}))
        yield f"stand-in, {target}{f', {abi}' if abi else ''}"


def esp_idf(tool, project, out):
    for target, configuration in ESP_IDF.items():
        at = out / target
        at.mkdir()
        settings = [board_file(at, target, flags_of(target), configuration)]
        check(target, cmake(tool, project, at, "layer_program.elf", settings, {"IDF_PATH": str(STAND_INS / "esp-idf")}))
        yield f"stand-in, {target}{', C source' if target != 'rv32imc' else ''}"


def arduino(tool, project, out):
    os.environ["TFCOMPILE"] = str(tool)
    call(["sh", project / "build.sh"])
    properties = dict(line.split("=", 1) for line in (project / "library.properties").read_text().splitlines())
    missing = {"name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures"} - properties.keys()
    if missing or not (project / "src" / properties["includes"]).exists():
        raise Failure(f"library.properties: {missing or properties['includes']} is missing")
    (sketch,) = (project / "examples").glob("*/*.ino")
    if sketch.stem != sketch.parent.name:
        raise Failure(f"{sketch}: a sketch has the name of its folder")
    for target in ("cortex-m0plus", "cortex-m4f", "rv32imc"):
        gcc, flags, at = BOARDS[target][1][0], flags_of(target), out / target
        at.mkdir()
        common = [gcc, *flags, "-ffreestanding", "-Os", f"-I{project / 'src'}", f"-I{STAND_INS / 'include'}", f"-I{SOURCES}", "-c"]
        call([*common, "-x", "c++", "-std=gnu++11", "-fno-exceptions", "-fno-rtti", "-include", "Arduino.h", "-Wall", "-Werror", sketch, "-o", at / "sketch.o"])
        for source in [*(project / "src").glob("*.c"), SOURCES / "board.c", STAND_INS / "runtime.c"]:
            call([*common, "-std=gnu11", "-DENTRY=setup", source, "-o", at / f"{source.stem}.o"])
        call([gcc, *flags, "-nostdlib", "-nostartfiles", *at.glob("*.o"), *link_flags(BOARDS[target]), library(target, flags_of(target)), "-o", at / "program.elf"])
        check(target, at / "program.elf")
        yield f"stand-in, {target}"


def cmsis(tool, project, out):
    (solution,) = project.glob("*.csolution.yml")
    solution = yaml.safe_load(solution.read_text())["solution"]
    types = {entry["type"]: entry for entry in solution["target-types"]}
    described = yaml.safe_load((project / solution["projects"][0]["project"]).read_text())["project"]
    (step,) = described["executes"]
    packs = os.environ.get("CMSIS_PACKS")
    for target, name in CMSIS.items():
        entry = types[name]
        values = {f"${key}$": value for line in entry["variables"] for key, value in line.items()}
        values |= {"$ProjectDir()$": str(project), "$TargetType$": name, "${CMAKE_COMMAND}": "cmake"}
        fill = lambda text: re.sub(r"\$[A-Za-z-]+(\(\d*\))?\$|\$\{CMAKE_COMMAND\}", lambda match: values[match[0]], text)
        files = [fill(str(project / file)) for file in step["input"]] + [fill(file) for file in step["output"]]
        if not all(pathlib.Path(file).exists() for file in files[:-1]):
            raise Failure(f"an input of the step is missing: {files}")
        values |= {"$input(0)$": files[0], "$output(0)$": files[-1]}
        program, *rest = shlex.split(fill(step["run"]))
        call([program, f"-DTFCOMPILE_EXECUTABLE={tool}", *rest])
        members = [file for group in described["groups"] for file in group["files"] if file.get("for-context", f"+{name}") == f"+{name}"]
        sources = [project / file["file"] for file in members]
        includes = [f"-I{project / path}" for path in entry["add-path"]]
        gcc, at = BOARDS[target][1][0], out / target
        at.mkdir()
        common = [gcc, *flags_of(target), "-O1", "-Wall", *includes]
        ours = [SOURCES / "board.c", STAND_INS / "runtime.c", f"-I{SOURCES}", f"-I{STAND_INS / 'include'}", "-DENTRY=main"]
        ours += ["-ffreestanding", "-nostdlib", "-nostartfiles", "-Wl,--defsym=__StackLimit=stack_bottom,--defsym=__StackTop=stack_top"]
        call([*common, *ours, *sources, *link_flags(BOARDS[target]), library(target, flags_of(target)), "-o", at / "program.elf"])
        check(target, at / "program.elf")
        yield f"stand-in, {target}"
        device = entry["device"].removeprefix("ARM::")
        parts = pathlib.Path(packs or ".") / "Cortex_DFP" / "Device" / device
        if packs and target in ("cortex-m4f", "cortex-m7"):
            theirs = [*(parts / "Source").glob("*.c"), f"-D{device}", f"-I{parts / 'Include'}", f"-I{packs}/CMSIS_6/CMSIS/Core/Include"]
            options = described["misc"][0]["Link"] + [f"-T{parts / 'Config' / f'{device}_gcc.ld'}"]
            call([*common, *theirs, *sources, *options, "-o", at / "device.elf"])
            check(target, at / "device.elf")
            yield f"CMSIS and Cortex_DFP, {target}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", type=pathlib.Path)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    tool, failures, ran = arguments.tool.resolve(), 0, 0
    builds = {"pico-sdk": pico_sdk, "zephyr": zephyr, "esp-idf": esp_idf, "arduino": arduino, "cmsis": cmsis}
    for name, build in builds.items():
        if not re.search(arguments.only, name):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            scratch = pathlib.Path(scratch)
            try:
                call([tool, "init", scratch / "project", "--build", name, *MODEL])
                (scratch / "out").mkdir()
                done = list(build(tool, scratch / "project", scratch / "out"))
                print(f"{name}: {'; '.join(done)}", flush=True)
                ran += len(done)
            except Failure as failure:
                print(f"FAILED {name}: {failure}", flush=True)
                failures += 1
    print(f"projects: {ran} programs passed, {failures} of {len(builds)} kinds failed")
    return 1 if failures or ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
