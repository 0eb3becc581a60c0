"""Names, strengths and labels."""

import pickle

import pytest
from hypothesis import given, strategies as st
from PIL import Image

from homing.edits import KINDS, PAPER, Edit, parse
from homing.errors import HomingError, UnknownNameError


@given(st.data())
def test_labels_are_read_back(data):
    kind = data.draw(st.sampled_from(list(KINDS.values())))
    if kind.bounds is None:
        strength = None
    else:
        strength = data.draw(st.integers(*kind.bounds) if kind.whole else st.floats(*kind.bounds))
    edit = Edit(kind.name, strength)
    assert parse(edit.label) == edit
    assert pickle.loads(pickle.dumps(edit)) == edit


def test_one_strength_has_one_spelling():
    assert Edit("contrast", 2) == parse("contrast-2") == parse("contrast-2.0")
    assert parse("contrast-2").label == "contrast-2.0"
    assert Edit("jpeg", 50.0).label == "jpeg-50"
    assert parse("rotation--30").strength == -30


def test_unknown_names_suggest_a_known_one():
    with pytest.raises(UnknownNameError, match="did you mean 'contrast'"):
        parse("contrsat-0.5")
    with pytest.raises(UnknownNameError):
        Edit("", 1.0)


@pytest.mark.parametrize(
    "label",
    [
        "contrast",
        "contrast-",
        "contrast-strong",
        "contrast-nan",
        "contrast-inf",
        "contrast--1",
        "hue-0.6",
        "hue--0.6",
        "jpeg-0",
        "jpeg-101",
        "jpeg-50.5",
        "palette-1",
        "crop-0",
        "crop-1.1",
        "rotation-181",
        "meme-1",
        "identity-",
    ],
)
def test_invalid_strengths_are_refused(label):
    with pytest.raises(HomingError, match=label.split("-")[0]):
        parse(label)


@pytest.mark.parametrize("mode", ["L", "RGBA", "CMYK", "I;16"])
def test_other_modes_are_refused(mode):
    with pytest.raises(HomingError, match=f"got {mode}; convert"):
        Edit("identity")(Image.new(mode, (40, 40)))


def test_edits_of_the_paper_are_in_its_order():
    assert " ".join(edit.label for edit in PAPER) == (
        "identity contrast-0.5 contrast-2.0 brightness-0.5 brightness-2.0 hue-0.2 blur-2.0 jpeg-50 "
        "rotation-25 rotation-90 crop-0.5 resize-0.5 meme random"
    )
