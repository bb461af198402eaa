"""Recurrent networks of Keras for texts, with random weights: their loops run over as many words as a text has."""

import numpy as np
import tensorflow as tf

layers = tf.keras.layers
generator = np.random.default_rng(0)
WORDS, UNITS = 50, 16


def words(*shape):
    """Texts whose last words are padding."""
    texts = generator.integers(1, WORDS, shape)
    texts[:, -2:] = 0
    return texts.astype(np.int32)


def tagger():
    parts = [layers.Embedding(WORDS, UNITS, mask_zero=True), layers.Bidirectional(layers.LSTM(UNITS, return_sequences=True)),
             layers.Dense(7, activation="softmax")]
    return parts, {"text": words(2, 12)}


def classifier():
    parts = [layers.Embedding(WORDS, UNITS, mask_zero=True), layers.Bidirectional(layers.GRU(UNITS)), layers.Dense(4)]
    return parts, {"text": words(2, 12)}


def language_model():
    cells = [layers.LSTMCell(UNITS), layers.GRUCell(UNITS)]
    parts = [layers.Embedding(WORDS, UNITS), layers.RNN(cells, return_sequences=True), layers.SimpleRNN(UNITS, return_sequences=True),
             layers.Dense(WORDS)]
    return parts, {"text": words(2, 12)}


def build(name):
    if name == "Translator":
        return translator()
    if name == "Loops":
        return loops()
    parts, inputs = {"Tagger": tagger, "Classifier": classifier, "LanguageModel": language_model}[name]()
    network = tf.keras.Sequential(parts)
    return (lambda text: network(text)), inputs, parts


def translator():
    source, target = layers.Embedding(WORDS, UNITS), layers.Embedding(WORDS, UNITS)
    encoder = layers.LSTM(UNITS, return_sequences=True, return_state=True)
    decoder, scores = layers.LSTM(UNITS, return_sequences=True), layers.Dense(WORDS)

    def function(text, translation):
        memory, *state = encoder(source(text))
        decoded = decoder(target(translation), initial_state=state)
        attended = layers.Attention()([decoded, memory])
        return scores(tf.concat([decoded, attended], -1))

    return function, {"text": words(2, 12), "translation": words(2, 8)}, [source, target, encoder, decoder, scores]


def loops():
    """What Keras's layers are made of: an array that a loop fills, a scan, and a function of each word."""
    embedding, mixed = layers.Embedding(WORDS, UNITS), layers.Dense(UNITS, activation="tanh")

    def function(text):
        by_word = tf.transpose(embedding(text), [1, 0, 2])
        state, states = tf.zeros_like(by_word[0]), tf.TensorArray(tf.float32, tf.shape(by_word)[0])
        for step in tf.range(tf.shape(by_word)[0]):
            state = mixed(state + by_word[step])
            states = states.write(step, state)
        sums = tf.scan(lambda sum, word: 0.5 * sum + word, by_word)
        scaled = tf.map_fn(lambda word: word * tf.reduce_mean(word), by_word)
        return states.stack(), sums, scaled

    return function, {"text": words(2, 12)}, [embedding, mixed]
