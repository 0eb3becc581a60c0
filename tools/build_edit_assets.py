"""Build the emojis and fonts of the edits: `python tools/build_edit_assets.py FONTS`.

FONTS is a folder with the fonts of these Debian packages (bookworm), in any subfolder:
fonts-noto-color-emoji, fonts-noto-core, fonts-noto-cjk, fonts-inter, fonts-roboto-unhinted, fonts-roboto-slab,
fonts-lato, fonts-bebas-neue, fonts-comic-neue, fonts-lobster, fonts-dancingscript, fonts-kaushanscript,
fonts-courier-prime, fonts-cherrybomb and fonts-yusei-magic. `dpkg -x PACKAGE.deb FONTS` unpacks one.

Emojis become one sheet of 256 colors per kind. Fonts become subsets under neutral names, as their licenses require.
"""

from __future__ import annotations

import argparse
import json
import unicodedata
from pathlib import Path

import numpy as np
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from PIL import Image, ImageDraw, ImageFont

DATA = Path(__file__).parents[1] / "src" / "homing" / "edits" / "data"
SIDE = 112
COLUMNS = 8

EMOJIS = {
    "smileys": (
        "😀 😁 😂 🤣 😃 😅 😆 😉 😊 😋 😎 😍 😘 🥰 😗 🙂 🤗 🤩 🤔 🤨 "
        "😐 😑 🙄 😏 😣 😥 😮 🤐 😯 😪 😫 🥱 😴 😌 😛 😜 🤪 😒 😓 😔 "
        "🙃 🤑 😲 🙁 😖 😤 😢 😭 😱 😳 🥵 🥶 😡 🤬 😷 🤒 🤢 🤮 😇 🥳 "
        "🥺 🤠 🤡 🤓 😈 💀 👻 👽 🤖 💩 😺 😹"
    ),
    "people": ("👍 👎 👏 🙏 💪 👋 🤙 👌 ✌️ 🤞 👉 👆 ✊ 🤝 🙌 ❤️‍🔥 👀 🧠 👶 👧 👩 👨 👵 🧔 👮 👷 🤷 🤦 🙋 💃 🕺 🏃"),
    "animals": (
        "🐶 🐱 🐭 🐹 🐰 🦊 🐻 🐼 🐨 🐯 🦁 🐮 🐷 🐸 🐵 🙈 🐔 🐧 🐦 🦆 "
        "🦉 🐴 🦄 🐝 🦋 🐞 🐢 🐍 🐙 🐬 🐳 🦈 🐘 🦕 🌵 🌲 🌻 🌹 🍀 🍁"
    ),
    "food": ("🍎 🍌 🍉 🍇 🍓 🍒 🍑 🍍 🥑 🍆 🌽 🥕 🍞 🧀 🍔 🍟 🍕 🌭 🌮 🍣 🍜 🍝 🍦 🍩 🍪 🎂 🍫 🍿 ☕ 🍺 🍷 🍹"),
    "things": (
        "⚽ 🏀 🏈 🎾 🏆 🎮 🎲 🎸 🎧 🎤 🎬 🎨 🚗 🚲 ✈️ 🚀 ⛵ 🚂 🏠 🏖️ "
        "🗽 🌋 📷 📱 💻 💡 💰 🎁 🎈 🎉 📌 ✏️ 📚 🔒 🔑 ⏰ 👑 🕶️ 👟 💎"
    ),
    "symbols": (
        "❤️ 🧡 💛 💚 💙 💜 🖤 💔 💕 💯 💢 💥 💦 💤 🔥 ⭐ 🌟 ✨ ⚡ ☀️ "
        "🌈 ❄️ ☔ 🌙 ✅ ❌ ❓ ❗ ⚠️ 🚫 ♻️ 🔞 🆘 🆗 🔴 🔵 🎵 💬 🔝 🌍"
    ),
    "flags": ("🏁 🏳️‍🌈 🏴‍☠️ 🇺🇸 🇬🇧 🇪🇺 🇩🇪 🇫🇷 🇪🇸 🇮🇹 🇧🇷 🇯🇵 🇰🇷 🇨🇳 🇮🇳 🇲🇽 🇨🇦 🇦🇺 🇹🇷 🇺🇦 🇳🇬 🇿🇦 🇸🇪 🇨🇭"),
}

