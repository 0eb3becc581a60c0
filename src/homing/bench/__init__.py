"""Benches: recall of edited copies, visual quality and speed; and the demo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from homing._public import import_lazily, list_public

if TYPE_CHECKING:
    from homing.bench.benches.analysis import AnalysisBench, run_analysis_bench
    from homing.bench.benches.calibration import CalibrationBench, run_calibration_bench
    from homing.bench.benches.detection import DetectionBench, run_detection_bench
    from homing.bench.benches.edits import EditsBench, run_edits_bench
    from homing.bench.benches.paper import PaperBench, run_paper_bench
    from homing.bench.benches.quality import QualityBench, run_quality_bench
    from homing.bench.benches.retrieval import RetrievalBench, run_retrieval_bench
    from homing.bench.benches.search import SearchBench, run_search_bench
    from homing.bench.benches.speed import SpeedBench, run_speed_bench
    from homing.bench.benches.watermarks import WatermarksBench, run_watermarks_bench

__all__ = [
    "AnalysisBench",
    "CalibrationBench",
    "DetectionBench",
    "EditsBench",
    "PaperBench",
    "QualityBench",
    "RetrievalBench",
    "SearchBench",
    "SpeedBench",
    "WatermarksBench",
    "run_analysis_bench",
    "run_calibration_bench",
    "run_detection_bench",
    "run_edits_bench",
    "run_paper_bench",
    "run_quality_bench",
    "run_retrieval_bench",
    "run_search_bench",
    "run_speed_bench",
    "run_watermarks_bench",
]

# Imported on first use: each bench needs other packages.
_MODULES = {
    "AnalysisBench": "benches.analysis",
    "run_analysis_bench": "benches.analysis",
    "CalibrationBench": "benches.calibration",
    "run_calibration_bench": "benches.calibration",
    "DetectionBench": "benches.detection",
    "run_detection_bench": "benches.detection",
    "EditsBench": "benches.edits",
    "run_edits_bench": "benches.edits",
    "PaperBench": "benches.paper",
    "run_paper_bench": "benches.paper",
    "QualityBench": "benches.quality",
    "run_quality_bench": "benches.quality",
    "RetrievalBench": "benches.retrieval",
    "run_retrieval_bench": "benches.retrieval",
    "SearchBench": "benches.search",
    "run_search_bench": "benches.search",
    "SpeedBench": "benches.speed",
    "run_speed_bench": "benches.speed",
    "WatermarksBench": "benches.watermarks",
    "run_watermarks_bench": "benches.watermarks",
}
__getattr__ = import_lazily(__name__, _MODULES)
__dir__ = list_public(__name__)
