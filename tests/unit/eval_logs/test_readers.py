"""Logs of each harness in small files of its own layout: what is read, and what is refused with which words."""

import json

import polars as pl
import pytest

import harness_logs as make
import spectral_irt as si
from reading import notes, read_text
from spectral_irt.errors import DuplicateResponseError, OptionError, ReadError, ResponseValueError
from spectral_irt.eval_logs.collect import collect, find_logs
from spectral_irt.reading import text_pieces


def read(*paths, **options):
    return collect(find_logs(paths), **options)


def table(found):
    """(model, item) -> 0 or 1."""
    models, items = found.responses.persons, found.responses.items
    return {(models[person], items[item]): int(x) for person, item, x in zip(*found.responses.answers(), strict=True)}


def scores(*paths, **options):
    """0 or 1 of each item, in their order."""
    return [right for _, right in sorted(table(read(*paths, **options)).items())]


def refused(*paths, error=ReadError, match, **options):
    with pytest.raises(error, match=match):
        read(*paths, **options)


def test_lm_eval_takes_the_model_from_the_folder(tmp_path):
    answers = {"org__a": [1.0, 0.0, 1.0], "org__b": [0.0, 0.0, 1.0]}
    for model, acc in answers.items():
        make.lm_eval(tmp_path, model, {"acc": acc})
    found = read(tmp_path)
    assert table(found) == {(model, f"arc_easy/{k}"): x for model, acc in answers.items() for k, x in enumerate(acc)}
    assert found.responses.words == ("models", "prompts")
    assert set(found.attributes["benchmark"]) == {"arc_easy"}


def test_lm_eval_takes_the_models_name_from_the_results_of_the_run(tmp_path):
    path = make.lm_eval(tmp_path, "org__a", {"acc": [1.0]})
    (path.parent / f"results_{make.DATE}.json").write_text(json.dumps({"model_name": "org/a"}))
    assert read(path).responses.persons.tolist() == ["org/a"]


def test_lm_eval_asks_which_metric_and_which_filter(tmp_path):
    path = make.lm_eval(tmp_path, "a", {"acc": [1.0, 0.0], "acc_norm": [0.0, 0.0]})
    refused(path, error=OptionError, match=r"2 metrics: 'acc', 'acc_norm'.*metric='acc'")
    refused(path, error=OptionError, match="no metric 'f1'; it has 'acc', 'acc_norm'", metric=["f1"])
    assert scores(path, metric=["acc"]) == [1, 0]
    assert scores(path, metric=["f1", "acc_norm"]) == [0, 0]
    filters = ("strict-match", "flexible-extract")
    path = make.lm_eval(tmp_path, "b", {"exact_match": [1, 0]}, task="gsm8k", filters=filters)
    said = "2 filters: 'exact_match,strict-match', 'exact_match,flexible-extract'"
    refused(path, error=OptionError, match=said, metric=["exact_match"])
    assert table(read(path, metric=["exact_match,flexible-extract"])) == {("b", "gsm8k/0"): 1, ("b", "gsm8k/1"): 0}


def test_lm_eval_reads_true_and_false_and_mixed_numbers(tmp_path):
    assert scores(make.lm_eval(tmp_path, "a", {"acc": [True, False, True]})) == [1, 0, 1]
    path = make.lm_eval(tmp_path, "b", {"acc": [1.0, True, 0, None]})
    assert scores(path) == [1, 1, 0]
    assert list(notes(read(path).responses)) == ["unscored_samples"]


def test_lm_eval_a_log_cut_off_in_the_middle(tmp_path):
    path = make.lm_eval(tmp_path, "a", {"acc": [1.0, 0.0, 1.0]})
    text = path.read_text()
    path.write_text(text[:-40])
    refused(path, match=r"/a/samples_arc_easy.*line 3 is not a JSON object.*cut off")
    path.write_text(text.replace('{"doc_id": 1', '"doc_id": 1'))
    refused(path, match="line 2 is not a")


def test_lm_eval_scores_that_are_not_0_or_1(tmp_path):
    path = make.lm_eval(tmp_path, "a", {"f1": [0.25, 0.75, 1.0]})
    refused(path, error=ResponseValueError, match=r"neither 0 nor 1 for 2 of 3 samples.*threshold=0.5")
    assert scores(path, threshold=0.5) == [0, 1, 1]
    path = make.lm_eval(tmp_path, "b", {"bleu": [["a", "b"], ["c", "d"]]})  # of a whole corpus
    refused(path, match="'bleu' has a number for each sample")


