"""A constructor that refuses its settings is explained."""

import pytest
from mmengine.registry import MODELS
from torch import nn

from ptnt_mm.engine.build_errors import explain_build_error, explain_refusal


def test_an_absent_class_names_the_nearest():
    with pytest.raises(KeyError) as caught:
        MODELS.build(dict(type='PyramidTMT'))
    explained = explain_build_error(caught.value)
    assert explained.startswith("unknown type 'PyramidTMT': did you mean 'PyramidTNT'?")


def test_a_refused_argument_names_the_nearest():
    class Base(nn.Module):
        def __init__(self, hidden_dim: int = 1):
            super().__init__()

    class Derived(Base):
        def __init__(self, out_dim: int = 1, **kwargs):
            super().__init__(**kwargs)

    MODELS.register_module(name='RefusingDerived', module=Derived)
    try:
        with pytest.raises(TypeError) as caught:
            MODELS.build(dict(type='RefusingDerived', hiden_dim=3))
    finally:
        MODELS._module_dict.pop('RefusingDerived')
    explained = explain_build_error(caught.value)
    assert explained.startswith("Derived: unknown argument 'hiden_dim': did you mean 'hidden_dim'?")


def test_other_errors_keep_their_words():
    assert explain_build_error(ValueError('as it was')) == 'as it was'
    assert explain_build_error(AssertionError()) == 'AssertionError'


def test_a_bug_in_a_constructor_is_no_refusal():
    class Buggy(nn.Module):
        def __init__(self):
            super().__init__()
            self._initialise(scale=1)

        def _initialise(self) -> None:
            pass

    with pytest.raises(TypeError) as caught:
        MODELS.build(dict(type=Buggy))
    assert explain_refusal(caught.value) is None
    assert "unexpected keyword argument 'scale'" in explain_build_error(caught.value)
