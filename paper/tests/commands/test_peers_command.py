"""`tamedit peers RUN PROTOCOL`: the protocols of other papers, as a user meets them."""

from pathlib import Path

from support import Run


def test_the_protocol_of_csdi_is_shown(run: Run, smoke_run: Path) -> None:
    code, out, err = run("peers", smoke_run, "csdi", "--samples", "4", "--windows", "4", "--resamples", "0")
    assert code == 0, err
    assert "forecast 24" in out
    assert "CRPS_CSDI" in out


def test_mistakes_are_one_sentence(run: Run, smoke_run: Path) -> None:
    for protocol, said in (("tslib", "96"), ("mine", "choose tslib, csdi")):
        code, _, err = run("peers", smoke_run, protocol)
        assert code == 2
        assert said in " ".join(err.split())
        assert len(err.strip().splitlines()) == 1
