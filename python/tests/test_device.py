"""Models on GPUs, with an OpenCL driver for processors."""

import os

import numpy as np
import pytest
import tfcompile
from conftest import COUNTER, LAYER

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
# relu(x w), by hand.
Y = [[14, 0], [32, 0]]


needs_opencl = pytest.mark.skipif(
    "OCL_ICD_VENDORS" not in os.environ and os.environ.get("CI") != "true",
    reason='needs an OpenCL driver: eval "$(scripts/setup_gpu.sh opencl)"',
)


@needs_opencl
def test_a_model_runs_on_a_device():
    artifact = tfcompile.compile(LAYER, target="opencl")
    assert "DeviceFunction" in artifact.header
    for device in [None, "opencl", "opencl:0"]:
        model = artifact.load(device=device)
        assert model(X)["y"].tolist() == Y
        assert model(-X)["y"].tolist() == [[0, 3.5], [0, 11]]


@needs_opencl
def test_variables_keep_their_values():
    model = tfcompile.compile(COUNTER, target="opencl", shapes={"step": []}).load()
    assert [int(model(step=2)["now"]) for _ in range(3)] == [2, 4, 6]
    assert model.variables["count"] == 6


@needs_opencl
def test_a_device_that_does_not_exist_is_an_error():
    with pytest.raises(ValueError, match="1000"):
        tfcompile.compile(LAYER, target="opencl").load(device="opencl:1000")


def test_names_of_devices_are_checked(monkeypatch):
    with pytest.raises(ValueError, match="unknown GPU architecture 'sm_50'"):
        tfcompile.compile(LAYER, target="cuda:sm_50")
    with pytest.raises(ValueError, match="runs on the processor"):
        tfcompile.compile(LAYER).load(device="cuda:0")
    artifact = tfcompile.compile(LAYER, target="cuda")
    with pytest.raises(ValueError, match="expected a name such as 'cuda:0'"):
        artifact.load(device="opencl:0")
    monkeypatch.setenv("TFCOMPILE_CUDA_DRIVER", "libnowhere.so")
    with pytest.raises(ValueError, match="install the NVIDIA driver"):
        artifact.load()
