"""Options of `fit` that do not go together, could only fail after the work, or would do nothing.

A rule gets all options and gives a sentence where they break it, or None; `FitJob.check` raises the first. What is
wrong with a single option is said where it is declared (`fit_options.py`, `options.py`, `move_options.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from spectral_irt.cli.fit_options import IDLE_SEED, TREE_OPTIONS, Method, Results
from spectral_irt.cli.options import Answers, is_called_a_file, options_in_use
from spectral_irt.persons_file import is_persons_file
from spectral_irt.xlsx import is_workbook


class FitOptions(NamedTuple):
    """All options of a fit; the columns about people that they name; whether a bank is to give anchors
    without the items to be freed, and to be written with them."""

    reading: Answers
    method: Method
    results: Results
    columns: list[str]
    frees_items_of_its_bank: bool

    @property
    def without_persons(self) -> bool:
        return self.results.skip.get("persons") is False

    @property
    def without_fit(self) -> bool:
        return self.results.skip.get("fit") is False

    @property
    def skip_option(self) -> str:
        """The `--skip` that is in the way."""
        return "--skip persons" if self.without_persons else "--skip fit"


Rule = Callable[[FitOptions], "str | None"]


def refusals(options: FitOptions) -> Iterator[str]:
    """What is wrong with the options together, a sentence for each rule that they break."""
    for rule in RULES:
        sentence = rule(options)
        if sentence is not None:
            yield sentence


def _flags_in_use(flags: Mapping[str, Any]) -> str:
    """The flags that were given, as "a, b or c"; "" where none was."""
    in_use = [flag for flag, value in flags.items() if value]
    return " or ".join([*filter(None, [", ".join(in_use[:-1])]), *in_use[-1:]])


def seed_is_used(options: FitOptions) -> str | None:
    results = options.results
    if results.seed is None or results.ability[0] == "pv" or results.hold_out is not None or results.dif_tree:
        return None
    return IDLE_SEED


def tree_has_columns(options: FitOptions) -> str | None:
    idle = [f"--{name.replace('_', '-')}" for name in options_in_use(options.results) if name in TREE_OPTIONS]
    if idle and not options.results.dif_tree:
        return f"{', '.join(idle)} goes with --dif-tree; name its columns, or leave it out."
    return None


def free_needs_anchors(options: FitOptions) -> str | None:
    if options.results.free and options.results.anchors is None:
        return "--free names anchors that are to be estimated; say which anchors with --anchors."
    return None


def free_items_leave_the_bank(options: FitOptions) -> str | None:
    if options.frees_items_of_its_bank:
        return (
            "--free estimates items that the bank has at another difficulty; keep the new calibration as another bank "
            "(--bank OTHER)."
        )
    return None


def ratings_go_with(options: FitOptions) -> str | None:
    """What is not built for ratings."""
    results = options.results
    method = options.method
    if not method.facet:
        return None
    other_estimator = method.estimator != "spectral" and method.design != "adaptive"
    unfit = _flags_in_use(
        {
            "--bank": results.bank,
            "--anchors": results.anchors,
            "--rank": results.rank[0],
            "--critical": results.critical[0],
            "--subset": results.subset,
            "--clustered-by": method.clustered_by,
            "--form": results.form,
            "--design adaptive": method.design == "adaptive",
            "--item-covariates": results.item_covariates,
            "--dif-tree": results.dif_tree,
            f"--estimator {method.estimator}": other_estimator,
        }
    )
    if not unfit:
        return None
    refusal = f"--facet does not go with {unfit} yet; leave out one of them."
    if results.anchors is not None:
        refusal += " In Python known severities are anchored by design=LinearDesign(anchors={'rater': {...}})."
    return refusal


def change_goes_with(options: FitOptions) -> str | None:
    """What is not built for waves."""
    results = options.results
    method = options.method
    if not (method.wave or method.waves):
        idle = _flags_in_use({"--arm": method.arm, "--each-item": method.each_item})
        if not idle:
            return None
        return f"{idle} would do nothing without --wave or --waves; name the waves."
    if len(method.wave) + bool(method.waves) > 1:
        return "--wave and --waves say the same of a long and of a wide table; give one of them, with one column."
    unfit = _flags_in_use(
        {
            "--facet": method.facet,
            "--key": options.reading.key,
            "--bank": results.bank,
            "--anchors": results.anchors,
            "--rank": results.rank[0],
            "--form": results.form,
            "--group-file": results.group_file,
            "--pupil-pages": results.pupil_pages,
            "--clustered-by": method.clustered_by,
            "--survey-weight": method.survey_weight,
            "--population-by": method.population_by,
            "--item-covariates": results.item_covariates,
            "--design adaptive": method.design == "adaptive",
            f"--estimator {method.estimator}": method.estimator != "spectral" and method.design != "adaptive",
            "--set": method.set,
            "--hold-out": results.hold_out,
            "options that change items or persons (--drop, --split, ...)": results.has_moves,
        }
    )
    flag = "--waves" if method.waves else "--wave"
    if not unfit:
        return None
    return f"{flag} does not go with {unfit} yet; leave out one of them."


def covariates_go_with(options: FitOptions) -> str | None:
    if options.results.item_covariates is None:
        return None
    unfit = _flags_in_use(
        {
            "--model rsm": options.reading.model == "rsm",
            "--design adaptive": options.method.design == "adaptive",
            "--survey-weight": options.method.survey_weight,
            "--clustered-by": options.method.clustered_by,
        }
    )
    if not unfit:
        return None
    return f"--item-covariates does not go with {unfit}; leave out one of them."


def ratings_are_about_people(options: FitOptions) -> str | None:
    if options.method.facet and (options.without_fit or options.without_persons):
        return "--facet is about people and ratings; leave out --skip."
    return None


def cuts_are_about_people(options: FitOptions) -> str | None:
    if options.results.cut[0] and options.without_persons:
        return "--cut is about people; leave out --skip persons."
    return None


def plots_show_people_and_fit(options: FitOptions) -> str | None:
    if options.results.plots and (options.without_persons or options.without_fit):
        return f"--plots shows people and item fit; leave out {options.skip_option}."
    return None


def pupil_pages_show_people(options: FitOptions) -> str | None:
    if not options.results.pupil_pages:
        return None
    in_the_way = ""
    if options.method.facet:
        in_the_way = "--facet"
    elif options.without_persons:
        in_the_way = options.skip_option
    if not in_the_way:
        return None
    return f"--pupil-pages shows the measures of single persons; leave out {in_the_way}."


def pages_are_two_files(options: FitOptions) -> str | None:
    report = options.results.report
    if report and report == options.results.pupil_pages:
        return "--report and --pupil-pages name one file; choose two."
    return None


def listed_persons_have_a_report(options: FitOptions) -> str | None:
    if not options.results.list_persons:
        return None
    if options.results.report is None:
        return "--list-persons lists people in a report; say where with --report FILE."
    if options.without_persons:
        return "--list-persons lists people in a report; leave out --skip persons."
    return None


def draws_and_subsets_are_about_fit(options: FitOptions) -> str | None:
    asked = _flags_in_use({"--critical": options.results.critical[0], "--subset": options.results.subset})
    if not asked:
        return None
    if options.without_fit:
        return f"{asked} is about the fit of items; leave out --skip fit."
    if options.method.design == "adaptive":
        return f"{asked} is about tests given the scores; leave out --design adaptive."
    return None


def title_has_a_page(options: FitOptions) -> str | None:
    results = options.results
    title_is_idle = results.title and results.pupil_pages is None
    if results.report is None and (results.author or title_is_idle):
        return "--title and --author are for a report; say where with --report FILE."
    if results.report is None and results.checklist:
        return "--checklist is for a report; say where with --report FILE."
    return None


def output_is_a_folder(options: FitOptions) -> str | None:
    output = options.results.output
    if output is not None and is_called_a_file(output):
        return (
            "-o names a folder, a workbook that ends in .xlsx, or a file of SPSS or Stata with the persons (.sav, "
            f".dta), and is {str(output)!r}."
        )
    return None


def persons_file_has_persons(options: FitOptions) -> str | None:
    results = options.results
    if results.output is None or not is_persons_file(results.output):
        return None
    if options.without_persons:
        return f"-o {results.output} has the persons; leave out --skip persons."
    idle = _flags_in_use({"--all": results.every_table, "--rank": results.rank[0], "--parquet": results.parquet})
    if idle:
        return f"-o {results.output} has the persons only; for {idle} name a folder with -o DIR."
    return None


def ranking_is_written(options: FitOptions) -> str | None:
    if options.results.rank[0] and options.results.output is None:
        return "--rank writes a table beside items.csv; say where with -o DIR."
    return None


def ranking_by_bounds_has_errors(options: FitOptions) -> str | None:
    if options.results.rank[1] == "lower" and options.method.set.get("se") == "none":
        return "--rank K:lower needs standard errors; leave out --set se=none."
    return None


def scale_is_written(options: FitOptions) -> str | None:
    results = options.results
    shows_scale = (
        results.output or results.report or results.pupil_pages or results.bank or results.cut[0] or results.dry_run
    )
    if results.scale and not shows_scale:
        return "--scale is for what is written: -o DIR, --report or --bank."
    return None


def ability_is_about_people(options: FitOptions) -> str | None:
    if options.results.ability[0] != "wle" and options.without_persons and options.results.scale is None:
        return "--ability is about people; leave it out, or leave out --skip persons."
    return None


def parquet_is_a_folder(options: FitOptions) -> str | None:
    output = options.results.output
    if not options.results.parquet:
        return None
    if output is None:
        return "--parquet is about the tables that -o DIR writes; say where."
    if is_workbook(output):
        return "--parquet writes files to a folder, and -o names a workbook; say -o DIR instead."
    return None


def rows_of_items_name_no_group(options: FitOptions) -> str | None:
    in_rows = options.reading.layout == "items-in-rows"
    if in_rows and options.results.group_file is None and options.columns:
        return "with --layout items-in-rows a column is a person, and no group; use --group-file."
    return None


# The first that is broken is said.
RULES: tuple[Rule, ...] = (
    seed_is_used,
    tree_has_columns,
    free_needs_anchors,
    free_items_leave_the_bank,
    ratings_go_with,
    change_goes_with,
    covariates_go_with,
    ratings_are_about_people,
    cuts_are_about_people,
    plots_show_people_and_fit,
    pupil_pages_show_people,
    pages_are_two_files,
    listed_persons_have_a_report,
    draws_and_subsets_are_about_fit,
    title_has_a_page,
    output_is_a_folder,
    persons_file_has_persons,
    ranking_is_written,
    ranking_by_bounds_has_errors,
    scale_is_written,
    ability_is_about_people,
    parquet_is_a_folder,
    rows_of_items_name_no_group,
)
