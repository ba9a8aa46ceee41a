"""Anchors from files of Winsteps and from results of a fit: the same numbers as from the calibration they come from."""

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt import Responses, simulate
from spectral_irt.bank.anchors import anchored_to, as_anchors
from spectral_irt.bank.export import ifile, winsteps_text
from spectral_irt.bank.results_folder import calibration_in
from spectral_irt.errors import OptionError, ReadError

# As Winsteps writes it: remarks and heads, items without a proper measure as remarks, names with blanks.
IFILE = """\
; ITEM MEASURES FOR EXAM.CON Nov 18 2025 10:11
;ENTRY MEASURE ST  COUNT    SCORE MODLSE IN.MSQ IN.ZSTD OUT.MSQ OUT.ZSTD DISPLACE  PTMA WEIGHT OBSMA EXPMA PTMAE  RMSR   WMLE G M R NAME
     1    -.85  1  800.0    430.0    .08   1.02     .61    1.04      .88      .00   .43   1.00  69.0  70.3   .44   .44   -.85 1 R . M001
     2    1.93  2  800.0    123.0    .10    .95    -.80     .90     -.95     -.12   .40   1.00  85.0  84.9   .38   .33   1.93 1 R . long name
;    3   -6.10 -1  800.0    800.0   1.84   1.00     .00    1.00      .00      .00   .00   1.00 100.0 100.0   .00   .00  -6.10 1 R . M003
     4     .27  1  800.0    390.0    .08   1.00     .03    1.01      .20      .00   .44   1.00  68.0  70.5   .44   .45    .27 1 R . M004
"""  # noqa: E501
CONTROL = """\
&INST
TITLE = "Exam" ; a remark
ITEM1 = 1
NI = 4
NAME1 = 6
IAFILE = * ; anchors
1 -0.85 ; as last year
3-4 0,5
*
PDFILE=*
2
*
&END ; labels follow
M001 ; Item 1 : 1-1
M002
M003
M004
END NAMES
1010 Ann
"""
BLOCK = "IAFILE = * ; anchors\n1 -0.85 ; as last year\n3-4 0,5\n*\n"


def data(items=("M001", "M002", "M003", "M004", "long name"), seed=3):
    dense = simulate.rasch(300, len(items), seed=seed).responses.to_dense()
    return Responses.from_wide(dense, items=list(items))


def values(anchors):
    return dict(zip(anchors.items.tolist(), anchors.thresholds.tolist(), strict=True))


