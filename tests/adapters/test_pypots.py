"""PyPOTS' dictionaries in, arrays out; with the real PyPOTS where it is installed."""

import inspect
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_meter import load

from tamedit.adapters.pypots import TameImputer
from tamedit.diffusion.sample import SamplerConfig
from tamedit.errors import UserError
from tamedit.tasks.model import Model

FAST = SamplerConfig(steps=2, starts="antithetic")  # quantiles alone would come from other samples than those given out


def windows(count: int = 20, length: int = 24) -> np.ndarray:
    """(N, L, 2) windows of two homes, one reading in five missing."""
    both = np.stack([load(count * length, seed) for seed in (1, 2)], axis=1).reshape(count, length, 2)
    gone = np.random.default_rng(0).random(both.shape) < 0.2
    return np.where(gone, np.nan, both).astype(np.float32)


@pytest.fixture(scope="module")
def imputer() -> TameImputer:
    made = TameImputer(samples=5, sampler=FAST, scale="smoke", steps=4)
    made.fit({"X": windows()}, {"X": windows(4)})
    return made


def test_gaps_are_filled_and_readings_stay(imputer: TameImputer) -> None:
    given = windows(6)
    filled = imputer.impute({"X": given})
    paths = imputer.predict({"X": given}, n_sampling_times=5)["imputation"]
    assert filled.shape == given.shape
    assert paths.shape == (6, 5, 24, 2)
    seen = np.isfinite(given)
    np.testing.assert_array_equal(filled[seen], given[seen])
    assert np.isfinite(paths).all()
    assert (paths.std(axis=1)[~seen] > 0).all()
    np.testing.assert_allclose(filled, np.median(paths, axis=1))
    alone = imputer.impute({"X": given[:1]})  # a window does not depend on the others
    np.testing.assert_allclose(alone, filled[:1], atol=1e-5)


def test_a_trained_model_fills_as_it_does_with_stamps(smoke_run: Path) -> None:
    """Windows of a meter with the stamps of their first rows, against `Model.impute` of the same rows."""
    home = load(96)
    given = home.to_numpy(np.float32).reshape(2, 48, 1).copy()
    given[:, 10:20] = np.nan
    filled = TameImputer(smoke_run, samples=5, sampler=FAST).impute({"X": given, "start": home.index[[0, 48]]})
    frame = pd.DataFrame({"time": home.index[:48], "home": "0", "kwh": given[0, :, 0]})
    wanted = Model.load(smoke_run, "cpu").impute(frame, samples=5, sampler=FAST, id="home", time="time", value="kwh")
    np.testing.assert_allclose(filled[0, :, 0], wanted["kwh"], rtol=1e-6)


def test_what_cannot_be_is_said(imputer: TameImputer, smoke_run: Path) -> None:
    with pytest.raises(UserError, match="as a dictionary"):
        imputer.impute("test.h5")
    with pytest.raises(UserError, match=r"X has the shape \(24, 2\)"):
        imputer.impute({"X": windows(1)[0]})
    with pytest.raises(UserError, match="has 1 target channels and the model was trained on 2"):
        imputer.impute({"X": windows(1)[..., :1]})
    with pytest.raises(UserError, match="has no model yet"):
        TameImputer().impute({"X": windows(1)})
    with pytest.raises(UserError, match="a trained model already"):
        TameImputer(smoke_run).fit({"X": windows(1)})
    with pytest.raises(UserError, match="no unit of privacy"):
        TameImputer(privacy=None)


def test_it_stands_where_an_imputer_of_pypots_stands(imputer: TameImputer) -> None:
    """Against the real package: the arguments of CSDI, its shapes, and PyPOTS' metrics and missing values."""
    if not os.environ.get("TAMEDIT_NEEDS_PYPOTS"):  # where it must be there, its absence is a failure
        pytest.importorskip("pypots", reason="PyPOTS is not installed; `make test-adapters` installs it")
    from pygrinder import mcar
    from pypots.imputation import CSDI, Mean
    from pypots.nn.functional import calc_mae

    for name, peer in (("fit", Mean), ("predict", CSDI), ("impute", CSDI)):
        theirs, ours = (inspect.signature(getattr(one, name)).parameters for one in (peer, TameImputer))
        assert list(ours) == list(theirs)
    truth = np.nan_to_num(windows(6))
    given = {"X": mcar(truth, 0.3)}
    mean = Mean()
    scores = [calc_mae(one.impute(given), truth, np.isnan(given["X"])) for one in (imputer, mean)]
    assert np.isfinite(scores).all()
    assert imputer.impute(given).shape == mean.impute(given).shape
