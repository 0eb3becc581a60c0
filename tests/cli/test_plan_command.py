"""homing plan, as a person or a script calls it."""

import json
import subprocess
import sys

import pytest
from tests.evaluation.small import homing

from homing.errors import HomingError


def test_a_plan_for_a_person_says_what_is_measured_and_what_is_not() -> None:
    said = homing("plan", "--photos", "1e9", "--gpu", "h200", "--days", 30, "--gpu-hour", 3.5)
    for words in ("1,000,000,000", "one h200", "activate", "released files", "262,144", "measured", "extrapolated"):
        assert words in said
    assert "the dearest first" in said
    assert "Assumed:" in said
    assert "benchmarks/scale.py" in said


def test_a_plan_for_a_script() -> None:
    own = ("--rate", "activate=100", "--rate", "record=1000", "--rate", "index=1e6", "--days", 5, "--core-hour", 2)
    said = json.loads(homing("plan", "--photos", "86.4e6", *own, "--queries-per-second", 3, "--json"))
    assert (said["machines"], said["limits"], said["in_time"]) == (3, "activate", True)
    assert said["question"]["photos"] == 86_400_000
    (stage, *_) = said["stages"]
    assert (stage["name"], stage["hours"], stage["basis"], stage["sources"]) == ("activate", 240.0, "yours", [])
    assert said["drivers"][0]["cost"] > 0
    assert said["searching_cores"] > 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--photos", "1e9", "--gpu", "h100"), "did you mean 'h200'"),
        (("--photos", "0"), "at least 1"),
        (("--photos", "nan"), "whole number"),
        (("--photos", "inf"), "whole number"),
        (("--photos", "1.5"), "whole number"),
        (("--photos", "10", "--rate", "activate"), "STAGE=PHOTOS_A_SECOND"),
        (("--photos", "10", "--rate", "activte=3"), "did you mean 'activate'"),
        (("--photos", "10", "--gpu-hour", "-1"), "0 or more"),
    ],
)
def test_wrong_calls_are_refused(arguments: tuple[str, ...], says: str) -> None:
    with pytest.raises(HomingError, match=says) as raised:
        homing("plan", *arguments)
    assert "\n" not in str(raised.value)


def test_a_wrong_call_is_told_in_one_line() -> None:
    call = [sys.executable, "-m", "homing", "plan", "--photos", "1e9", "--gpu", "h100"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "homing: unknown GPU 'h100'; did you mean 'h200'? Available: h200, none\n"