def test_the_same_samples_twice(tmp_path):
    make.lm_eval(tmp_path / "monday", "a", {"acc": [1.0, 1.0]})
    path = make.lm_eval(tmp_path / "tuesday", "a", {"acc": [0.0, 0.0]})
    said = r"a answered 2 samples of arc_easy twice: in '.*monday.*' and in '.*tuesday"
    refused(tmp_path, error=DuplicateResponseError, match=said)
    assert scores(tmp_path, duplicates="first") == [1, 1]
    assert scores(tmp_path, duplicates="last") == [0, 0]
    path.write_text(path.read_text() * 2)  # a run appended to its own file
    refused(path, error=DuplicateResponseError, match="2 samples of arc_easy more than once")


def test_the_same_prompt_with_two_hashes(tmp_path):
    make.lm_eval(tmp_path, "a", {"acc": [1.0, 0.0, 1.0]}, hashes=["x", "y", "z"])
    make.lm_eval(tmp_path, "b", {"acc": [1.0, 1.0, 0.0]}, hashes=["x", "z", "y"])
    refused(tmp_path, match=r"2 of 3 samples.*another hash.*\(b\) than in.*\(a\).*'arc_easy/1', 'arc_easy/2'")


def test_attributes_of_prompts(tmp_path):
    path = make.lm_eval(tmp_path, "a", {"acc": [1.0, 0.0]}, subjects=["law", "art"])
    assert read(path, attributes=["subject"]).attributes["subject"].tolist() == ["law", "art"]
    said = "no field 'topic'; they have 'question', 'subject'"
    refused(path, error=OptionError, match=said, attributes=["topic"])


def test_any_command_reads_a_log(tmp_path):
    path = make.lm_eval(tmp_path, "a", {"acc": [1.0, 0.0]})
    assert si.read(path).items.tolist() == ["arc_easy/0", "arc_easy/1"]
    path = make.lm_eval(tmp_path, "b", {"acc": [1.0, 0.0], "acc_norm": [0.0, 0.0]})
    with pytest.raises(ReadError, match=r"'acc', 'acc_norm' holds the responses. Say `response="):
        si.read(path)
    assert si.read(path, response="acc_norm").item_scores.sum() == 0


def inspect(path, *values, **of_log):
    """An `.eval` file of samples with these values."""
    samples = [value if isinstance(value, dict) else make.inspect_sample(k, value) for k, value in enumerate(values, 1)]
    return make.inspect_eval(path / "a.eval", make.inspect_log("m", samples) | of_log)


@pytest.mark.parametrize("kind", ["json", "eval", "zstd"])
def test_inspect_letters_and_epochs(tmp_path, kind):
    if kind == "zstd":
        pytest.importorskip("zstandard")
    samples = [make.inspect_sample(1, "C"), make.inspect_sample(2, "I"), make.inspect_sample(3, "N")]
    samples += [make.inspect_sample(1, "I", epoch=2), make.inspect_sample("x", True)]
    log = make.inspect_log("m", samples)
    path = tmp_path / f"2025-01-01T00-00-00_arc_x.{'json' if kind == 'json' else 'eval'}"
    if kind == "json":
        path.write_text(json.dumps(log, indent=2))
    else:
        make.inspect_eval(path, log, zstd=kind == "zstd")
    found = read(path)
    expected = {"arc/1": 1, "arc/2": 0, "arc/3": 0, "arc/1#2": 0, "arc/x": 1}
    assert table(found) == {("m", item): right for item, right in expected.items()}
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
    path = inspect(tmp_path, "C", "P")
    refused(path, error=ResponseValueError, match=r"instance 0.5.*threshold")
    assert scores(path, threshold=0.4) == [1, 1]


def test_inspect_an_unfinished_run_is_read_with_a_word(tmp_path):
    log = make.inspect_log("m", [make.inspect_sample(1, "C"), make.inspect_sample(2, "I")], status="cancelled")
    log["eval"]["dataset"]["sample_ids"] = [1, 2, 3, 4]
    path = tmp_path / "2025-01-01T00-00-00_a.json"
    path.write_text(json.dumps(log))
    assert scores(path) == [1, 0]
    assert "2 of 4 samples" in notes(read(path).responses)["unfinished_run"].sentence
    stopped = make.inspect_eval(tmp_path / "b.eval", log, journal_only=True)
    assert list(notes(read(stopped).responses)) == ["unfinished_run"]


