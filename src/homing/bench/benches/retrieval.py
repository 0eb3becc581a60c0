"""The retrieval bench: recall of edited copies of photos released with several recipes, among distractors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from homing._options import setting
from homing.bench.base import PASSIVE, PROBES_OPTION, RECIPES_OPTION, CopySettings, IndexSettings
from homing.bench.codebook_bench import CodebookBench
from homing.bench.figures import Figure, share_bars
from homing.bench.references import Probes, describe_probes, format_probes
from homing.bench.runs import LABELS, CodebookRun, CopySearch, ReleaseResult, network, recall_shares
from homing.bench.scores import (
    gain_interval,
    ivf_failure,
    published,
    published_gain,
    published_recall,
    recall_at,
    recall_columns,
    recall_intervals,
)
from homing.bench.tables import Columns, Row, Table, by_label, fixed, number, transposed, with_interval
from homing.edits import WILD
from homing.objectives import has_objective

RANKS = (1, 10, 100)
_OF_SET = {"paper": "", "wild": ", of edits that people make", "others": ", of other edits"}
_PUBLISHED_TIMES = (
    " Rows named SSCD are as published: measured on a GPU, for the loop alone; ours includes reading, writing and "
    "measuring the file."
)


@dataclass(frozen=True, kw_only=True)
class RetrievalSettings(CopySettings, IndexSettings):
    """Recipes, edits, and probes of a search."""

    probes: Sequence[Probes] = setting(PROBES_OPTION, (1, 16, "exact"))
    recipes: Sequence[str] = setting(RECIPES_OPTION, (PASSIVE, "paper"))


class RetrievalBench(CodebookBench[None]):
    """Measure how many edited copies are found: photos are released, edited and searched for.

    Run the same command again to resume it: descriptors and released files stay in the out folder.

    Examples:

        homing bench retrieval --photos held-out/ --out retrieval/

        homing bench retrieval --photos held-out/ --distractor-photos others/ --distractors 100000 --out retrieval/
    """

    title = "Recall of edited copies"
    what = "Recall at rank 1"
    settings_class = RetrievalSettings
    settings: RetrievalSettings

    def measure_codebook(self, run: CodebookRun) -> None:
        """Search for the copies of each recipe's files, with each number of probes."""
        for recipe in run.supported_recipes(self.settings.recipes):
            released = run.release(recipe)
            copies = run.copies(released.files, self.settings.edits, recipe, surroundings=self.settings.pictures)
            for probes in run.probes(self.settings.probes):
                found = run.search(copies, max(RANKS), probes, recipe)
                search = run.copy_search(released, self.settings.edits, found, probes)
                self.searches.append(search)
                self.rows.append(_row(search, released, copies, probes))

    def facts(self) -> Mapping[str, object]:
        """Edits, recipes and probes."""
        settings = self.settings
        around = {"surroundings": str(settings.surroundings)} if settings.surroundings else {}
        return {"edits": settings.labels, **around, "recipes": settings.recipes, "probes": settings.probes}

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
        recalls = [self._table(name, labels) for name, labels in _by_set(self.settings.labels).items()]
        return [*recalls, *([gains] if gains.rows else []), self._details()]

    def terminal(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Gains for several codebooks; for one codebook, a row for each edit."""
        gains = self._gains_table()
        if len(self.runs) > 1 and gains.rows:
            return gains.headings, gains.rows
        sets = _by_set(self.settings.labels)
        columns = {
            **by_label("recall", self.settings.labels, 2),
            **({f"mean, {name}": _set_mean(name) for name in sets} if len(sets) > 1 else {}),
            "mean": number("mean", 3),
            "95 % from": lambda row: f"{row['mean_interval'].low:.3f}",
            "95 % to": lambda row: f"{row['mean_interval'].high:.3f}",
            "PSNR, dB": number("psnr", 1),
        }
        named = [f"{row['codebook']},\n{row['recipe']},\n{_describe_probes(row)}" for row in self.rows]
        return ["edit", *named], transposed(self.rows, columns)

    def _comparable(self) -> list[dict[str, Any]]:
        """Published rows with the same recipes and numbers of probes."""
        if self.settings.labels != LABELS:
            return []  # means over other edits
        wanted = {(row["recipe"], row["probes"]) for row in self.rows}
        return [row for row in published()["table"] if (row["recipe"], row["probes"]) in wanted]

    def _table(self, name: str, labels: Sequence[str]) -> Table:
        """The paper's first table for one set of edits: measured rows, then published ones."""
        columns: Columns = {
            "network": network,
            "index": _index,
            "probes": _probes,
            "bytes": "bytes_per_vector",
            "ms": lambda row: fixed(row["milliseconds"] and row["milliseconds"].homing, 2),
            "recipe": "recipe",
            **by_label("recall", labels, 2),
            "mean": _set_mean(name),
        }
        theirs = [
            {
                **_published_columns(row),
                "bytes": str(row["bytes_per_vector"]),
                "ms": f"{row['search_ms']:g}",
                **published_recall(row),
            }
            for row in self._comparable()
        ]
        caption = f"Recall at rank 1 by edit{_OF_SET[name]}."
        if theirs:
            caption += (
                " Rows named SSCD are as published (Fernandez et al., 2023): 10,000 photos among a million references."
            )
        return Table.of("table" if name == "paper" else f"table_{name}", caption, columns, self.rows, published=theirs)

    def _details(self) -> Table:
        """Further figures, among them the time per photo, by which the paper's appendix compares recipes."""
        usual = {
            (row["codebook"], row["probes"]): row["seconds_per_photo"] for row in self.rows if row["recipe"] == "paper"
        }

        def relative(row: Row) -> str:
            of_paper = usual.get((row["codebook"], row["probes"]))
            return f"×{row['seconds_per_photo'] / of_paper:.2f}" if row["activated"] and of_paper else ""

        sets = _by_set(self.settings.labels)
        columns: Columns = {
            "network": network,
            "index": _index,
            "probes": _probes,
            "recipe": "recipe",
            **({f"mean, {name}": _set_interval(name) for name in sets} if len(sets) > 1 else {}),
            "mean, 95 % interval": lambda row: with_interval(row["mean"], row["mean_interval"]),
            "at 10": lambda row: f"{row['recall_at'][10]:.3f}",
            "at 100": lambda row: f"{row['recall_at'][100]:.3f}",
            "p_f": lambda row: (
                "" if row["probes"] == "exact" else fixed(row["failure"] and fmean(row["failure"].values()), 3)
            ),
            "ms, homing": lambda row: fixed(row["milliseconds"] and row["milliseconds"].homing, 3),
            "ms, FAISS": lambda row: fixed(row["milliseconds"] and row["milliseconds"].faiss, 3),
            "PSNR, dB": number("psnr", 1),
            "SSIM": number("ssim", 3),
            "activated": lambda row: f"{row['activated']} of {row['photos']}" if row["activated"] else "",
            "s per photo": lambda row: fixed(row["seconds_per_photo"], 3) if row["activated"] else "",
            "÷ recipe paper": relative,
        }
        ten_steps = next(each["activation_ms"] for each in published()["table"] if each["recipe"] == "paper")
        theirs = []
        for row in self._comparable():
            line, ms = _published_columns(row), row.get("activation_ms")
            theirs.append({**line, "mean, 95 % interval": f"{row['mean']:.2f}"})
            if ms is not None:
                theirs[-1] |= {"s per photo": f"{ms / 1000:.3f}", "÷ recipe paper": f"×{ms / ten_steps:.2f}"}
        return Table.of(
            "details",
            "Means over the edits: recall at rank 1 with its interval, and at ranks 10 and 100; p_f, the share of "
            "copies that fall into another cell than their original; time of one search on one core; quality of the "
            "files as written; time to release a photo, and divided by that of the recipe paper."
            + (_PUBLISHED_TIMES if theirs else ""),
            columns,
            self.rows,
            published=theirs,
        )

    def _gains_table(self) -> Table:
        """A row for each index, recipe and number of probes; an index without support for activation has no gain."""
        runs, rows = {run.codebook.name: run for run in self.runs}, []
        for name, run in runs.items():
            rows += [gain for gain in self.gains if gain["codebook"] == name]
            if not has_objective(run.codebook):
                passive = [row for row in self.rows if row["codebook"] == name and row["probes"] != "exact"]
                same = ("codebook", "spec", "probes", "recipe")
                rows += [{**{key: row[key] for key in same}, "passive": row["mean"]} for row in passive]
        columns: Columns = {
            "network": lambda row: Path(runs[row["codebook"]].codebook.extractor).name,
            "index": "spec",
            "probes": lambda row: format_probes(row["probes"], self.has_cells[row["codebook"]]),
            "bytes": lambda row: str(runs[row["codebook"]].references.bytes_per_vector),
            "recipe": "recipe",
            "passive": number("passive", 3),
            "activated": lambda row: fixed(row.get("activated"), 3),
            "gain": lambda row: f"{row['activated'] - row['passive']:+.3f}" if "activated" in row else "not supported",
            "95 %": lambda row: "{:+.3f} to {:+.3f}".format(*row["interval"]) if "interval" in row else "",
            "paper's gain": lambda row: f"{theirs[1] - theirs[0]:+.2f}" if (theirs := row.get("published")) else "",
        }
        return Table.of(
            "gains",
            "Mean recall at rank 1 over the edits, passive and activated; the gain with its interval (a bootstrap over "
            "photos); and the gain that the paper reports for the same index.",
            columns,
            rows,
        )

    def figures(self) -> list[Figure]:
        """Recall by edit with intervals, of the first codebook and number of probes."""
        first = self.rows[0]
        rows = [row for row in self.rows if (row["codebook"], row["probes"]) == (first["codebook"], first["probes"])]
        shares = {row["recipe"]: recall_shares(row) for row in rows}
        caption = f"Recall by edit with 95 % intervals, {first['codebook']}, {_describe_probes(first)}."
        return [share_bars("recall", caption, self.settings.labels, shares, "recall at rank 1")]


def _row(search: CopySearch, released: ReleaseResult, copies: np.ndarray, probes: Probes) -> Row:
    """Recall by edit at rank 1, and its mean at each rank.

    `failure` is the share of copies that fall into another cell; None for a codebook without cells.
    """
    run, ranks = search.run, search.ranks
    queries = copies.reshape(-1, copies.shape[2])
    cells = run.cells(queries).reshape(ranks.shape)
    failure = ivf_failure(run.cells(run.descriptors)[run.true_ids(released.files)], cells)
    return {
        **run.columns(search.recipe),
        "probes": probes,
        **recall_columns(search.labels, search.correct),
        "sets": {
            name: {
                "mean": float(search.correct[:, columns].mean()),
                "interval": recall_intervals(search.correct[:, columns]).mean,
            }
            for name, labels in _by_set(search.labels).items()
            for columns in [[search.labels.index(label) for label in labels]]
        },
        "recall_at": {k: recall_at(ranks.ravel(), k) for k in RANKS},
        "recall_at_interval": {k: recall_intervals((ranks >= 0) & (ranks < k)).mean for k in RANKS},
        "failure": dict(zip(search.labels, failure.tolist(), strict=True)) if run.codebook.has_cells else None,
        **released.columns(),
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
        "published": published_gain(spec, probes, activated.recipe) if activated.labels == LABELS else None,
    }


def _by_set(labels: Sequence[str]) -> dict[str, list[str]]:
    """The labels of the paper's edits, of the set wild, and others, where there are any."""
    wild = [edit.label for edit in WILD]
    found: dict[str, list[str]] = {}
    for label in labels:
        found.setdefault("paper" if label in LABELS else "wild" if label in wild else "others", []).append(label)
    return found


def _set_interval(name: str) -> Callable[[Row], str]:
    return lambda row: with_interval(row["sets"][name]["mean"], row["sets"][name]["interval"])


def _set_mean(name: str) -> Callable[[Row], str]:
    return lambda row: fixed(row["sets"][name]["mean"], 3)


def _index(row: Row) -> str:
    return "none" if row["probes"] == "exact" else str(row["spec"])


def _probes(row: Row) -> str:
    return format_probes(row["probes"], row["failure"] is not None)


def _describe_probes(row: Row) -> str:
    return describe_probes(row["probes"], row["failure"] is not None)


def _published_columns(row: Row) -> dict[str, str]:
    """What the published lines of all tables have."""
    index = "none" if row["probes"] == "exact" else row["index"]
    return {"network": "SSCD", "index": index, "probes": str(row["probes"]), "recipe": row["recipe"]}
