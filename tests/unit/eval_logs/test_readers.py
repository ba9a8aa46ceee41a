"""Logs of each harness in small files of its own layout: what is read, and what is refused with which words."""

import json

import numpy as np
import pytest

import harness_logs as make
import spectral_irt as si
from spectral_irt.errors import DuplicateResponseError, OptionError, ReadError, ResponseValueError
from spectral_irt.eval_logs.collect import collect, find_logs
from spectral_irt.reading import text_pieces


def read(*paths, **options):
    files = find_logs(paths)
    assert files is not None
    return collect(files, **options)


def table(found):
    """(model, item) -> 0 or 1."""
    responses = found.responses
    out = {}
    for person, one in enumerate(responses.persons):
        alone = responses.take_persons([person])
        counts, scores = alone.item_counts, alone.item_scores
        out |= {(one, responses.items[k]): int(scores[k]) for k in np.flatnonzero(counts)}
    return out


# ------------------------------------------------------------------------------- lm-evaluation-harness


def test_lm_eval_takes_the_model_from_the_folder(tmp_path):
    make.lm_eval(tmp_path, "org__a", {"acc": [1.0, 0.0, 1.0]})
    make.lm_eval(tmp_path, "org__b", {"acc": [0.0, 0.0, 1.0]})
    found = read(tmp_path)
    assert table(found) == {
        ("org__a", "arc_easy/0"): 1,
        ("org__a", "arc_easy/1"): 0,
        ("org__a", "arc_easy/2"): 1,
        ("org__b", "arc_easy/0"): 0,
        ("org__b", "arc_easy/1"): 0,
        ("org__b", "arc_easy/2"): 1,
    }
    assert found.responses.words == ("models", "prompts")
    assert set(found.attributes["benchmark"]) == {"arc_easy"}


def test_lm_eval_takes_the_models_name_from_the_results_of_the_run(tmp_path):
    path = make.lm_eval(tmp_path, "org__a", {"acc": [1.0]})
    (path.parent / f"results_{make.DATE}.json").write_text(json.dumps({"model_name": "org/a"}))
    assert read(path).responses.persons.tolist() == ["org/a"]


def test_lm_eval_asks_which_metric_and_which_filter(tmp_path):
    path = make.lm_eval(tmp_path, "a", {"acc": [1.0, 0.0], "acc_norm": [0.0, 0.0]})
    with pytest.raises(OptionError, match=r"2 metrics: 'acc', 'acc_norm'.*metric='acc'"):
        read(path)
    assert sum(table(read(path, metric=["acc"])).values()) == 1
    assert sum(table(read(path, metric=["f1", "acc_norm"])).values()) == 0
    with pytest.raises(OptionError, match="no metric 'f1'; it has 'acc', 'acc_norm'"):
        read(path, metric=["f1"])
    path = make.lm_eval(
        tmp_path, "b", {"exact_match": [1, 0]}, task="gsm8k", filters=("strict-match", "flexible-extract")
    )
    with pytest.raises(OptionError, match="2 filters: 'exact_match,strict-match', 'exact_match,flexible-extract'"):
        read(path, metric=["exact_match"])
    assert table(read(path, metric=["exact_match,flexible-extract"])) == {("b", "gsm8k/0"): 1, ("b", "gsm8k/1"): 0}


def test_lm_eval_reads_true_and_false_and_mixed_numbers(tmp_path):
    path = make.lm_eval(tmp_path, "a", {"acc": [True, False, True]})
    assert list(table(read(path)).values()) == [1, 0, 1]
    path = make.lm_eval(tmp_path, "b", {"acc": [1.0, True, 0, None]})
    found = read(path)
    assert list(table(found).values()) == [1, 1, 0]
    assert [note.code for note in found.responses.notes] == ["unscored_samples"]


def test_lm_eval_a_log_cut_off_in_the_middle(tmp_path):
    path = make.lm_eval(tmp_path, "a", {"acc": [1.0, 0.0, 1.0]})
    text = path.read_text()
    path.write_text(text[:-40])
    with pytest.raises(ReadError, match=r"/a/samples_arc_easy.*line 3 is not complete: the file was cut off"):
        read(path)
    path.write_text(text.replace('{"doc_id": 1', '"doc_id": 1'))
    with pytest.raises(ReadError, match="line 2 is not a"):
        read(path)