LATIN = "".join(map(chr, [*range(0x20, 0x7F), *range(0xA1, 0x100)])).replace("\xad", "") + "–—‘’“”…•"

WRITING = {
    "sans": "Inter-Regular.otf",
    "sans-bold": "Inter-Bold.otf",
    "grotesque": "Roboto-Regular.ttf",
    "grotesque-bold": "Roboto-Bold.ttf",
    "humanist": "NotoSans-Regular.ttf",
    "humanist-bold": "NotoSans-Bold.ttf",
    "serif": "NotoSerif-Regular.ttf",
    "serif-bold": "NotoSerif-Bold.ttf",
    "slab-bold": "RobotoSlab-Bold.otf",
    "heavy": "Lato-Black.ttf",
    "condensed": "BebasNeue-Bold.otf",
    "comic": "ComicNeue-Bold.otf",
    "poster": "lobster.otf",
    "script": "DancingScript-Bold.otf",
    "brush": "KaushanScript-Regular.otf",
    "typewriter": "Courier Prime Bold.otf",
    "bubble": "CherryBomb-Regular.otf",
    "marker": "YuseiMagic-Regular.ttf",
}
"""Fonts of Latin letters: name in homing, and source file."""

NOTO = (
    "Adlam", "Armenian", "Balinese", "Bengali", "Buginese", "CanadianAboriginal", "Chakma", "Cham", "Cherokee",
    "Coptic", "Cuneiform", "Cypriot", "Deseret", "Devanagari", "EgyptianHieroglyphs", "Ethiopic", "Georgian",
    "Glagolitic", "Gothic", "Gujarati", "Gurmukhi", "Hebrew", "Javanese", "Kannada", "Khmer", "Lao", "Lepcha",
    "Lisu", "LinearB", "Malayalam", "MeeteiMayek", "Mongolian", "Myanmar", "NKo", "OlChiki", "OldHungarian",
    "OldPersian", "Oriya", "Osage", "Phoenician", "Runic", "Shavian", "Sinhala", "Sundanese", "Symbols", "Symbols2",
    "TaiLe", "Tamil", "Telugu", "Thaana", "Thai", "Tifinagh", "Vai", "Yi",
)  # fmt: skip
"""Scripts of fonts-noto-core, with `GLYPHS` glyphs each."""

GLYPHS = 40

OTHERS = {
    "greek": ("NotoSans-Bold.ttf", (0x391, 0x3CA)),
    "cyrillic": ("NotoSerif-Bold.ttf", (0x410, 0x450)),
    "arabic": ("NotoNaskhArabic-Regular.ttf", (0x621, 0x64B)),
    "kana": ("NotoSansCJK-Bold.ttc", (0x3041, 0x30FB)),
    "hangul": ("NotoSansCJK-Bold.ttc", (0xAC00, 0xD7A4)),
    "han": ("NotoSerifCJK-Bold.ttc", (0x4E00, 0x5E00)),
    "math": ("NotoSansMath-Regular.ttf", (0x2190, 0x22FF)),
}