def written(folder, text, name="file.txt"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_an_ifile_as_winsteps_writes_it(tmp_path):
    anchors = as_anchors(written(tmp_path, IFILE))
    assert values(anchors) == {"M001": -0.85, "long name": 1.93, "M004": 0.27}
    assert anchors.se.tolist() == [0.08, 0.10, 0.08]
    assert anchors.errors is not None
    shifted = "\n".join(line if line.startswith(";") else f" {line}" for line in IFILE.splitlines())
    assert values(as_anchors(written(tmp_path, shifted))) == values(anchors)
    fit = si.AnchoredRasch(tmp_path / "file.txt").fit(data())
    assert fit.anchored_.tolist() == [True, False, False, True, True]


@pytest.mark.parametrize("style", ["fixed", "tab", "csv"])
def test_a_line_of_an_ifile_that_was_cut_is_refused_wherever_that_is(tmp_path, style):
    """Without its name an item would be taken by its entry number, which is no label of this file."""
    *whole, last = IFILE.splitlines()
    ends = range(6, last.index("M004"))
    if style != "fixed":
        sign = {"tab": "\t", "csv": ","}[style]
        whole = [sign.join(line.split(None, 21)) for line in whole if not line.startswith("; ")]
        last = sign.join(last.split())
        ends = range(1, last.index("M004"))
    for end in ends:
        path = written(tmp_path, "\n".join([*whole, last[:end]]) + "\n")
        with pytest.raises(ReadError, match=f"line {len(whole) + 1}: ends before the name"):
            as_anchors(path)


def test_an_ifile_without_names_has_entry_numbers(tmp_path):
    without = [
        line.replace("NAME", "") if line[0] == ";" else line[: line.index(" R . ") + 4] for line in IFILE.splitlines()
    ]
    assert values(as_anchors(written(tmp_path, "\n".join(without)))) == {"1": -0.85, "2": 1.93, "4": 0.27}


@pytest.mark.parametrize(("style", "name"), [("fixed", "i.txt"), ("csv", "i.csv"), ("tab", "i.tsv")])
@pytest.mark.parametrize("with_fit", [False, True])
def test_our_own_ifile(tmp_path, style, name, with_fit):
    responses = data(["M001", "a, b", "=1", "q 4"])
    study = si.SpectralRasch().fit(responses).analyse(responses)
    fit = study.tables()["item_fit"] if with_fit else None
    made = study.calibration
    path = written(tmp_path, winsteps_text(ifile(made, fit), style, title="exam"), name)
    anchors = as_anchors(path)
    assert anchors.items.tolist() == made.labels.tolist()
    np.testing.assert_allclose(anchors.thresholds, made.difficulty, atol=0.0051 if style == "fixed" else 5.1e-5)
    np.testing.assert_allclose(anchors.se, made.se, atol=0.0051 if style == "fixed" else 5.1e-5)


def test_a_control_file(tmp_path):
    anchors = as_anchors(written(tmp_path, CONTROL, "exam.con"))
    assert values(anchors) == {"M001": -0.85, "M003": 0.5, "M004": 0.5}
    assert anchors.scale.is_logits
    other = CONTROL.replace(
        "IAFILE = * ; anchors\n1 -0.85 ; as last year\n3-4 0,5\n*\n", "iafile=anchors.txt\nUSCALE=10\n"
    )
    written(tmp_path, "; last year\n1 -8.5\n4\t2.5\n", "anchors.txt")
    anchors = as_anchors(written(tmp_path, other, "exam.con"))
    assert values(anchors) == {"M001": -0.85, "M004": 0.25}
    assert (anchors.scale.mean, anchors.scale.unit) == (0, 10)  # measures are reported as they were given
    written(tmp_path, IFILE, "anchors.txt")
    assert set(values(as_anchors(tmp_path / "exam.con"))) == {"M001", "long name", "M004"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("; remarks\n1 -.85\n\n2  0.5 ; harder\n", {"M001": -0.85, "M002": 0.5}),
        ("1,-0.85\n2,0.5\n", {"M001": -0.85, "M002": 0.5}),
        ("1\t-0,85\n3-4\t0,5\n", {"M001": -0.85, "M003": 0.5, "M004": 0.5}),
        ("M001 -0.85\nM002=0.5\n", {"M001": -0.85, "M002": 0.5}),
        ('"long name" 1.5\nM002 0.5\n', {"long name": 1.5, "M002": 0.5}),
        ("Item;Difficulty\nM001;-0,85\nM002;0,5\n", {"M001": -0.85, "M002": 0.5}),
        ("ITEM\tDIFFICULTY\tSE\nM001\t-0.85\t.1\n", {"M001": -0.85}),
    ],
)
def test_an_iafile_and_tables(tmp_path, text, expected):
    responses = data()
    fit = si.SpectralRasch().fit(responses, anchors=written(tmp_path, text, "file.csv"))
    found = dict(
        zip(responses.items[fit.calibration_.anchored], fit.difficulty_[fit.calibration_.anchored], strict=True)
    )
    assert found == expected
    by_entry = [finding for finding in fit.findings_ if finding.code == "anchors_by_entry"]
    assert len(by_entry) == ("M00" not in text)