def test_lm_eval_scores_between_0_and_1(tmp_path):
    path = make.lm_eval(tmp_path, "a", {"f1": [0.25, 0.75, 1.0]})
    with pytest.raises(ResponseValueError, match=r"neither 0 nor 1 for 2 of 3 samples.*threshold=0.5"):
        read(path)
    assert list(table(read(path, threshold=0.5)).values()) == [0, 1, 1]


def test_lm_eval_metrics_of_whole_corpora_are_no_answers(tmp_path):
    path = make.lm_eval(tmp_path, "a", {"bleu": [["a", "b"], ["c", "d"]]})
    with pytest.raises(ReadError, match="'bleu' has a number for each sample"):
        read(path)


def test_a_model_in_two_folders(tmp_path):
    make.lm_eval(tmp_path / "monday", "a", {"acc": [1.0, 1.0]})
    make.lm_eval(tmp_path / "tuesday", "a", {"acc": [0.0, 0.0]})
    with pytest.raises(
        DuplicateResponseError, match=r"a answered 2 samples of arc_easy twice: in '.*monday.*' and in '.*tuesday"
    ):
        read(tmp_path)
    assert list(table(read(tmp_path, duplicates="first")).values()) == [1, 1]
    assert list(table(read(tmp_path, duplicates="last")).values()) == [0, 0]


def test_a_run_appended_to_its_own_file(tmp_path):
    path = make.lm_eval(tmp_path, "a", {"acc": [1.0, 1.0]})
    path.write_text(path.read_text() * 2)
    with pytest.raises(DuplicateResponseError, match="2 samples of arc_easy more than once"):
        read(path)


def test_the_same_prompt_with_two_hashes(tmp_path):
    make.lm_eval(tmp_path, "a", {"acc": [1.0, 0.0, 1.0]}, hashes=["x", "y", "z"])
    make.lm_eval(tmp_path, "b", {"acc": [1.0, 1.0, 0.0]}, hashes=["x", "z", "y"])
    with pytest.raises(
        ReadError, match=r"2 of 3 samples.*another hash.*\(b\) than in.*\(a\).*'arc_easy/1', 'arc_easy/2'"
    ):
        read(tmp_path)


def test_attributes_of_prompts(tmp_path):
    path = make.lm_eval(tmp_path, "a", {"acc": [1.0, 0.0]}, subjects=["law", "art"])
    assert read(path, attributes=["subject"]).attributes["subject"].tolist() == ["law", "art"]
    with pytest.raises(OptionError, match="no field 'topic'; they have 'question', 'subject'"):
        read(path, attributes=["topic"])


def test_any_command_reads_a_log(tmp_path):
    path = make.lm_eval(tmp_path, "a", {"acc": [1.0, 0.0]})
    assert si.read(path).items.tolist() == ["arc_easy/0", "arc_easy/1"]
    path = make.lm_eval(tmp_path, "b", {"acc": [1.0, 0.0], "acc_norm": [0.0, 0.0]})
    with pytest.raises(ReadError, match=r"'acc', 'acc_norm' holds the responses. Say `response="):
        si.read(path)
    assert si.read(path, response="acc_norm").item_scores.sum() == 0


# ------------------------------------------------------------------------------------------ inspect_ai


@pytest.mark.parametrize("kind", ["json", "eval", "zstd"])
def test_inspect_letters_and_epochs(tmp_path, kind):
    if kind == "zstd":
        pytest.importorskip("zstandard")
    samples = [make.inspect_sample(1, "C"), make.inspect_sample(2, "I"), make.inspect_sample(3, "N")]
    samples += [make.inspect_sample(1, "I", epoch=2), make.inspect_sample("x", True)]
    log = make.inspect_log("openai/m", samples)
    path = tmp_path / f"2025-01-01T00-00-00_arc_x.{'json' if kind == 'json' else 'eval'}"
    if kind == "json":
        path.write_text(json.dumps(log, indent=2))
    else:
        make.inspect_eval(path, log, zstd=kind == "zstd")
    found = read(path)
    assert table(found) == {
        ("openai/m", "arc/1"): 1,
        ("openai/m", "arc/2"): 0,
        ("openai/m", "arc/3"): 0,
        ("openai/m", "arc/1#2"): 0,
        ("openai/m", "arc/x"): 1,
    }
    assert len(set(found.prompt)) < len(found.prompt)
    assert found.prompt[found.responses.items.tolist().index("arc/1#2")] == found.prompt[0]


