"""Flax's own examples, from its source distribution, with random weights."""

import importlib.util
import pathlib
import sys

import jax
import jax.numpy as jnp
import jraph
import numpy as np

generator = np.random.default_rng(0)


def models(example):
    """The module models.py of an example."""
    (path,) = pathlib.Path(sys.argv[4]).glob(f"flax-*/examples/{example}/models.py")
    spec = importlib.util.spec_from_file_location(f"{example}_models", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def numbers(*shape):
    return generator.standard_normal(shape).astype(np.float32)


def tokens(*shape):
    return generator.integers(1, 100, shape).astype(np.int32)


def applied(network, inputs, call=None, **fixed):
    """The function that applies a new network to named inputs, and these inputs."""
    call = call or (lambda **x: ((), x))
    args, named = call(**inputs)
    parameters = network.init({"params": jax.random.key(0), "lstm": jax.random.key(1)}, *args, **named, **fixed)

    def function(**x):
        args, named = call(**x)
        return network.apply(parameters, *args, **named, **fixed, rngs={"lstm": jax.random.key(1)})

    return function, inputs


def in_order(**x):
    return tuple(x.values()), {}


def resnet(kind):
    network = getattr(models("imagenet"), kind)(num_classes=100, dtype=jnp.float32)
    return applied(network, {"image": numbers(1, 64, 64, 3)}, in_order, train=False)


SIZES = dict(vocab_size=100, output_vocab_size=100, emb_dim=64, num_heads=4, num_layers=2, qkv_dim=64, mlp_dim=96, max_len=32)


def lm1b():
    module = models("lm1b")
    network = module.TransformerLM(module.TransformerConfig(**SIZES, deterministic=True))
    return applied(network, {"inputs": tokens(2, 16)})


def wmt():
    module = models("wmt")
    network = module.Transformer(module.TransformerConfig(**SIZES, deterministic=True))
    return applied(network, {"inputs": tokens(2, 16), "targets": tokens(2, 12)})


def wmt_step():
    """A step of decoding, with the keys and values of earlier steps as feeds and results."""
    module = models("wmt")
    network = module.Transformer(module.TransformerConfig(**SIZES, deterministic=True, decode=True))
    shapes = jnp.ones((1, 16), jnp.int32)
    variables = network.init(jax.random.key(0), shapes, shapes)
    leaves, structure = jax.tree_util.tree_flatten(variables["cache"])
    inputs = {"inputs": tokens(1, 16), "target": tokens(1, 1)}
    inputs.update({f"state{k}": np.asarray(leaf) for k, leaf in enumerate(leaves)})

    def function(inputs, target, **states):
        cache = jax.tree_util.tree_unflatten(structure, [states[f"state{k}"] for k in range(len(states))])
        held = {"params": variables["params"], "cache": cache}
        encoded = network.apply(held, inputs, method=network.encode)
        return network.apply(held, encoded, inputs, target, method=network.decode, mutable=["cache"])

    return function, inputs


def nlp_seq():
    module = models("nlp_seq")
    network = module.Transformer(module.TransformerConfig(**SIZES))
    return applied(network, {"inputs": tokens(2, 16)}, train=False)


def molecules(kind):
    network = getattr(models("ogbg_molpcba"), kind)(latent_size=32, num_mlp_layers=2, message_passing_steps=3, output_globals_size=12)
    edges = generator.integers(0, 20, (2, 50)).astype(np.int32)
    inputs = {"nodes": numbers(20, 9), "edges": numbers(50, 3), "globals": numbers(2, 4), "senders": edges[0], "receivers": edges[1]}
    counts = dict(n_node=np.array([12, 8], np.int32), n_edge=np.array([30, 20], np.int32))

    def call(nodes, edges, globals, senders, receivers):
        return (jraph.GraphsTuple(nodes=nodes, edges=edges, globals=globals, senders=senders, receivers=receivers, **counts),), {}

    return applied(network, inputs, call)


def ppo():
    inputs = {"x": generator.integers(0, 256, (2, 84, 84, 4)).astype(np.float32)}
    return applied(models("ppo").ActorCritic(num_outputs=6), inputs, in_order)


def seq2seq(teacher_force):
    network = models("seq2seq").Seq2seq(teacher_force=teacher_force, hidden_size=48, vocab_size=15)
    one_hot = lambda count: np.eye(15, dtype=np.float32)[generator.integers(0, 15, (2, count))]
    return applied(network, {"encoder_inputs": one_hot(8), "decoder_inputs": one_hot(6)}, in_order)


def sst2():
    network = models("sst2").TextClassifier(embedding_size=48, hidden_size=32, vocab_size=100, output_size=2,
                                            dropout_rate=0.0, word_dropout_rate=0.0, deterministic=True)
    return applied(network, {"token_ids": tokens(3, 14), "lengths": np.array([14, 6, 9], np.int32)}, in_order)


def vae():
    network = models("vae").VAE()
    call = lambda x: ((x, jax.random.key(3)), {})
    return applied(network, {"x": generator.random((4, 784)).astype(np.float32)}, call)


NETWORKS = {
    "ResNet18": lambda: resnet("ResNet18"), "ResNet50": lambda: resnet("ResNet50"), "Lm1b": lm1b, "Wmt": wmt, "WmtStep": wmt_step,
    "NlpSeq": nlp_seq, "MoleculeGraphNet": lambda: molecules("GraphNet"), "MoleculeGraphConvNet": lambda: molecules("GraphConvNet"),
    "PpoActorCritic": ppo, "Seq2seq": lambda: seq2seq(True), "Seq2seqSampled": lambda: seq2seq(False), "Sst2": sst2, "Vae": vae,
}


def build(name):
    return NETWORKS[name]()
