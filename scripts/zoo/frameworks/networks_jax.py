"""Networks of Haiku, Equinox, Jraph, flaxmodels, and diffusers, with random weights and small sizes."""

import equinox
import flaxmodels
import haiku as hk
import jax
import jax.numpy as jnp
import jraph
import numpy as np

generator = np.random.default_rng(0)
KEY = jax.random.PRNGKey(0)


def numbers(*shape):
    return generator.standard_normal(shape).astype(np.float32)


def haiku(function, inputs, **at_start):
    """A function that makes Haiku modules, with new weights and state."""
    transformed = hk.transform_with_state(function)
    parameters, state = transformed.init(KEY, **inputs, **at_start)
    return lambda **x: transformed.apply(parameters, state, KEY, **x)[0], inputs


def haiku_resnet(kind):
    network = lambda image, train=False: getattr(hk.nets, kind)(50, logits_config={"w_init": hk.initializers.RandomNormal(0.1)})(image, is_training=train)
    return haiku(network, {"image": numbers(1, 64, 64, 3)}, train=True)


def haiku_mobilenet():
    network = lambda image, train=False: hk.nets.MobileNetV1(num_classes=50)(image, is_training=train)
    return haiku(network, {"image": numbers(1, 160, 160, 3)}, train=True)


def haiku_vqvae():
    def function(image):
        encoder = hk.Sequential([hk.Conv2D(16, 4, 2), jax.nn.relu, hk.Conv2D(32, 4, 2), jax.nn.relu, hk.Conv2D(16, 3)])
        decoder = hk.Sequential([hk.Conv2DTranspose(16, 4, 2), jax.nn.relu, hk.Conv2DTranspose(3, 4, 2)])
        found = hk.nets.VectorQuantizer(16, 64, 0.25)(encoder(image), is_training=False)
        return decoder(found["quantize"]), found["encoding_indices"], found["perplexity"]

    return haiku(function, {"image": numbers(1, 32, 32, 3)})


def haiku_impala():
    from examples.impala import haiku_nets

    def function(frames, state_h, state_c):
        hidden = haiku_nets.AtariDeepTorso()(frames)
        output, state = hk.ResetCore(hk.LSTM(64))((hidden, jnp.array([False, True])), hk.LSTMState(state_h, state_c))
        return hk.Linear(6)(output), hk.Linear(1)(output), state

    frames = generator.integers(0, 256, (2, 84, 84, 4)).astype(np.float32)
    return haiku(function, {"frames": frames, "state_h": numbers(2, 64), "state_c": numbers(2, 64)})


def haiku_transformer():
    from examples.transformer import model

    def function(tokens):
        network = model.Transformer(num_heads=4, num_layers=2, attn_size=16, dropout_rate=0.0)
        return model.LanguageModel(network, model_size=64, vocab_size=100, pad_token=0)(tokens)

    return haiku(function, {"tokens": generator.integers(0, 100, (2, 16)).astype(np.int32)})


def haiku_rnn():
    def function(audio):
        core = hk.DeepRNN([hk.LSTM(48), jax.nn.relu, hk.GRU(32), hk.Linear(8)])
        return hk.dynamic_unroll(core, audio, core.initial_state(2))

    return haiku(function, {"audio": numbers(20, 2, 12)})


def equinox_mlp():
    network = equinox.nn.MLP(20, 5, 64, 3, activation=jax.nn.gelu, key=KEY)
    return lambda x: jax.vmap(network)(x), {"x": numbers(8, 20)}


def equinox_gru():
    cell, output = equinox.nn.GRUCell(6, 32, key=KEY), equinox.nn.Linear(32, 3, key=KEY)

    def function(x):
        last, states = jax.lax.scan(lambda state, step: (cell(step, state),) * 2, jnp.zeros(32), x)
        return output(last), states

    return function, {"x": numbers(24, 6)}


def equinox_ode():
    """A neural ordinary differential equation, integrated by Runge and Kutta's method."""
    field = equinox.nn.MLP(3, 3, 32, 2, activation=jnp.tanh, key=KEY)

    def step(y, _):
        a = field(y)
        b = field(y + 0.05 * a)
        c = field(y + 0.05 * b)
        d = field(y + 0.1 * c)
        y = y + 0.1 / 6 * (a + 2 * b + 2 * c + d)
        return y, y

    return lambda y: jax.lax.scan(step, y, None, 40), {"y": numbers(3)}


def equinox_vit():
    keys = jax.random.split(KEY, 8)
    patch = equinox.nn.Conv2d(3, 64, 8, 8, key=keys[0])
    blocks = [(equinox.nn.LayerNorm(64), equinox.nn.MultiheadAttention(4, 64, key=key), equinox.nn.LayerNorm(64),
               equinox.nn.MLP(64, 64, 128, 1, activation=jax.nn.gelu, key=key)) for key in keys[1:4]]
    output = equinox.nn.Linear(64, 10, key=keys[4])

    def function(image):
        x = patch(image).reshape(64, -1).T
        for before, attention, after, network in blocks:
            y = jax.vmap(before)(x)
            x = x + attention(y, y, y)
            x = x + jax.vmap(network)(jax.vmap(after)(x))
        return output(x.mean(0))

    return function, {"image": numbers(3, 32, 32)}


def graph():
    edges = generator.integers(0, 16, (2, 40)).astype(np.int32)
    return {"nodes": numbers(16, 8), "edges": numbers(40, 4), "senders": edges[0], "receivers": edges[1]}


