"""What R asks for, done by spectral_irt: a folder with job.json (and data.csv) in, tables as CSV files out.

`run(folder)` is called through reticulate, or as a program: `python engine.py FOLDER`. Only the name of the folder
crosses between the languages, so no version of numpy has to suit both. What is wrong with the input comes back in
error.txt.
"""

import json
import sys
from pathlib import Path

import numpy as np

import spectral_irt as si
from spectral_irt.errors import SpectralIrtError
from spectral_irt.tables import frame_of

MODELS = {
    "rasch": si.SpectralRasch,
    "pcm": si.SpectralPartialCredit,
    "rsm": si.SpectralRatingScale,
    "rsm_cml": si.ConditionalRatingScale,
}


def run(folder: str) -> None:
    place = Path(folder)
    job = json.loads((place / "job.json").read_text(encoding="utf-8"))
    try:
        JOBS[job["do"]](job, place)
    except (SpectralIrtError, ValueError, OSError) as error:
        (place / "error.txt").write_text(str(error), encoding="utf-8")


def read_data(job, place):
    """The responses, as R wrote them."""
    columns = job.get("columns", {})
    ordered = job["model"] != "rasch"
    source = str(place / "data.csv")
    if columns.get("facets"):
        given = {"person": columns["person"], "item": columns.get("item"), "response": columns.get("response")}
        return si.read(source, facets=columns["facets"], ordered=ordered, **{k: v for k, v in given.items() if v})
    return si.read(
        source,
        format="wide",
        person=".person",
        items=columns["items"],
        people=columns.get("people", []),
        ordered=ordered or None,
    )


def analysis_of(job, place):
    responses = read_data(job, place)
    model = MODELS[job["model"]]
    if job.get("anchors"):
        if job["model"].startswith("rsm"):
            raise SpectralIrtError("anchors are for rasch() and pcm().")
        estimator = si.AnchoredRasch(job["anchors"])
    else:
        estimator = model(**job.get("settings", {}))
    fit = estimator.fit(responses)
    return fit.analyse(responses)


def do_fit(job, place):
    study = analysis_of(job, place)
    for name, columns in study.tables().items():
        frame_of(columns).write_csv(place / f"{name}.csv")
    summary = {
        "version": si.__version__,
        "persons": study.responses.n_persons,
        "items": study.responses.n_items,
        "responses": study.responses.n_responses,
        "text": study.summary(),
        "findings": [finding.to_dict() for finding in study.findings()],
        "facets": list(study.facets),
    }
    if not study.facets:
        write_covariance(study, place)
        if study.calibration.known.all():
            likelihood = study.likelihood()
            summary["loglik"] = {
                "value": likelihood.loglik,
                "df": likelihood.n_parameters,
                "nobs": likelihood.n_persons,
            }
        reliability = study.reliability()
        summary["reliability"] = {"eap": reliability.eap_reliability, "psi": reliability.persons.reliability}
    (place / "summary.json").write_text(json.dumps(summary, default=plain), encoding="utf-8")


def write_covariance(study, place):
    """Covariances of the thresholds, item after item, with their names."""
    covariance = study.threshold_covariance()
    if covariance is None:
        return
    layout = study.calibration.layout
    labels = [str(label) for label in study.calibration.labels]
    names = []
    for label, n_thresholds in zip(labels, layout.max_score, strict=True):
        names += [label] if layout.binary else [f"{label}.{k}" for k in range(1, n_thresholds + 1)]
    frame_of({name: covariance[:, k] for k, name in enumerate(names)}).write_csv(place / "vcov.csv")


def do_dif(job, place):
    compared = analysis_of(job, place).dif(job["group"])
    compared.table().write_csv(place / "dif.csv")
    record = {"statistic": compared.test.statistic, "df": compared.test.df, "p": compared.test.p}
    record["findings"] = [finding.to_dict() for finding in compared.findings]
    (place / "summary.json").write_text(json.dumps(record, default=plain), encoding="utf-8")


def do_predict(job, place):
    """Abilities of new persons at the difficulties of the fit."""
    study = analysis_of(job, place)
    new = si.read(
        str(place / "new.csv"),
        format="wide",
        person=".person",
        items=job["new_items"],
        ordered=(job["model"] != "rasch") or None,
    )
    frame_of(si.Analysis(study.calibration, new).tables(every=False)["persons"]).write_csv(place / "persons.csv")


def do_report(job, place):
    analysis_of(job, place).report(job["path"], title=job.get("title"), author=job.get("author"))


def do_read(job, place):
    """A file of any kind that spectral_irt reads, as a table with a row for each person."""
    responses = si.read(job["path"], **job.get("options", {}))
    table = np.full((responses.n_persons, responses.n_items), np.nan)
    person, item, category = responses.answers()
    table[person, item] = category
    columns = {".person": np.asarray(responses.persons).astype(str).astype(object)}
    columns |= {str(label): table[:, k] for k, label in enumerate(responses.items)}
    frame_of(columns).write_csv(place / "table.csv")


def plain(value):
    if isinstance(value, np.generic):
        return value.item()
    return value.tolist() if isinstance(value, np.ndarray) else str(value)


JOBS = {"fit": do_fit, "dif": do_dif, "predict": do_predict, "report": do_report, "read": do_read}

if __name__ == "__main__":
    run(sys.argv[1])