def test_inspect_damaged_unknown_and_unscored(tmp_path):
    path = inspect(tmp_path, "C")
    path.write_bytes(path.read_bytes()[:-30])
    refused(path, match=r"is not as inspect_ai writes it")
    refused(inspect(tmp_path, "C", version=9), match="is of version 9")
    refused(inspect(tmp_path, make.inspect_sample(1, "C") | {"scores": None}), match="were not scored")
    refused(inspect(tmp_path), match="no scored samples")


def test_inspect_two_scorers(tmp_path):
    sample = make.inspect_sample(1, "C")
    sample["scores"]["judge"] = {"value": {"style": 0, "truth": 1}}
    path = inspect(tmp_path, sample)
    refused(path, error=OptionError, match="3 metrics: 'choice', 'judge/style', 'judge/truth'")
    assert scores(path, metric=["judge/style"]) == [0]


def test_helm_trials_perturbations_and_metrics(tmp_path):
    typo = {"name": "typos", "prob": 0.1, "robustness": True, "computed_on": "perturbed"}
    rows = [
        ("id1", 0, {"exact_match": 1.0, "quasi_exact_match": 1.0}, None),
        ("id1", 1, {"exact_match": 0.0, "quasi_exact_match": 1.0}, None),
        ("id1", 0, {"exact_match": 0.0, "quasi_exact_match": 0.0}, typo),
        ("id2", 0, {"exact_match": 0.0, "quasi_exact_match": 0.0}, None),
    ]
    path = make.helm(tmp_path, "gpt2", rows)
    refused(tmp_path, error=OptionError, match="2 metrics: 'exact_match', 'quasi_exact_match'")
    found = read(path, metric=["exact_match"], attributes=["subject"])
    expected = {"id1": 1, "id1#2": 0, "id2": 0}
    assert table(found) == {("gpt2", f"mmlu:subject=law/{item}"): right for item, right in expected.items()}
    assert found.attributes["subject"].tolist() == ["law"] * 3
    assert list(notes(found.responses)) == ["perturbed_left_out"]


def test_helm_without_its_run_spec(tmp_path):
    path = make.helm(tmp_path, "m", [("id1", 0, {"exact_match": 1.0}, None)])
    (path.parent / "run_spec.json").rename(path.parent / "spec.json")
    refused(path, match=r"needs run_spec.json beside it")
    (path.parent / "run_spec.json").write_text('{"nothing": 1}')
    refused(path, match=r"run_spec\.json beside .* is not as HELM writes it")


@pytest.mark.parametrize("old", [False, True])
def test_lighteval_details(tmp_path, old):
    make.lighteval(tmp_path, "org/a", {"em": [1.0, 0.0, 1.0]}, old=old)
    path = make.lighteval(tmp_path, "org/b", {"em": [0, 0, 1]}, old=old)  # whole numbers
    found = read(tmp_path).responses
    assert found.persons.tolist() == ["org/a", "org/b"]
    assert found.scores.tolist() == [2, 1]
    assert found.items.tolist() == ["gsm8k|5/0", "gsm8k|5/1", "gsm8k|5/2"]
    pl.DataFrame({"doc": ["x"], "scores": [1.0]}).write_parquet(path)  # of an unknown version
    refused(path, match="no nested column 'metric' or 'metrics'")


def test_every_eval_ever(tmp_path):
    path = make.every_eval_ever(tmp_path / "1_samples.jsonl", "org/a", [("q1", True, 0.9), ("q2", False, 0.2)])
    found = read(tmp_path, attributes=["subject"])
    assert table(found) == {("org/a", "demo.bench/q1"): 1, ("org/a", "demo.bench/q2"): 0}
    assert scores(path, metric=["score"], threshold=0.1) == [1, 1]
    make.every_eval_ever(path, "org/a", [("q1", False, 0.0)], result="other")
    refused(path, error=OptionError, match=r"is_correct,demo.bench.*is_correct,other")
    make.every_eval_ever(path, "org/a", [("q1", False, 0.0)], result="other")
    refused(path, match=r"line 4 answers demo.bench/q1 once more")
    path = make.every_eval_ever(tmp_path / "2_samples.jsonl", "org/a", [("q1", True, 1.0)], version="2.0.0")
    refused(path, match=r"version '2.0.0'.*0.3.x")


def test_the_item_response_warehouse_and_py_irt(tmp_path):
    assert read_text(tmp_path, "id,item,resp,rt\n1,q1,1,3.5\n1,q2,0,4.1\n2,q1,0,2.2\n").n_items == 2
    lines = '{"subject_id": "ken", "responses": {"q1": 1, "q2": 0}}\n'
    assert read_text(tmp_path, lines, "data.jsonlines").persons.tolist() == ["ken"]


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
