"""Triton Inference Server from the package nvidia-pytriton, with our backend."""

import pathlib
import re
import shutil
import socket
import subprocess
import sysconfig
import time

import tritonclient.http as client
from tritonclient.utils import InferenceServerException, np_to_triton_dtype


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def program():
    """Returns the server's program."""
    return pathlib.Path(sysconfig.get_path("purelib")) / "pytriton/tritonserver/bin/tritonserver"


class Server:
    """A server that runs until the end of a `with`.

    `folder` contains the directory `repository`, and receives the backend and the log.
    """

    def __init__(self, folder, library, *flags):
        self.folder = pathlib.Path(folder)
        backend = self.folder / "backends/tfcompile"
        backend.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, backend / "libtriton_tfcompile.so")
        self.repository = self.folder / "repository"
        self.log = self.folder / "server.log"
        self.port = free_port()
        self.flags = flags
        self.url = f"127.0.0.1:{self.port}"
        self.connections = []

    def __enter__(self):
        command = [program(), f"--model-repository={self.repository}", f"--backend-directory={self.folder / 'backends'}"]
        command += [f"--http-port={self.port}", "--http-address=127.0.0.1", "--allow-grpc=false", "--allow-metrics=false"]
        command += ["--exit-on-error=false", "--model-load-thread-count=2", *self.flags]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        connection = self.connect()
        for _ in range(600):
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with status {self.process.returncode}:\n{self.log.read_text()}")
            try:
                if connection.is_server_live():
                    return self
            except OSError:
                pass
            time.sleep(0.1)
        self.process.kill()
        raise RuntimeError("the server does not answer")

    def __exit__(self, kind, *_):
        # The server waits for open connections.
        for connection in self.connections:
            connection.close()
        self.process.terminate()
        status = self.process.wait(timeout=60)
        if kind is None and status != 0:
            raise RuntimeError(f"the server ended with status {status}:\n{self.log.read_text()[-3000:]}")

    def connect(self):
        """Returns a client for one thread."""
        self.connections.append(client.InferenceServerClient(self.url, network_timeout=60.0, connection_timeout=60.0))
        return self.connections[-1]

    def load_failure(self, model):
        """Loads a model, which must fail, and returns why."""
        try:
            self.connect().load_model(model)
        except InferenceServerException as error:
            return re.sub(r"\s+", " ", str(error))
        raise AssertionError(f"{model}: expected an error")


def tensor(name, array, kind=None):
    """Returns an input for the client, in the binary form."""
    kind = kind or np_to_triton_dtype(array.dtype)
    entry = client.InferInput(name, list(array.shape), kind)
    entry.set_data_from_numpy(array, binary_data=True)
    return entry
