"""HLO and reports."""

import tfcompile
from conftest import LAYER


def test_hlo_in_its_forms():
    text = tfcompile.hlo(LAYER)
    assert text.startswith("HloModule ") and "dot(" in text
    assert "fusion" in tfcompile.hlo(LAYER, stage="optimized") or "dot(" in tfcompile.hlo(LAYER, stage="optimized")
    assert "stablehlo.dot" in tfcompile.hlo(LAYER, format="stablehlo")
    assert isinstance(tfcompile.hlo(LAYER, format="proto"), bytes)
    # The printed HLO is itself a model.
    module = tfcompile.compile(text.encode()).load()
    assert [shape for _, shape in module.feeds.values()] == [(2, 3)]


def test_check_finds_what_is_in_the_way():
    assert tfcompile.check(LAYER)
    report = tfcompile.check(LAYER.replace(b'op: "Relu"', b'op: "NoSuchOp"'), fetches=["y"])
    assert not report
    assert any("NoSuchOp" in problem.message for problem in report.problems)
    assert report.ops["NoSuchOp"] == (1, False)
