"""The public names of homing, and its functions for single photos and tensors."""

from __future__ import annotations

import ast
import inspect
import pydoc
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import homing
from homing.errors import HomingError, PhotoError
from homing.perception import JND, Linf, UniformJND, measure
from tests.collection.tiny import RECIPES, tiny_codebook, tiny_extractor, tiny_photos

RECIPE = homing.Recipe(name="quick", summary="for tests", steps=1, lr=10.0)


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return tiny_photos(tmp_path / "photos", 3)


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[homing.Collection]:
    with homing.Collection.create(tmp_path / "c", codebook=tiny_codebook(), extractor=tiny_extractor()) as opened:
        yield opened


def pixels(path: Path) -> torch.Tensor:
    return homing.Photo.load(path).pixels()


def test_dir_lists_exactly_the_public_names_and_each_exists() -> None:
    assert dir(homing) == sorted({*homing.__all__, *PACKAGES})
    for name in dir(homing):
        assert getattr(homing, name) is not None
    with pytest.raises(AttributeError, match="module 'homing' has no attribute 'searching'"):
        _ = homing.searching


def test_type_checkers_see_the_public_names() -> None:
    imports = [node for node in ast.walk(ast.parse(inspect.getsource(homing))) if isinstance(node, ast.ImportFrom)]
    names = {name.asname for node in imports for name in node.names if name.asname}
    assert names == {*dir(homing)} - {"__version__"}


PACKAGES = [name for name, module in homing._MODULES.items() if not module]


@pytest.mark.parametrize("package", PACKAGES)
def test_dir_of_a_package_lists_exactly_its_public_names(package: str) -> None:
    code = (  # in a new process: modules that are imported otherwise become attributes of their package
        f"import homing; package = homing.{package}; assert dir(package) == sorted(package.__all__), dir(package);"
        "print(all(getattr(package, name) is not None for name in dir(package)), hasattr(package, 'searching'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True False\n", "")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_function_and_class_of_a_package_has_a_docstring(package: str) -> None:
    module = import_module(f"homing.{package}")
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isfunction(value) or inspect.isclass(value):
            assert (value.__doc__ or "").strip(), name


def test_every_public_function_and_class_has_a_docstring() -> None:
    values = {"CodebookLike", "ExtractorLike", "PhotoLike", "PhotosLike", "RECIPES", "Verdict", "__version__"}
    for name in set(dir(homing)) - values:
        assert (getattr(homing, name).__doc__ or "").strip(), name


def test_help_lists_the_public_names() -> None:
    page = pydoc.plain(pydoc.render_doc(homing))
    for name in set(dir(homing)) - {"__version__"}:
        assert name in page, name
    assert "collection.search" in page


