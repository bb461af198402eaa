"""Configs as values."""

import numpy as np
import pytest
import tfcompile
from conftest import COUNTER, LAYER
from tfcompile import Config


def test_a_config_is_built_and_edited():
    config = Config()
    config.feed("x", shape=[2, 3], dtype="float32", name="input")
    config.fetch("y:0", name="scores")
    assert config["input"].node == "x" and config["y"].name == "scores"
    model = tfcompile.compile(LAYER, config=config).load()
    assert model(input=np.ones((2, 3), np.float32))["scores"].tolist() == [[6, 0], [6, 0]]
    config["scores"].name = "relu"
    assert list(tfcompile.compile(LAYER, config=config).load().fetches) == ["relu"]


def test_text_and_back(tmp_path):
    config = Config()
    config.feed('odd "name"/é:2', shape=[], dtype=np.int64)
    config.fetch("y", name="y")
    config.variable("count", shape=[3], dtype="bfloat16", readonly=True)
    assert Config.from_text(config.to_text()) == config
    assert config.to_text().splitlines()[0] == (
        'feed { id { node_name: "odd \\042name\\042/\\303\\251" output_index: 2 } shape {  } type: DT_INT64 }'
    )
    config.save(tmp_path / "c.pbtxt")
    assert Config.load(tmp_path / "c.pbtxt") == config


def test_a_config_is_inferred():
    config = tfcompile.config.infer(COUNTER, fetches=["now"], shapes={"step": []})
    assert [feed.node for feed in config.feeds] == ["step"]
    assert [(v.node, v.readonly) for v in config.variables] == [("count", False)]


def test_a_config_that_is_none_is_told():
    with pytest.raises(ValueError, match="bogus"):
        Config.from_text("bogus: 1")
    with pytest.raises(TypeError):
        Config().feed("x", dtype="datetime64[s]")