@pytest.mark.parametrize("zstd", [False, True])
def test_inspect_unpacks_no_more_than_memory_holds(tmp_path, zstd, monkeypatch):
    monkeypatch.setattr(text_pieces, "MAX_UNPACKED", 10_000)
    samples = [make.inspect_sample(k, "C", subject="x" * 1000) for k in range(100)]
    path = make.inspect_eval(tmp_path / "a.eval", make.inspect_log("m", samples), zstd=zstd)
    with pytest.raises(ReadError, match=r"a\.eval unpacks to more"):
        read(path)


def test_inspect_partly_right_needs_a_threshold(tmp_path):
    log = make.inspect_log("m", [make.inspect_sample(1, "C"), make.inspect_sample(2, "P")])
    path = make.inspect_eval(tmp_path / "a.eval", log)
    with pytest.raises(ResponseValueError, match=r"instance 0.5.*threshold"):
        read(path)
    assert list(table(read(path, threshold=0.4)).values()) == [1, 1]


def test_inspect_an_unfinished_run_is_read_with_a_word(tmp_path):
    log = make.inspect_log("m", [make.inspect_sample(1, "C"), make.inspect_sample(2, "I")], status="cancelled")
    log["eval"]["dataset"]["sample_ids"] = [1, 2, 3, 4]
    path = tmp_path / "2025-01-01T00-00-00_a.json"
    path.write_text(json.dumps(log))
    found = read(path)
    assert len(table(found)) == 2
    (note,) = found.responses.notes
    assert note.code == "unfinished_run"
    assert "2 of 4 samples" in note.sentence
    stopped = make.inspect_eval(tmp_path / "b.eval", log, journal_only=True)
    assert [one.code for one in read(stopped).responses.notes] == ["unfinished_run"]


def test_inspect_damaged_unknown_and_unscored(tmp_path):
    log = make.inspect_log("m", [make.inspect_sample(1, "C")])
    path = make.inspect_eval(tmp_path / "a.eval", log)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ReadError, match=r"not a complete \.eval file"):
        read(path)
    make.inspect_eval(path, log | {"version": 9})
    with pytest.raises(ReadError, match="is of version 9"):
        read(path)
    make.inspect_eval(path, make.inspect_log("m", [make.inspect_sample(1, "C") | {"scores": None}]))
    with pytest.raises(ReadError, match="were not scored"):
        read(path)
    make.inspect_eval(path, make.inspect_log("m", []))
    with pytest.raises(ReadError, match="no scored samples"):
        read(path)


def test_inspect_two_scorers(tmp_path):
    sample = make.inspect_sample(1, "C")
    sample["scores"]["judge"] = {"value": {"style": 0, "truth": 1}}
    path = make.inspect_eval(tmp_path / "a.eval", make.inspect_log("m", [sample]))
    with pytest.raises(OptionError, match="3 metrics: 'choice', 'judge/style', 'judge/truth'"):
        read(path)
    assert list(table(read(path, metric=["judge/style"])).values()) == [0]


# ------------------------------------------------------------------------------------------------ HELM


def test_helm_trials_perturbations_and_metrics(tmp_path):
    typo = {"name": "typos", "prob": 0.1, "robustness": True, "computed_on": "perturbed"}
    rows = [
        ("id1", 0, {"exact_match": 1.0, "quasi_exact_match": 1.0}, None),
        ("id1", 1, {"exact_match": 0.0, "quasi_exact_match": 1.0}, None),
        ("id1", 0, {"exact_match": 0.0, "quasi_exact_match": 0.0}, typo),
        ("id2", 0, {"exact_match": 0.0, "quasi_exact_match": 0.0}, None),
    ]
    path = make.helm(tmp_path, "openai_gpt2", rows)
    with pytest.raises(OptionError, match="2 metrics: 'exact_match', 'quasi_exact_match'"):
        read(tmp_path)
    found = read(path, metric=["exact_match"], attributes=["subject"])
    assert table(found) == {
        ("openai_gpt2", "mmlu:subject=law/id1"): 1,
        ("openai_gpt2", "mmlu:subject=law/id1#2"): 0,
        ("openai_gpt2", "mmlu:subject=law/id2"): 0,
    }
    assert found.attributes["subject"].tolist() == ["law"] * 3
    assert [note.code for note in found.responses.notes] == ["perturbed_left_out"]


