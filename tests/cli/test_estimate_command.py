"""`homing estimate` on the command line."""

import json
import subprocess
import sys

import pytest
from tests.bench.helpers import homing

from homing.errors import HomingError


def test_text_has_figures_assumptions_and_their_basis() -> None:
    output = homing("estimate", "--photos", "1e9", "--gpu", "h200", "--days", 30, "--gpu-hour", 3.5)
    for words in ("1,000,000,000", "one h200", "activate", "released files", "262,144", "measured", "extrapolated"):
        assert words in output
    assert "highest first" in output
    assert "Assumed:" in output
    assert "benchmarks/scale.py" in output


def test_json_has_stages_costs_and_bottleneck() -> None:
    own = ("--rate", "activate=100", "--rate", "record=1000", "--rate", "index=1e6", "--days", 5, "--core-hour", 2)
    output = json.loads(homing("estimate", "--photos", "86.4e6", *own, "--queries-per-second", 3, "--json"))
    assert (output["machines"], output["bottleneck"], output["meets_deadline"]) == (3, "activate", True)
    assert output["request"]["photos"] == 86_400_000
    (stage, *_) = output["stages"]
    assert (stage["name"], stage["hours"], stage["basis"], stage["sources"]) == ("activate", 240.0, "given", [])
    assert output["cost_items"][0]["cost"] > 0
    assert output["search_cores"] > 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--photos", "1e9", "--gpu", "h100"), "did you mean 'h200'"),
        (("--photos", "0"), "from 1 to"),
        (("--photos", "nan"), "whole number"),
        (("--photos", "inf"), "whole number"),
        (("--photos", "1.5"), "whole number"),
        (("--photos", "10", "--rate", "activate"), "STAGE=PHOTOS_A_SECOND"),
        (("--photos", "10", "--rate", "activte=3"), "did you mean 'activate'"),
        (("--photos", "10", "--gpu-hour", "-1"), "from 0 to"),
    ],
)
def test_wrong_calls_are_refused(arguments: tuple[str, ...], says: str) -> None:
    with pytest.raises(HomingError, match=says) as raised:
        homing("estimate", *arguments)
    assert "\n" not in str(raised.value)


def test_a_wrong_call_is_one_error_line() -> None:
    call = [sys.executable, "-m", "homing", "estimate", "--photos", "1e9", "--gpu", "h100"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "homing: unknown GPU 'h100'; did you mean 'h200'? Available: h200, none\n"