def test_importing_homing_is_light() -> None:
    """PyTorch is imported with the first name that needs it, server libraries only with names of the service."""
    code = (
        "import sys, homing; dir(homing); homing.errors if 'errors' in dir(homing) else homing.HomingError;"
        "heavy = {'torch', 'faiss', 'numpy', 'PIL', 'fastapi', 'timm', 'kornia'};"
        "print(heavy & set(sys.modules)); homing.Collection; print({'fastapi', 'ray', 'lance'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["set()", "set()"]


def test_packages_are_attributes_of_homing() -> None:
    code = (
        "import homing; homing.objectives.CellMargin; homing.edits.parse; homing.edits.random_edits;"
        "homing.perception.JND; homing.collection.migrate; homing.extractors.load; homing.collection.check"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


def test_a_pil_image_gives_the_result_of_its_file(photos: Path, tmp_path: Path) -> None:
    image = Image.open(photos / "chelsea.png")
    result = homing.activate(image, recipe="paper-fast")
    assert result.state == "activated"
    assert 43.8 <= result.quality.psnr <= 44.4
    assert result.image().size == image.size
    result.save(tmp_path / "released.png")
    assert (tmp_path / "released.png").read_bytes() == result.data
    released = homing.Photo.load(tmp_path / "released.png").pixels()
    assert measure(pixels(photos / "chelsea.png"), released) == result.quality
    with pytest.raises(HomingError, match="cannot write"):
        result.save(tmp_path / "nowhere" / "released.png")
    with pytest.raises(HomingError, match=r"released.jpg: the file is PNG, so its name must end in .png"):
        result.save(tmp_path / "released.jpg")
    assert len(repr(result)) < 1000, "the bytes of the file are printed"


def test_an_array_finds_the_photo(photos: Path, tmp_path: Path) -> None:
    with homing.Collection.create(tmp_path / "c", with_distractors=True) as collection:
        collection.add(photos)
        result = collection.search(np.array(Image.open(photos / "flower.jpg")))
    assert result.verdict == "match" and result.best is not None
    assert result.best.photo == str(photos / "flower.jpg")


def test_activate_without_a_collection_gives_the_same_file(
    collection: homing.Collection, paths: list[Path], tmp_path: Path
) -> None:
    (outcome,) = collection.activate(paths[0], tmp_path / "out", recipe=RECIPES[1])
    for photo in (paths[0], str(paths[0]), paths[0].read_bytes(), BytesIO(paths[0].read_bytes())):
        result = homing.activate(photo, recipe=RECIPES[1], extractor=tiny_extractor(), codebook=tiny_codebook())
        assert result.data == Path(outcome.released).read_bytes()
        assert (result.state, result.quality.psnr) == (outcome.state, outcome.psnr)


def test_a_list_has_the_error_of_an_unreadable_photo(paths: list[Path], tmp_path: Path) -> None:
    settings = {"recipe": RECIPES[0], "extractor": tiny_extractor(), "codebook": tiny_codebook()}
    results = homing.activate([paths[0], tmp_path / "nothing.jpg", paths[1]], **settings)
    assert [isinstance(each, homing.Activation) for each in results] == [True, False, True]
    assert isinstance(results[1], PhotoError) and "nothing.jpg" in str(results[1])
    with pytest.raises(PhotoError, match=r"nothing\.jpg: cannot be read"):
        homing.activate(tmp_path / "nothing.jpg", **settings)
    with pytest.raises(PhotoError, match="got None"):
        homing.activate([paths[0], None], **settings)


def test_names_and_values_are_equivalent(paths: list[Path], tmp_path: Path) -> None:
    tiny_codebook().write(tmp_path / "tiny.codebook")
    for codebook in (tmp_path / "tiny.codebook", str(tmp_path / "tiny.codebook"), tiny_codebook()):
        homing.activate(paths[0], recipe=RECIPES[0], extractor=tiny_extractor(), codebook=codebook)
        path = tmp_path / f"{type(codebook).__name__}.homing"
        homing.Collection.create(path, codebook=codebook, extractor=tiny_extractor()).close()
    for wrong in ({"recipe": "homingg"}, {"codebook": "homing-2"}, {"extractor": "homing-2"}):
        with pytest.raises(HomingError, match="did you mean"):
            homing.activate(paths[0], **wrong)
    with pytest.raises(HomingError, match="did you mean"):
        homing.Collection.open(tmp_path / "str.homing", extractor="homing-2")
    with homing.Collection.create(tmp_path / "default", extractor="homing-1") as opened:
        assert opened.extractor.name == "homing-1"


@pytest.mark.parametrize("wrong", [5, None, torch.nn.Identity()])
def test_wrong_extractors_and_codebooks_are_rejected(wrong: object) -> None:
    with pytest.raises(HomingError, match="an extractor is given by name, file or as an Extractor"):
        homing.load_extractor(wrong)
    with pytest.raises(HomingError, match="a codebook is given by name, file or as a Codebook"):
        homing.load_codebook(wrong)


def test_describe_equals_the_extractor(photos: Path) -> None:
    net = homing.load_extractor()
    paths = sorted(photos.iterdir())
    wanted = torch.cat([net(net.resize(pixels(path))[None]) for path in paths])
    torch.testing.assert_close(homing.describe(paths), wanted, atol=1e-5, rtol=0)
    torch.testing.assert_close(homing.describe([pixels(path) for path in paths], "homing-1"), wanted, atol=1e-5, rtol=0)
    one = homing.describe(Image.open(paths[0]), net)
    assert one.shape == (1, net.dim)
    torch.testing.assert_close(one[0], wanted[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("budget", [JND(psnr=43.8), UniformJND(psnr=40), Linf(psnr=46)])
def test_tensors_have_the_psnr_of_the_budget(photos: Path, budget: homing.Budget) -> None:
    images = torch.stack([pixels(photos / name)[:, :256, :256] for name in ("chelsea.png", "flower.jpg")])
    recipe = replace(homing.RECIPES["homing-fast"], name="quick", budget=budget)
    net, book = homing.load_extractor(), homing.load_codebook()
    activated = homing.activate_images(images, net, book, recipe=recipe)
    assert activated.shape == images.shape and activated.dtype == images.dtype
    assert activated.min() >= 0 and activated.max() <= 1
    for before, after in zip(images, activated, strict=True):
        assert measure(before, after).psnr == pytest.approx(budget.psnr, abs=0.01)
    originals, now = homing.describe(images, net), homing.describe(activated, net)
    objective = homing.objectives.objective_for(book, originals, recipe.objective)
    assert (objective(now) < objective(originals)).all()


def test_white_images_have_the_psnr_of_the_budget_too() -> None:
    """Half of the change is clipped."""
    image = torch.ones(1, 3, 64, 64)
    image[:, :, 20:40, 20:40] = torch.rand(3, 20, 20, generator=torch.Generator().manual_seed(0))
    activated = homing.activate_images(image, recipe=RECIPE)
    assert 43.79 <= measure(image[0], activated[0]).psnr < 50


def test_a_list_of_tensors_may_differ_in_size(photos: Path) -> None:
    images = [pixels(photos / "chelsea.png")[:, :100], pixels(photos / "flower.jpg")[:, :, :150].double()]
    activated = homing.activate_images(images, recipe=RECIPE)
    assert [(each.shape, each.dtype) for each in activated] == [(each.shape, each.dtype) for each in images]


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        (torch.rand(3, 64, 64), r"\(B, 3, H, W\) or a list"),
        ([], "no images were given"),
        ([torch.rand(64, 64, 3)], r"\(64, 64, 3\)"),
        ([np.zeros((3, 64, 64))], "got ndarray"),
        (torch.rand(1, 1, 64, 64), r"\(1, 64, 64\)"),
        (torch.rand(1, 3, 64, 64) * 2, r"floats in \[0, 1\] are accepted"),
        (torch.full((1, 3, 64, 64), torch.nan), "nan"),
        (torch.zeros(1, 3, 64, 64, dtype=torch.uint8), "floats, got"),
        (torch.rand(1, 3, 16, 64), "at least 32×32"),
        (None, r"images are a tensor \(B, 3, H, W\) or a list of \(3, H, W\) of floats, got None"),
        (torch.empty(1, 3, 64, 64, device="meta"), r"tensor \(3, H, W\) of floats, got .*, without values \(meta\)"),
    ],
)
def test_wrong_images_are_rejected(wrong: object, line: str) -> None:
    with pytest.raises(HomingError, match=line):
        homing.activate_images(wrong, recipe=RECIPE)


def test_images_with_a_gradient_are_activated_without_a_warning() -> None:
    image = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    activated = homing.activate_images(image.clone().requires_grad_(), recipe=RECIPE)
    assert not activated.requires_grad
    torch.testing.assert_close(activated, homing.activate_images(image, recipe=RECIPE))


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda c, image: c.search(image, k="x"), "k must be a whole number, got 'x'"),
        (lambda c, image: c.search(image, k=2.5), "k must be a whole number, got 2.5"),
        (lambda c, image: c.search(image, probes="x"), "probes must be a whole number, got 'x'"),
        (lambda c, image: c.search(image, rerank="x"), "rerank must be a whole number, got 'x'"),
        (lambda c, image: c.search(image, probe_radius="x"), "probe_radius must be a number, got 'x'"),
        (lambda c, image: c.search(image, max_false_match="x"), "max_false_match must be a number, got 'x'"),
        (lambda c, image: c.references(limit="a"), "limit must be a whole number, got 'a'"),
        (lambda c, image: c.references(limit=2.5), "limit must be a whole number, got 2.5"),
        (lambda c, image: c.references(after="x"), "after must be a whole number, got 'x'"),
        (lambda c, image: c.references(name_contains=5), "name_contains must be a text, got 5"),
        (lambda c, image: c.activate(image, None), "a path or an address is expected, got None"),
        (lambda c, image: c.activate(image, "out", format=3), "format must be a text, got 3"),
        (lambda c, image: c.activate(image, "out", psnr="a"), "psnr must be a number, got 'a'"),
        (lambda c, image: homing.activate(image, psnr="a"), "psnr must be a number, got 'a'"),
        (lambda c, image: homing.activate(image, format=3), "format must be a text, got 3"),
        (lambda c, image: homing.JND(alpha="a"), "alpha must be a number, got 'a'"),
        (lambda c, image: homing.Recipe(name="r", lr="a"), "lr must be a number, got 'a'"),
        (lambda c, image: homing.Recipe(name="r", steps=None), "steps must be a number, got None"),
    ],
)
def test_settings_of_a_wrong_type_are_refused(call, line: str, collection: homing.Collection) -> None:
    with pytest.raises(HomingError, match=re.escape(line)):
        call(collection, np.zeros((64, 64, 3), np.uint8))