def test_helm_without_its_run_spec(tmp_path):
    path = make.helm(tmp_path, "m", [("id1", 0, {"exact_match": 1.0}, None)])
    (path.parent / "run_spec.json").rename(path.parent / "spec.json")
    with pytest.raises(ReadError, match=r"needs run_spec.json beside it"):
        read(path)
    (path.parent / "run_spec.json").write_text('{"nothing": 1}')
    with pytest.raises(ReadError, match=r"run_spec\.json beside .* is not as HELM writes it"):
        read(path)


# ------------------------------------------------------------------------------- lighteval, Every Eval Ever


@pytest.mark.parametrize("old", [False, True])
def test_lighteval_details(tmp_path, old):
    make.lighteval(tmp_path, "org/a", {"em": [1.0, 0.0, 1.0]}, old=old)
    make.lighteval(tmp_path, "org/b", {"em": [0.0, 0.0, 1.0]}, old=old)
    found = read(tmp_path)
    assert found.responses.persons.tolist() == ["org/a", "org/b"]
    assert found.responses.scores.tolist() == [2, 1]
    assert found.responses.items.tolist() == ["gsm8k|5/0", "gsm8k|5/1", "gsm8k|5/2"]


def test_lighteval_of_an_unknown_version(tmp_path):
    import polars as pl

    path = make.lighteval(tmp_path, "a", {"em": [1.0]})
    pl.DataFrame({"doc": ["x"], "scores": [1.0]}).write_parquet(path)
    with pytest.raises(ReadError, match="no nested column 'metric' or 'metrics'"):
        read(path)


def test_every_eval_ever(tmp_path):
    path = make.every_eval_ever(tmp_path / "1_samples.jsonl", "org/a", [("q1", True, 0.9), ("q2", False, 0.2)])
    found = read(tmp_path, attributes=["subject"])
    assert table(found) == {("org/a", "demo.bench/q1"): 1, ("org/a", "demo.bench/q2"): 0}
    assert list(table(read(path, metric=["score"], threshold=0.1)).values()) == [1, 1]
    make.every_eval_ever(path, "org/a", [("q1", False, 0.0)], result="other")
    with pytest.raises(OptionError, match=r"is_correct,demo.bench.*is_correct,other"):
        read(path)
    make.every_eval_ever(path, "org/a", [("q1", False, 0.0)], result="other")
    with pytest.raises(ReadError, match=r"line 4 answers demo.bench/q1 once more"):
        read(path)


def test_every_eval_ever_of_an_unknown_version(tmp_path):
    path = make.every_eval_ever(tmp_path / "1_samples.jsonl", "org/a", [("q1", True, 1.0)], version="2.0.0")
    with pytest.raises(ReadError, match=r"version '2.0.0'.*0.3.x"):
        read(path)


def test_the_item_response_warehouse_and_py_irt(tmp_path):
    irw = tmp_path / "table.csv"
    irw.write_text("id,item,resp,rt\n1,q1,1,3.5\n1,q2,0,4.1\n2,q1,0,2.2\n")
    assert si.read(irw).n_items == 2
    lines = tmp_path / "data.jsonlines"
    lines.write_text('{"subject_id": "ken", "responses": {"q1": 1, "q2": 0}}\n')
    assert si.read(lines).persons.tolist() == ["ken"]


# ------------------------------------------------------------------------------------------ many at once


def test_files_of_two_kinds_and_folders_without_logs(tmp_path):
    path = make.lm_eval(tmp_path / "x", "a", {"acc": [1.0]})
    plain = tmp_path / "table.csv"
    plain.write_text("model,item,response\na,q1,1\n")
    with pytest.raises(ReadError, match=r"table.csv is not a log of a known harness"):
        find_logs([path, plain])
    assert find_logs([plain]) is None
    (tmp_path / "empty").mkdir()
    with pytest.raises(ReadError, match="no log of a known harness is in the folder"):
        find_logs([tmp_path / "empty"])