def test_entry_numbers_are_labels_where_the_data_have_such(tmp_path):
    responses = data(["4", "3", "2", "1"])
    fit = si.SpectralRasch().fit(responses, anchors=written(tmp_path, "1 0.5\n2 -0.5\n"))
    assert fit.calibration_.anchored.tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 0.5\n2 high\n", "line 2: '2 high' is not the entry number"),
        ("M001 0.5\nM002 1 2\n", "line 2: 'M002 1 2'"),
        (CONTROL.replace("3-4 0,5", "3-9 0,5"), "line 8: there is no item 3-9; after &END stand 4 labels"),
        (CONTROL.replace("3-4 0,5", "gone"), "line 8: 'gone'"),
        (CONTROL.replace("IAFILE = * ;", "XFILE = *;"), "has no IAFILE="),
        (CONTROL.replace("PDFILE", "SAFILE"), "SAFILE= are not read"),
        (CONTROL.replace("NAME1 = 6", "USCALE = ten"), "'ten', no number above zero"),
        (
            CONTROL.replace("IAFILE = * ; anchors\n1 -0.85 ; as last year\n3-4 0,5\n*", "IAFILE=gone.txt"),
            "there is no file",
        ),
        ("&INST\nIAFILE=file.txt\n&END\n", "is no IAFILE="),  # itself
        ("1-2000000000 0.5\n", "line 1: 1-2000000000 is no range of items"),
        ("5-3 0.5\n", "line 1: 5-3 is no range of items"),
        (IFILE.replace("    -.85  1", "     abc  1"), "row 3: the measure of item 'M001' is 'abc', no number"),
        ("1 0.5\n9 0.2\n", "entry numbers '9'"),
        ("1 500\n2 480\n", "beyond 20 logits"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(tmp_path, text, message):
    with pytest.raises((ReadError, OptionError)) as error:
        si.SpectralRasch().fit(data(), anchors=written(tmp_path, text))
    assert message in str(error.value)


def test_results_of_a_fit_with_their_scale(tmp_path):
    responses = data()
    study = si.SpectralRasch().fit(responses).analyse(responses).rescale(500, 100)
    study.write(tmp_path / "results")
    for place in ("results", "results/fit.json", "results/items.csv"):
        anchors = as_anchors(tmp_path / place)
        np.testing.assert_allclose(anchors.thresholds, study.calibration.difficulty, atol=1e-12)
        assert anchors.scale == study.calibration.scale
        assert anchors.errors is not None
    (tmp_path / "results" / "items.csv").rename(tmp_path / "items.csv")
    assert as_anchors(tmp_path / "items.csv").scale.is_logits
    with pytest.raises(ReadError, match="does not hold the results of a fit"):
        as_anchors(tmp_path / "results")


@pytest.mark.parametrize("by", ["persons", "items", "formula"])
def test_results_on_any_scale_are_anchors_and_are_exported(tmp_path, by):
    responses = data()
    study = si.SpectralRasch().fit(responses).analyse(responses).rescale(500, 100, by=by)
    study.write(tmp_path / "results")
    assert as_anchors(tmp_path / "results").scale == study.calibration.scale
    calibration, _ = calibration_in(tmp_path / "results", "catsim")
    assert calibration.scale == study.calibration.scale
    record = tmp_path / "results" / "fit.json"
    record.write_text(record.read_text().replace('"unit": ', '"unit": -'))
    with pytest.raises(ReadError, match="units per logit"):
        calibration_in(tmp_path / "results", "catsim")


def test_results_of_ordered_answers_whose_codes_begin_with_1(tmp_path):
    rows = simulate.partial_credit(400, 6, categories=4, seed=2).responses.to_dense() + 1
    responses = Responses.from_wide(rows, ordered=True)
    study = si.SpectralPartialCredit().fit(responses).analyse(responses)
    study.write(tmp_path / "results")
    again, anchors = anchored_to(responses, tmp_path / "results")
    fit = si.SpectralPartialCredit().fit(again, anchors=anchors)
    np.testing.assert_allclose(fit.thresholds_, study.calibration.thresholds, atol=1e-12)
    assert again.category_codes()[0].tolist() == [1, 2, 3, 4]


def test_one_difficulty_is_no_anchor_of_an_item_with_several_thresholds(tmp_path):
    """Of an IFILE= with a partial credit item: its measure says nothing of thresholds; set free, it is estimated."""
    dense = simulate.partial_credit(300, 3, categories=3, seed=3).responses.to_dense()
    dense = np.hstack([dense[:, :1], np.minimum(dense[:, 1:], 1)])
    responses = Responses.from_wide(dense, items=["M001", "M004", "new"], ordered=True)
    place = written(tmp_path, IFILE)
    said = r"one difficulty for 'M001', which has more than two categories in the data.*or estimate .*: `free='M001'`"
    with pytest.raises(OptionError, match=said):
        anchored_to(responses, place)
    aligned, anchors = anchored_to(responses, place, ["M001"])
    fit = si.AnchoredRasch(anchors, free=["M001"]).fit(aligned)
    assert dict(zip(fit.items()["item"], fit.items()["status"], strict=True)) == {
        "M001": "ok",
        "M004": "anchored",
        "new": "ok",
    }
    assert fit.difficulty_[1] == 0.27