def test_numbers_of_numpy_are_numbers(collection: homing.Collection) -> None:
    assert (
        collection.search(np.zeros((64, 64, 3), np.uint8), k=np.int64(2), max_false_match=np.float32(0.5)) is not None
    )
    assert homing.JND(psnr=np.float32(43.0)).psnr == 43


def test_an_extractor_with_another_codebook_needs_it_named() -> None:
    with pytest.raises(HomingError, match="for extractor 'imagenet-lite0'; pass codebook=, such as codebook='imagenet"):
        homing.activate(np.zeros((64, 64, 3), np.uint8), extractor="imagenet-lite0")
    with pytest.raises(HomingError, match=r"for extractor '.*'; pass codebook=$"):
        homing.activate_images(torch.rand(1, 3, 64, 64), tiny_extractor())


def test_names_of_extractors_and_recipes_are_resolved_everywhere(tmp_path: Path) -> None:
    calls = (
        lambda: homing.collection.switch(tmp_path / "c", extractor="homing-2"),
        lambda: homing.collection.migrate(tmp_path / "c", "homing-1", extractor="homing-2"),
        lambda: homing.collection.check(tmp_path / "c", extractor="homing-2"),
        lambda: homing.Codebook.train(np.zeros((300, 8)), spec="PQ8x4", extractor="homing-2", name="own"),
        lambda: homing.cluster.activate([], str(tmp_path), tmp_path / "out", recipe="homing-2", on_outcome=print),
    )
    for call in calls:
        with pytest.raises(homing.UnknownNameError, match="did you mean"):
            call()


def test_codebooks_are_trained_for_an_extractor_by_name() -> None:
    rows = np.random.default_rng(0).standard_normal((300, 512)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    book = homing.Codebook.train(rows, spec="PQ8x4", extractor="homing-1", name="own")
    assert (book.extractor, book.extractor_fingerprint) == ("homing-1", homing.load_codebook().extractor_fingerprint)
