"""The retrieval bench: recall of edited copies of photos released with several recipes, among distractors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from homing._options import setting
from homing.bench.base import PASSIVE, PROBES_OPTION, RECIPES_OPTION, IndexSettings
from homing.bench.codebook_bench import CodebookBench
from homing.bench.figures import Figure, share_bars
from homing.bench.published import published, published_gain
from homing.bench.references import Probes, describe_probes, format_probes
from homing.bench.release import ReleaseResult
from homing.bench.report import CsvTable
from homing.bench.runs import INTERVALS, LABELS, CodebookRun, CopySearch, network, recall_shares
from homing.bench.scores import gain_interval, ivf_failure, recall_at, recall_columns, recall_intervals
from homing.bench.tables import Column, Row, Table, cells, fixed, with_interval
from homing.edits import PAPER
from homing.objectives import has_objective

RANKS = (1, 10, 100)


@dataclass(frozen=True, kw_only=True)
class RetrievalSettings(IndexSettings):
    """Recipes, and probes of a search."""

    probes: Sequence[Probes] = setting(PROBES_OPTION, (1, 16, "exact"))
    recipes: Sequence[str] = setting(RECIPES_OPTION, (PASSIVE, "paper"))


class RetrievalBench(CodebookBench):
    """Measure how many edited copies are found: photos are released, edited and searched for.

    Run the same command again to resume it: descriptors and released files stay in the out folder.

    Examples:

        homing bench retrieval --photos held-out/ --out retrieval/

        homing bench retrieval --photos held-out/ --distractor-photos others/ --distractors 100000 --out retrieval/
    """

    title = "Recall of edited copies"
    settings_class = RetrievalSettings
    settings: RetrievalSettings

    def measure_codebook(self, run: CodebookRun) -> None:
        """Search for the copies of each recipe's files, with each number of probes."""
        for recipe in run.supported_recipes(self.settings.recipes):
            release_result = run.release(recipe)
            copies = run.copies(release_result.files, PAPER, recipe)
            for probes in run.probes(self.settings.probes):
                found = run.search(copies, max(RANKS), probes, recipe)
                search = run.copy_search(recipe, release_result.files, PAPER, found, probes)
                self.searches.append(search)
                self.rows.append(_row(search, release_result, copies, probes))

    def summary(self) -> str:
        """What was measured, in one line."""
        return f"Recall at rank 1: {self.among()}"

    def about(self) -> Mapping[str, object]:
        """The settings as results.json and the page show them."""
        return {
            **self.counts(),
            "edits": LABELS,
            "recipes": self.settings.recipes,
            "probes": self.settings.probes,
            "intervals": INTERVALS,
        }

    def numbers(self) -> Mapping[str, object]:
        """The codebooks, and the gains."""
        return {**super().numbers(), "gains": self.gains}

    @cached_property
    def gains(self) -> list[dict[str, Any]]:
        """The gain of each recipe over passive with each codebook and number of probes."""
        found = {(search.run.codebook.name, search.search, search.recipe): search for search in self.searches}
        return [
            _gain(passive, search)
            for (name, probes, recipe), search in found.items()
            if recipe != PASSIVE and probes != "exact" and (passive := found.get((name, probes, PASSIVE)))
        ]

    def tables(self) -> list[Table]:
        """The paper's first table, the gains, and further figures."""
        gains = self._gains_table()
        return [self._table(), *([gains] if gains.rows else []), self._details()]

    def terminal(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Gains for several codebooks; for one codebook, a row for each edit."""
        gains = self._gains_table()
        if len(self.runs) > 1 and gains.rows:
            return gains.headings, gains.rows
        how = [describe_probes(row["probes"], row["failure"] is not None) for row in self.rows]
        named = zip(self.rows, how, strict=True)
        headings = ["edit", *(f"{row['codebook']},\n{row['recipe']},\n{probes}" for row, probes in named)]
        lines = [[label, *(f"{row['recall'][label]:.2f}" for row in self.rows)] for label in LABELS]
        lines.append(["mean", *(f"{row['mean']:.3f}" for row in self.rows)])
        for side, name in enumerate(("95 % from", "95 % to")):
            lines.append([name, *(f"{row['mean_interval'][side]:.3f}" for row in self.rows)])
        lines.append(["PSNR, dB", *(fixed(row["psnr"], 1) for row in self.rows)])
        return headings, lines

    def _comparable(self) -> list[dict[str, Any]]:
        """Published rows with the same recipes and numbers of probes."""
        wanted = {(row["recipe"], row["probes"]) for row in self.rows}
        return [row for row in published()["table"] if (row["recipe"], row["probes"]) in wanted]

    def _table(self) -> Table:
        """The paper's first table: measured rows, then published ones."""
        columns: dict[str, Column] = {
            "network": network,
            "index": _index,
            "probes": _probes,
            "bytes": "bytes_per_vector",
            "ms": lambda row: fixed(row["milliseconds"] and row["milliseconds"].homing, 2),
            "recipe": "recipe",
            **{label: partial(_share, label) for label in LABELS},
            "mean": lambda row: f"{row['mean']:.3f}",
        }
        ours = [cells(row, columns.values()) for row in self.rows]
        theirs = [_published_line(row) for row in self._comparable()]
        return Table(
            name="table",
            caption="Recall at rank 1 by edit. Rows named SSCD are as published (Fernandez et al., 2023): 10,000 "
            "photos among a million references.",
            headings=list(columns),
            rows=[*ours, *theirs],
            groups=[len(ours)] if theirs else [],
        )

    def _details(self) -> Table:
        """Further figures, among them the time per photo, by which the paper's appendix compares recipes."""
        usual = {
            (row["codebook"], row["probes"]): row["seconds_per_photo"] for row in self.rows if row["recipe"] == "paper"
        }
        columns: dict[str, Column] = {
            "network": network,
            "index": _index,
            "probes": _probes,
            "recipe": "recipe",
            "mean, 95 % interval": lambda row: with_interval(row["mean"], row["mean_interval"]),
            "at 10": lambda row: f"{row['recall_at'][10]:.3f}",
            "at 100": lambda row: f"{row['recall_at'][100]:.3f}",
            "p_f": lambda row: "" if row["probes"] == "exact" else fixed(_mean_failure(row), 3),
            "ms, homing": lambda row: fixed(row["milliseconds"] and row["milliseconds"].homing, 3),
            "ms, FAISS": lambda row: fixed(row["milliseconds"] and row["milliseconds"].faiss, 3),
            "PSNR, dB": lambda row: fixed(row["psnr"], 1),
            "SSIM": lambda row: fixed(row["ssim"], 3),
            "activated": lambda row: "" if row["psnr"] is None else f"{row['activated']} of {row['photos']}",
            "s per photo": lambda row: "" if row["psnr"] is None else fixed(row["seconds_per_photo"], 3),
            "÷ recipe paper": lambda row: (
                ""
                if row["psnr"] is None
                else _times(row["seconds_per_photo"], usual.get((row["codebook"], row["probes"])))
            ),
        }
        ours = [cells(row, columns.values()) for row in self.rows]
        theirs = [_published_details(row) for row in self._comparable()]
        return Table(
            name="details",
            caption="Means over the edits: recall at rank 1 with its interval, and at ranks 10 and 100; p_f, the share "
            "of copies that fall into another cell than their original; time of one search on one core; quality of the "
            "files as written; time to release a photo, and divided by that of the recipe paper. Rows named SSCD are "
            "as published: measured on a GPU, for the loop alone; ours includes reading, writing and measuring the "
            "file.",
            headings=list(columns),
            rows=[*ours, *theirs],
            groups=[len(ours)] if theirs else [],
        )

    def _gains_table(self) -> Table:
        """A row for each index, recipe and number of probes; an index without support for activation has no gain."""
        rows = [line for run in self.runs for line in self._gain_lines(run)]
        return Table(
            name="gains",
            caption="Mean recall at rank 1 over the edits, passive and activated; the gain with its interval (a "
            "bootstrap over photos); and the gain that the paper reports for the same index.",
            headings=[
                *("network", "index", "probes", "bytes", "recipe"),
                *("passive", "activated", "gain", "95 %", "paper's gain"),
            ],
            rows=rows,
        )

    def _gain_lines(self, run: CodebookRun) -> Iterator[list[str]]:
        """The rows of one codebook."""
        name, has_cells = run.codebook.name, run.codebook.has_cells
        head, size = [Path(run.codebook.extractor).name, run.codebook.spec], str(run.references.bytes_per_vector)
        for gain in self.gains:
            if gain["codebook"] == name:
                yield [*head, format_probes(gain["probes"], has_cells), size, gain["recipe"], *_gain_cells(gain)]
        if not has_objective(run.codebook):
            for row in self.rows:
                if row["codebook"] == name and row["probes"] != "exact":
                    passive = [size, row["recipe"], f"{row['mean']:.3f}"]
                    yield [*head, format_probes(row["probes"], has_cells), *passive, "", "not supported", "", ""]

    def figures(self) -> list[Figure]:
        """Recall by edit with intervals, of the first codebook and number of probes."""
        first = self.rows[0]
        rows = [row for row in self.rows if (row["codebook"], row["probes"]) == (first["codebook"], first["probes"])]
        how = f"{first['codebook']}, {describe_probes(first['probes'], first['failure'] is not None)}"
        shares = {row["recipe"]: recall_shares(row) for row in rows}
        caption = f"Recall by edit with 95 % intervals, {how}."
        return [share_bars("recall", caption, LABELS, shares, "recall at rank 1")]

    def csv(self) -> CsvTable:
        """A row for each search."""
        return CsvTable(
            headings=CopySearch.HEADINGS, rows=(line for search in self.searches for line in search.lines())
        )


def _row(search: CopySearch, release_result: ReleaseResult, copies: np.ndarray, probes: Probes) -> Row:
    """Recall by edit at rank 1, and its mean at each rank.

    `failure` is the share of copies that fall into another cell; None for a codebook without cells.
    """
    run, ranks = search.run, search.ranks
    queries = copies.reshape(-1, copies.shape[2])
    cells = run.cells(queries).reshape(ranks.shape)
    failure = ivf_failure(run.cells(run.descriptors)[run.true_ids(release_result.files)], cells)
    return {
        **run.columns(search.recipe),
        "probes": probes,
        **recall_columns(LABELS, search.correct),
        "recall_at": {k: recall_at(ranks.ravel(), k) for k in RANKS},
        "recall_at_interval": {k: recall_intervals((ranks >= 0) & (ranks < k)).mean for k in RANKS},
        "failure": dict(zip(LABELS, failure.tolist(), strict=True)) if run.codebook.has_cells else None,
        **run.release_columns(search.recipe, release_result),
        "bytes_per_vector": 4 * run.extractor.dim if probes == "exact" else run.references.bytes_per_vector,
        "milliseconds": None if probes == "exact" else run.references.index_ms(queries, max(RANKS), probes),
    }


def _gain(passive: CopySearch, activated: CopySearch) -> dict[str, Any]:
    """Mean recall over the edits, passive and activated, of the same photos."""
    # Photos that failed to be activated are missing.
    matching = [passive.sources.index(source) for source in activated.sources]
    before, after = passive.correct[matching], activated.correct
    spec, probes = activated.run.codebook.spec, activated.search
    assert isinstance(probes, int)
    return {
        "codebook": activated.run.codebook.name,
        "spec": spec,
        "probes": probes,
        "recipe": activated.recipe,
        "passive": float(np.mean(before)),
        "activated": float(np.mean(after)),
        "interval": gain_interval(before, after),
        "published": published_gain(spec, probes, activated.recipe),
    }


def _gain_cells(gain: Row) -> list[str]:
    low, high = gain["interval"]
    theirs = gain["published"]
    return [
        f"{gain['passive']:.3f}",
        f"{gain['activated']:.3f}",
        f"{gain['activated'] - gain['passive']:+.3f}",
        f"{low:+.3f} to {high:+.3f}",
        "" if theirs is None else f"{theirs[1] - theirs[0]:+.2f}",
    ]


def _index(row: Row) -> str:
    return "none" if row["probes"] == "exact" else str(row["spec"])


def _probes(row: Row) -> str:
    return format_probes(row["probes"], row["failure"] is not None)


def _share(label: str, row: Row) -> str:
    return f"{row['recall'][label]:.2f}"


def _mean_failure(row: Row) -> float | None:
    return None if row["failure"] is None else fmean(row["failure"].values())


def _times(seconds: float, usual: float | None) -> str:
    return "" if usual is None else f"×{seconds / usual:.2f}"


def _published_head(row: Row) -> list[str]:
    return ["SSCD", "none" if row["probes"] == "exact" else row["index"], str(row["probes"])]


def _published_line(row: Row) -> list[str]:
    head = [*_published_head(row), str(row["bytes_per_vector"]), f"{row['search_ms']:g}", row["recipe"]]
    return [*head, *(f"{row['recall'][label]:.2f}" for label in LABELS), f"{row['mean']:.2f}"]


def _published_details(row: Row) -> list[str]:
    usual = next(each["activation_ms"] for each in published()["table"] if each["recipe"] == "paper")
    milliseconds = row.get("activation_ms")
    times = ["", ""] if milliseconds is None else [f"{milliseconds / 1000:.3f}", _times(milliseconds, usual)]
    return [*_published_head(row), row["recipe"], f"{row['mean']:.2f}", *[""] * 8, *times]
