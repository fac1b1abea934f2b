import pytest
import torch

from ptnt_mm.models.layers.drop import DropPath, drop_path_rates


def test_branches_are_dropped_or_rescaled_as_a_whole():
    branch = torch.randn(20_000, 3, 2)
    dropped = DropPath(0.2)(branch)
    gone = (dropped == 0).all(dim=(1, 2))
    torch.testing.assert_close(dropped[~gone], branch[~gone] / 0.8)
    # Five standard deviations of 20000 draws are 0.014.
    assert gone.float().mean() == pytest.approx(0.2, abs=0.014)


def test_every_call_draws_again():
    drop, branch = DropPath(0.5), torch.ones(100, 1)
    assert not torch.equal(drop(branch), drop(branch))


def test_nothing_happens_in_evaluation_or_at_rate_zero():
    branch = torch.randn(8, 3)
    assert DropPath(0.5).eval()(branch) is branch
    assert DropPath(0.0)(branch) is branch


def test_rates_rise_over_all_blocks():
    rates = drop_path_rates(0.3, (1, 2, 1))
    assert [len(stage) for stage in rates] == [1, 2, 1]
    assert sum(rates, []) == pytest.approx([0.0, 0.1, 0.2, 0.3])


@pytest.mark.parametrize('rate', [-0.1, 1.0, 1.5])
def test_rates_that_are_none(rate):
    with pytest.raises(ValueError, match=f'drop_path_rate is {rate}: expected at least 0 and'):
        drop_path_rates(rate, (1, 2))


def test_a_single_block_is_never_dropped():
    assert drop_path_rates(0.3, (1,)) == [[0.0]]
