"""`tamedit audit` from the command line."""

import json
from pathlib import Path

from support import Run
from tamedit.data.simulate import simulate


def test_an_audit_answers_with_bounds_beside_epsilon(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "homes.csv"
    simulate(meters=2, hours=20 * 168, seed=0).frame().to_csv(table, index=False)
    words = ["audit", str(table), "--scale", "smoke", "--steps", "2", "--batch-size", "8", "--homes", "2"]
    words += ["--canaries", "100", "--epsilon", "4", "--typical-level", "0.35", "--typical-scale", "0.35"]
    answer = run(*words, "--out", str(tmp_path / "audit"), "--json")
    assert answer.code == 0, answer.err
    said = json.loads(answer.out)
    assert [one["attack"] for one in said["findings"]] == ["black box", "white box"]
    assert all(one["lower"] <= one["stated"] <= 4.0 for one in said["findings"])
    assert not said["broken"]
    assert "above ε shows" in said["reading"]
    again = run(*words, "--out", str(tmp_path / "audit"))
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert "--out" in again.err
    assert run(*words, "--out", str(tmp_path / "other"), "--confidence", "1.5").code == 2
    assert not (tmp_path / "other").exists()
