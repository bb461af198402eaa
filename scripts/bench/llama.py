#!/usr/bin/env python3
"""The peer of decoder.py: llama.cpp, with random weights in a decoder of the same shape.

    PYTHON llama.py write q8|q4 FILE
    PYTHON llama.py run FILE THREADS PROMPT COUNT

PYTHON has llama-cpp-python, gguf, and numpy. `run` prints the words per second of reading a prompt and of generating.
"""

import sys
import time

import numpy as np

LAYERS, WIDTH, HEADS, KV_HEADS, HIDDEN, WORDS = 22, 2048, 32, 4, 5632, 32000


def write(kind, path):
    import gguf

    rng = np.random.default_rng(1)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(2048)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(WORDS)
    writer.add_file_type({"q8": 7, "q4": 2}[kind])
    writer.add_tokenizer_model("llama")
    writer.add_token_list([b"<unk>", b"<s>", b"</s>", *(f"w{k}".encode() for k in range(3, WORDS))])
    writer.add_token_scores([0.0] * WORDS)
    writer.add_token_types([2, 3, 3] + [1] * (WORDS - 3))
    quantization = {"q8": gguf.GGMLQuantizationType.Q8_0, "q4": gguf.GGMLQuantizationType.Q4_0}[kind]
    # Bytes of a block of 32 numbers, which begins with its scale in float16.
    size, bound = {"q8": (34, 127), "q4": (18, 7)}[kind]

    def matrix(name, columns, summands):
        blocks = rng.integers(0, 256, size=(columns * summands // 32, size), dtype=np.uint8)
        scale = np.full(len(blocks), 1.7 / (bound * summands**0.5), np.float16)
        blocks[:, :2] = scale.view(np.uint8).reshape(-1, 2)
        writer.add_tensor(name, blocks.reshape(columns, summands // 32 * size), raw_dtype=quantization)

    def vector(name):
        writer.add_tensor(name, rng.uniform(0.5, 1.5, WIDTH).astype(np.float32))

    matrix("token_embd.weight", WORDS, WIDTH)
    vector("output_norm.weight")
    matrix("output.weight", WORDS, WIDTH)
    for layer in range(LAYERS):
        prefix = f"blk.{layer}."
        vector(prefix + "attn_norm.weight")
        vector(prefix + "ffn_norm.weight")
        for name, columns, summands in [
            ("attn_q", WIDTH, WIDTH),
            ("attn_k", KV_HEADS * WIDTH // HEADS, WIDTH),
            ("attn_v", KV_HEADS * WIDTH // HEADS, WIDTH),
            ("attn_output", WIDTH, WIDTH),
            ("ffn_gate", HIDDEN, WIDTH),
            ("ffn_up", HIDDEN, WIDTH),
            ("ffn_down", WIDTH, HIDDEN),
        ]:
            matrix(f"{prefix}{name}.weight", columns, summands)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def run(path, threads, prompt, count):
    import llama_cpp

    settings = dict(n_ctx=2048, n_batch=128, n_threads=threads, n_threads_batch=threads, verbose=False)
    model = llama_cpp.Llama(model_path=path, **settings)
    # The first call touches the memory of the weights.
    model.eval([2])
    start = time.perf_counter()
    model.eval([3 + word for word in range(prompt)])
    read = time.perf_counter()
    for word in range(count):
        model.eval([100 + word])
    end = time.perf_counter()
    print(f"read {prompt / (read - start):.1f} words/s, generated {count / (end - read):.2f} words/s")


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2], sys.argv[3])
    else:
        run(sys.argv[2], *map(int, sys.argv[3:]))
