"""Benches: recall of edited copies, visual quality and speed; and the demo.

A bench is made from its settings, and `run` measures:
`RetrievalBench(RetrievalSettings(photos=…, out=…), progress).run()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from homing._imports import import_lazily

if TYPE_CHECKING:
    from homing.bench.base import Bench, Settings, bench_names, load_bench
    from homing.bench.benches.analysis import AnalysisBench, AnalysisSettings
    from homing.bench.benches.calibration import CalibrationBench, CalibrationSettings
    from homing.bench.benches.detection import DetectionBench, DetectionSettings
    from homing.bench.benches.edits import EditsBench, EditsSettings
    from homing.bench.benches.paper import PaperBench, PaperSettings
    from homing.bench.benches.quality import QualityBench, QualitySettings
    from homing.bench.benches.retrieval import RetrievalBench, RetrievalSettings
    from homing.bench.benches.search import SearchBench, SearchBenchSettings
    from homing.bench.benches.speed import SpeedBench, SpeedSettings
    from homing.bench.benches.watermarks import WatermarksBench, WatermarksSettings

__all__ = [
    "AnalysisBench",
    "AnalysisSettings",
    "Bench",
    "CalibrationBench",
    "CalibrationSettings",
    "DetectionBench",
    "DetectionSettings",
    "EditsBench",
    "EditsSettings",
    "PaperBench",
    "PaperSettings",
    "QualityBench",
    "QualitySettings",
    "RetrievalBench",
    "RetrievalSettings",
    "SearchBench",
    "SearchBenchSettings",
    "Settings",
    "SpeedBench",
    "SpeedSettings",
    "WatermarksBench",
    "WatermarksSettings",
    "bench_names",
    "load_bench",
]

# Imported on first use: each bench needs other packages.
_NAMES = {
    "base": ["Bench", "Settings", "bench_names", "load_bench"],
    "benches.analysis": ["AnalysisBench", "AnalysisSettings"],
    "benches.calibration": ["CalibrationBench", "CalibrationSettings"],
    "benches.detection": ["DetectionBench", "DetectionSettings"],
    "benches.edits": ["EditsBench", "EditsSettings"],
    "benches.paper": ["PaperBench", "PaperSettings"],
    "benches.quality": ["QualityBench", "QualitySettings"],
    "benches.retrieval": ["RetrievalBench", "RetrievalSettings"],
    "benches.search": ["SearchBench", "SearchBenchSettings"],
    "benches.speed": ["SpeedBench", "SpeedSettings"],
    "benches.watermarks": ["WatermarksBench", "WatermarksSettings"],
}
__getattr__ = import_lazily(__name__, {name: module for module, names in _NAMES.items() for name in names})


def __dir__() -> list[str]:
    return sorted(__all__)
