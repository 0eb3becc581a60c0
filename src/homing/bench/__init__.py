"""Benches: recall of edited copies, visual quality and speed; and the demo.

A bench is made from its settings, and `run` measures: `Retrieval(RetrievalSettings(photos=…, out=…), progress).run()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from homing._public import import_lazily, list_public

if TYPE_CHECKING:
    from homing.bench.base import Bench, Settings, bench_names, load_bench
    from homing.bench.benches.analysis import Analysis, AnalysisSettings
    from homing.bench.benches.calibration import Calibration, CalibrationSettings
    from homing.bench.benches.detection import Detection, DetectionSettings
    from homing.bench.benches.edits import Edits, EditsSettings
    from homing.bench.benches.paper import Paper, PaperSettings
    from homing.bench.benches.quality import Quality, QualitySettings
    from homing.bench.benches.retrieval import Retrieval, RetrievalSettings
    from homing.bench.benches.search import Search, SearchSettings
    from homing.bench.benches.speed import Speed, SpeedSettings
    from homing.bench.benches.watermarks import Watermarks, WatermarksSettings

__all__ = [
    "Analysis",
    "AnalysisSettings",
    "Bench",
    "Calibration",
    "CalibrationSettings",
    "Detection",
    "DetectionSettings",
    "Edits",
    "EditsSettings",
    "Paper",
    "PaperSettings",
    "Quality",
    "QualitySettings",
    "Retrieval",
    "RetrievalSettings",
    "Search",
    "SearchSettings",
    "Settings",
    "Speed",
    "SpeedSettings",
    "Watermarks",
    "WatermarksSettings",
    "bench_names",
    "load_bench",
]

# Imported on first use: each bench needs other packages.
_MODULES = {
    "Bench": "base",
    "Settings": "base",
    "bench_names": "base",
    "load_bench": "base",
    "Analysis": "benches.analysis",
    "AnalysisSettings": "benches.analysis",
    "Calibration": "benches.calibration",
    "CalibrationSettings": "benches.calibration",
    "Detection": "benches.detection",
    "DetectionSettings": "benches.detection",
    "Edits": "benches.edits",
    "EditsSettings": "benches.edits",
    "Paper": "benches.paper",
    "PaperSettings": "benches.paper",
    "Quality": "benches.quality",
    "QualitySettings": "benches.quality",
    "Retrieval": "benches.retrieval",
    "RetrievalSettings": "benches.retrieval",
    "Search": "benches.search",
    "SearchSettings": "benches.search",
    "Speed": "benches.speed",
    "SpeedSettings": "benches.speed",
    "Watermarks": "benches.watermarks",
    "WatermarksSettings": "benches.watermarks",
}
__getattr__ = import_lazily(__name__, _MODULES)
__dir__ = list_public(__name__)
