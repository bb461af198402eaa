"""Runs `.tflite` models with the kernels of the mediapipe package, which has operators that LiteRT lacks.

    PYTHON mediapipe_graph.py MODEL.tflite IMAGE.npy OUTPUTS RESULTS.npz      PYTHON has mediapipe 0.10.14

A graph of MediaPipe converts an image to a tensor, runs the model, and converts its outputs to numbers. The model has
one input.
"""

import os
import sys

import numpy as np

os.environ.setdefault("GLOG_minloglevel", "3")

TEMPLATE = """
input_stream: "image"
{streams}
node {{
  calculator: "TensorConverterCalculator"
  input_stream: "IMAGE:image"
  output_stream: "TENSORS:input"
  options {{ [mediapipe.TensorConverterCalculatorOptions.ext] {{ output_tensor_float_range {{ min: 0 max: 1 }} }} }}
}}
node {{
  calculator: "TfLiteCustomOpResolverCalculator"
  output_side_packet: "OP_RESOLVER:resolver"
  options {{ [mediapipe.TfLiteCustomOpResolverCalculatorOptions.ext] {{ use_gpu: false }} }}
}}
node {{
  calculator: "InferenceCalculatorCpu"
  input_side_packet: "OP_RESOLVER:resolver"
  input_stream: "TENSORS:input"
  output_stream: "TENSORS:outputs"
  options {{ [mediapipe.InferenceCalculatorOptions.ext] {{ model_path: "{path}" delegate {{ tflite {{}} }} }} }}
}}
node {{
  calculator: "SplitTensorVectorCalculator"
  input_stream: "outputs"
  {parts}
  options {{ [mediapipe.SplitVectorCalculatorOptions.ext] {{ {ranges} }} }}
}}
"""
NUMBERS = """
node {{ calculator: "TensorsToFloatsCalculator" input_stream: "TENSORS:part{k}" output_stream: "FLOATS:numbers{k}" }}
"""


def run(path, image, outputs):
    """The `outputs` results of a model as vectors. The image of bytes becomes an input between 0 and 1."""
    import mediapipe

    config = TEMPLATE.format(
        path=os.path.abspath(path),
        streams="\n".join(f'output_stream: "numbers{k}"' for k in range(outputs)),
        parts=" ".join(f'output_stream: "part{k}"' for k in range(outputs)),
        ranges=" ".join(f"ranges {{ begin: {k} end: {k + 1} }}" for k in range(outputs)),
    )
    config += "".join(NUMBERS.format(k=k) for k in range(outputs))
    graph = mediapipe.CalculatorGraph(graph_config=config)
    results = {}

    def keep(name, packet):
        results[name] = np.array(mediapipe.packet_getter.get_float_list(packet), np.float32)

    for k in range(outputs):
        graph.observe_output_stream(f"numbers{k}", keep)
    graph.start_run()
    kind = mediapipe.ImageFormat.SRGB if image.ndim == 3 else mediapipe.ImageFormat.GRAY8
    packet = mediapipe.packet_creator.create_image_frame(image_format=kind, data=image)
    graph.add_packet_to_input_stream("image", packet.at(0))
    graph.wait_until_idle()
    graph.close()
    return [results[f"numbers{k}"] for k in range(outputs)]


def as_input(image):
    """The input that the graph makes of an image."""
    return image.astype(np.float32)[np.newaxis] * np.float32(1 / 255)


def main():
    path, image, outputs, target = sys.argv[1:]
    results = run(path, np.load(image), int(outputs))
    np.savez(target, **{str(k): result for k, result in enumerate(results)})


if __name__ == "__main__":
    main()