def main() -> None:
    """Rebuild `DATA`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fonts", type=Path)
    fonts = {file.name: file for file in sorted(parser.parse_args().fonts.rglob("*")) if file.suffix in SUFFIXES}
    for folder in ("emojis", "fonts"):
        (DATA / folder).mkdir(parents=True, exist_ok=True)
        for old in (DATA / folder).iterdir():
            old.unlink()
    counts = {kind: write_sheet(kind, texts.split(), fonts["NotoColorEmoji.ttf"]) for kind, texts in EMOJIS.items()}
    latin, scripts = [], {}
    for name, source in WRITING.items():
        file, _ = write_subset(name, fonts[source], LATIN)
        latin.append(file)
    for script in NOTO:
        file, glyphs = write_subset(script.lower(), fonts[f"NotoSans{script}-Regular.ttf"], None)
        scripts[file] = glyphs
    for name, (source, (first, end)) in OTHERS.items():
        wanted = "".join(map(chr, np.linspace(first, end - 1, min(90, end - first)).round().astype(int)))
        file, glyphs = write_subset(name, fonts[source], wanted)
        scripts[file] = glyphs
    manifest = {"emojis": counts, "latin": latin, "scripts": scripts}
    (DATA / "assets.json").write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    total = sum(file.stat().st_size for file in DATA.rglob("*") if file.is_file())
    print(f"{sum(counts.values())} emojis, {len(latin)} Latin fonts, {len(scripts)} scripts, {total / 1e6:.2f} MB")


SUFFIXES = (".ttf", ".otf", ".ttc")


def write_sheet(kind: str, emojis: list[str], font: Path) -> int:
    """Write one PNG with `COLUMNS` emojis per row, each `SIDE` pixels wide and high; return the number of emojis."""
    bitmaps = ImageFont.truetype(str(font), 109)  # the only bitmap size of this font
    sheet = Image.new("RGBA", (COLUMNS * SIDE, -(-len(emojis) // COLUMNS) * SIDE))
    for number, text in enumerate(emojis):
        canvas = Image.new("RGBA", (400, 200))
        ImageDraw.Draw(canvas).text((20, 20), text, font=bitmaps, embedded_color=True)
        left, top, right, bottom = canvas.getchannel("A").getbbox() or (0, 0, 0, 0)
        assert 40 < max(right - left, bottom - top) <= 136, (text, left, top, right, bottom)
        side = max(right - left, bottom - top)
        square = Image.new("RGBA", (side, side))
        square.paste(canvas.crop((left, top, right, bottom)), ((side - right + left) // 2, (side - bottom + top) // 2))
        corner = (number % COLUMNS * SIDE, number // COLUMNS * SIDE)
        sheet.paste(square.resize((SIDE, SIDE), Image.Resampling.LANCZOS), corner)
    sheet.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(
        DATA / "emojis" / f"{kind}.png", optimize=True
    )
    return len(emojis)


def write_subset(name: str, source: Path, wanted: str | None) -> tuple[str, str]:
    """Write a font of the wanted characters, or of letters of its script; return its file name and its characters."""
    font = TTFont(source, fontNumber=0, recalcTimestamp=False)
    # Combining marks need a base letter, and every font has Latin letters: both are left out.
    available = [
        chr(code) for code in font.getBestCmap() if code > 0x2FF and unicodedata.category(chr(code))[0] in "LNS"
    ]
    if wanted is None:
        glyphs = "".join(
            available[i] for i in np.linspace(0, len(available) - 1, min(GLYPHS, len(available))).astype(int)
        )
    else:
        glyphs = "".join(character for character in wanted if ord(character) in font.getBestCmap())
    options = Options(
        layout_features=[], hinting=False, desubroutinize=False, notdef_outline=True, name_IDs=[0, 13, 14]
    )
    options.drop_tables += ["GSUB", "GPOS", "GDEF", "DSIG", "kern", "vhea", "vmtx", "VORG", "BASE", "MATH", "STAT"]
    subsetter = Subsetter(options)
    subsetter.populate(text=glyphs)
    subsetter.subset(font)
    for identifier, text in ((1, f"homing {name}"), (2, "Regular"), (4, f"homing {name}"), (6, f"homing-{name}")):
        font["name"].setName(text, identifier, 3, 1, 0x409)
    if "CFF " in font:
        font["CFF "].cff.fontNames = [f"homing-{name}"]
        top = font["CFF "].cff.topDictIndex[0]
        for field in ("FullName", "FamilyName"):
            if hasattr(top, field):
                setattr(top, field, f"homing {name}")
    file = f"{name}{'.otf' if 'CFF ' in font else '.ttf'}"
    font.save(DATA / "fonts" / file)
    return file, glyphs


if __name__ == "__main__":
    main()
