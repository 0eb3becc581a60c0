"""The bundled emojis and fonts, which need no other library."""

import ast
import string
from pathlib import Path

import numpy as np
from PIL import Image, ImageFont

import homing
from homing.edits import parse
from homing.edits._assets import DATA, draw_writing, emoji_count, emoji_picture, load_font, manifest, texts

MISSING = "\U0010ffff"  # a character that no font has


def glyph(font: ImageFont.FreeTypeFont, character: str) -> tuple[tuple[int, int], bytes]:
    mask = font.getmask(character)
    return mask.size, bytes(mask)


def test_hundreds_of_emojis_are_all_different_and_fill_their_squares():
    pictures = [emoji_picture(number) for number in range(emoji_count())]
    assert len(pictures) >= 250
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)
    for picture in pictures:
        assert picture.mode == "RGBA" and picture.width == picture.height >= 100
        left, top, right, bottom = picture.getchannel("A").getbbox()
        assert max(right - left, bottom - top) >= picture.width - 4


def test_every_listed_character_is_in_its_font():
    for file in manifest().latin:
        font = load_font(file, 24)
        without = glyph(font, MISSING)
        assert all(glyph(font, each) != without for each in string.ascii_letters + string.digits)
    assert len(manifest().scripts) >= 50
    for file, characters in manifest().scripts.items():
        font = load_font(file, 24)
        without = glyph(font, MISSING)
        assert len(characters) >= 20
        assert sum(glyph(font, each) != without for each in characters) >= len(characters) - 1, file


def test_every_phrase_has_5_to_15_characters_of_every_latin_font():
    phrases = texts("phrases")
    assert len(set(phrases)) == len(phrases)
    assert all(5 <= len(phrase) <= 15 for phrase in phrases)
    characters = set("".join(phrases)) - {" "}
    for file in manifest().latin:
        font = load_font(file, 24)
        without = glyph(font, MISSING)
        assert [each for each in sorted(characters) if glyph(font, each) == without] == [], file


def test_many_seeds_draw_many_fonts_and_texts():
    rng = np.random.default_rng(0)
    samples = [draw_writing(rng) for _ in range(400)]
    assert all(5 <= len(characters) <= 15 for characters, _ in samples)
    assert len({file for _, file in samples}) > 60
    assert len({characters for characters, _ in samples}) > 200
    phrases = sum(characters in texts("phrases") for characters, _ in samples)
    assert 150 < phrases < 250


def test_many_seeds_draw_many_emojis():
    photo = Image.new("RGB", (40, 40))
    assert len({parse("emoji-1.0")(photo, seed=seed).tobytes() for seed in range(100)}) > 95


def test_assets_are_small_and_come_with_their_licenses():
    files = [file for file in DATA.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 1_500_000
    assert {file.name for file in (DATA / "licenses").iterdir()} == {"OFL-1.1.txt", "Apache-2.0.txt"}
    listed = {*manifest().latin, *manifest().scripts}
    assert {file.name for file in (DATA / "fonts").iterdir()} == listed
    notice = (Path(__file__).parents[2] / "NOTICE").read_text()
    assert all(Path(file).stem in notice for file in manifest().latin)


def test_no_module_imports_augly_or_libmagic():
    for module in Path(homing.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
            assert not {"augly", "magic"} & {name.split(".")[0] for name in names}, module
