"""The demo."""

from pathlib import Path

import pytest

from homing.bench.demo import MARK, DemoResult, run_demo, steps
from homing.edits import PAPER
from homing.errors import HomingError


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> DemoResult:
    progress = []
    result = run_demo(tmp_path_factory.mktemp("demo"), lambda: progress.append(1))
    assert len(progress) == steps()
    return result


def test_activation_increases_recall(result: DemoResult) -> None:
    output = result.as_json()
    assert output["recall"]["activated"] >= output["recall"]["passive"] + 0.15
    assert output["psnr"] >= 43


def test_unedited_files_are_always_found(result: DemoResult) -> None:
    _, recalls = next(result.rows())
    assert recalls == [1, 1, 1, 1]


def test_the_table_has_all_edits_and_their_mean(result: DemoResult) -> None:
    *rows, mean = result.rows()
    assert [row[0] for row in rows] == [edit.label for edit in PAPER]
    for column in range(4):
        assert mean[1][column] == pytest.approx(sum(recalls[column] for _, recalls in rows) / len(rows))


def test_the_page_shows_every_photo_and_loads_nothing(result: DemoResult) -> None:
    page = result.report.read_text()
    assert page.count("<article>") == len(result.outcomes)
    assert page.count('<img src="data:image/jpeg;base64,') == 5 * len(result.outcomes)
    assert "://" not in page  # "http" alone can occur in base64 data


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "demo.homing").mkdir()
    (tmp_path / "photos" / "mine.jpg").touch()
    with pytest.raises(HomingError, match="is not empty and was not written by a demo"):
        run_demo(tmp_path, lambda: None)
    assert (tmp_path / "photos" / "mine.jpg").exists()


def test_photos_uploaded_to_the_service_are_not_deleted(tmp_path: Path) -> None:
    upload = tmp_path / "demo.homing/uploads/hash/mine.jpg"
    upload.parent.mkdir(parents=True)
    upload.touch()
    (tmp_path / MARK).touch()
    with pytest.raises(HomingError, match="holds photos uploaded to the service"):
        run_demo(tmp_path, lambda: None)
    assert upload.exists()