def jraph_network(kind):
    """A graph network whose updates are small networks of Haiku."""
    layer = lambda size: hk.Sequential([hk.Linear(size), jax.nn.relu, hk.Linear(size)])
    joined = lambda *parts: layer(12)(jnp.concatenate([part for part in parts if part is not None], -1))

    def function(nodes, edges, senders, receivers):
        counts = np.array([[10, 6], [24, 16]], np.int32)
        graphs = jraph.GraphsTuple(nodes, edges, receivers, senders, jnp.ones((2, 3)), *counts)
        if kind == "GraphConvolution":
            return jraph.GraphConvolution(lambda x: hk.Linear(12)(x), add_self_edges=True)(graphs).nodes
        if kind == "GAT":
            attend = lambda own, other, edge: jax.nn.leaky_relu(hk.Linear(1)(jnp.concatenate([own, other], -1)))
            return jraph.GAT(lambda x: hk.Linear(12)(x), attend, None)(graphs).nodes
        if kind == "InteractionNetwork":
            network = jraph.InteractionNetwork(joined, joined, include_sent_messages_in_node_update=True)
        elif kind == "RelationNetwork":
            network = jraph.RelationNetwork(joined, joined)
        elif kind == "DeepSets":
            network = jraph.DeepSets(joined, joined)
        else:
            network = jraph.GraphNetwork(joined, joined, joined)
        result = network(graphs)
        return result.nodes, result.edges, result.globals

    return haiku(function, graph())


def flax_network(network, inputs, **fixed):
    parameters = network.init(KEY, **inputs, **fixed)
    return lambda **x: network.apply(parameters, **x, **fixed), inputs


def stylegan_generator():
    network = flaxmodels.stylegan2.Generator(resolution=32, z_dim=64, w_dim=64, mapping_layer_features=64, num_ws=8,
                                             fmap_base=1024, fmap_max=64, num_mapping_layers=3)
    return flax_network(network, {"z": numbers(2, 64)}, train=False, noise_mode="const")


def stylegan_discriminator():
    network = flaxmodels.stylegan2.Discriminator(resolution=32, fmap_base=1024, fmap_max=64, mbstd_group_size=2)
    return flax_network(network, {"x": numbers(2, 32, 32, 3)})


def diffusion_unet(steps=0):
    """Stable Diffusion's U-Net; with steps, the sampler that calls it in a loop."""
    from diffusers import FlaxUNet2DConditionModel

    network = FlaxUNet2DConditionModel(
        sample_size=16, block_out_channels=(32, 64), layers_per_block=1, cross_attention_dim=48, attention_head_dim=4,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )
    parameters = {"params": network.init_weights(KEY)}
    inputs = {"sample": numbers(1, 4, 16, 16), "context": numbers(1, 7, 48)}
    predict = lambda sample, time, context: network.apply(parameters, sample, time, context).sample
    if not steps:
        return lambda sample, time, context: predict(sample, time, context), {**inputs, "time": np.array([300], np.int32)}
    alphas = np.cumprod(1 - np.linspace(0.00085**0.5, 0.012**0.5, 1000) ** 2).astype(np.float32)
    times = np.linspace(999, 0, steps).astype(np.int32)

    def sample(sample, context):
        def step(x, pair):
            noise = predict(x, pair[0][None], context)
            now, then = jnp.asarray(alphas)[pair[0]], jnp.asarray(alphas)[pair[1]]
            start = (x - jnp.sqrt(1 - now) * noise) / jnp.sqrt(now)
            return jnp.sqrt(then) * start + jnp.sqrt(1 - then) * noise, None

        return jax.lax.scan(step, sample, jnp.stack([times[:-1], times[1:]], 1))[0]

    return sample, inputs


def diffusion_vae():
    from diffusers import FlaxAutoencoderKL

    network = FlaxAutoencoderKL(block_out_channels=(32, 64), down_block_types=("DownEncoderBlock2D",) * 2,
                                up_block_types=("UpDecoderBlock2D",) * 2, sample_size=32, norm_num_groups=8)
    parameters = {"params": network.init_weights(KEY)}

    def function(image):
        latent = network.apply(parameters, image, method=network.encode).latent_dist.mean
        return latent, network.apply(parameters, latent, method=network.decode).sample

    return function, {"image": numbers(1, 3, 32, 32)}


NETWORKS = {
    "HaikuResNet18": lambda: haiku_resnet("ResNet18"), "HaikuResNet50": lambda: haiku_resnet("ResNet50"),
    "HaikuMobileNetV1": haiku_mobilenet, "HaikuVqVae": haiku_vqvae, "HaikuImpala": haiku_impala,
    "HaikuTransformer": haiku_transformer, "HaikuRnn": haiku_rnn, "EquinoxMlp": equinox_mlp, "EquinoxGru": equinox_gru,
    "EquinoxOde": equinox_ode, "EquinoxViT": equinox_vit, "StyleGan2Generator": stylegan_generator,
    "StyleGan2Discriminator": stylegan_discriminator, "DiffusionUNet": diffusion_unet,
    "DiffusionSampler": lambda: diffusion_unet(8), "DiffusionVae": diffusion_vae,
    **{f"Jraph{kind}": lambda kind=kind: jraph_network(kind) for kind in
       ("GraphNetwork", "InteractionNetwork", "RelationNetwork", "DeepSets", "GAT", "GraphConvolution")},
}


def build(name):
    return NETWORKS[name]()
