"""A model comes back from its file as it was, or not at all."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kept.crowds import WORKER_MODELS, crowd, rows_of, some_gold
from refusals import refused

import tiebreak as tb
from tiebreak.errors import FileError, InputNote, NotFittedError, OptionError
from tiebreak.life import model_file
from tiebreak.options import ExactLinkOptions, LinkOptions, MeanFieldOptions
from tiebreak.tables import array_folder

LINK_OPTIONS = (
    None,
    ExactLinkOptions(error=0.05),
    ExactLinkOptions(error="learn"),
    MeanFieldOptions(strength=1.0),
)
NEW = [("new", "w1", "c0"), ("new", "stranger", "c1"), ("other", "w2", "c2")]


def assert_same_bits(one: Any, other: Any) -> None:
    for name in ("probabilities_", "confusion_", "class_prior_"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert one.labels_.best() == other.labels_.best()
    assert list(one.tasks_) == list(other.tasks_)
    assert list(one.workers_) == list(other.workers_)
    assert list(one.bounds_) == list(other.bounds_)
    assert one.calibration_ == other.calibration_
    assert repr(one) == repr(other)


def models() -> list[Any]:
    return [
        *(tb.VariationalBayes(worker_model=name) for name in WORKER_MODELS),
        *(tb.DawidSkene(), tb.DawidSkene(worker_model="coin"), tb.MajorityVote()),
        tb.VariationalBayes(trust={"w1": 20.0}, confusion_prior=(4.0, 1.0), calibrate="none"),
        tb.VariationalBayes(class_prior=[2.0, 1.0, 1.0], confusion_prior=np.eye(3) * 3 + 1),
        tb.GibbsSampler(n_draws=60, n_warmup=30),
    ]


@pytest.mark.filterwarnings("ignore:.*not seen by the model", "ignore:The chains")
@pytest.mark.parametrize("keep", ["responses", "counts"])
@pytest.mark.parametrize("model", models(), ids=repr)
def test_predictions_are_the_same_bits_as_before_saving(
    tmp_path: Path, model: Any, keep: str
) -> None:
    made = crowd()
    model.fit(made.responses)
    before = model.predict(NEW)
    model.save(tmp_path / "m.tbm", keep=keep)
    back = tb.load(tmp_path / "m.tbm")
    assert_same_bits(back, model)
    after = back.predict(NEW)
    assert np.array_equal(after.probabilities, before.probabilities)
    assert after.best() == before.best()
    assert back.responses_.n_responses == (480 if keep == "responses" else 0)


@pytest.mark.filterwarnings("ignore:.*not seen by the model")
@pytest.mark.parametrize("n_known", [0, 1, 30])
@pytest.mark.parametrize("members", [("votes", "first-step"), ("first-step", "kinds")])
def test_a_committee_comes_back_whole(
    tmp_path: Path, n_known: int, members: tuple[str, ...]
) -> None:
    made = crowd()
    model = tb.Auto(members=members)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputNote)  # gold of one class
        model.fit(made.responses, gold=some_gold(made, n_known) if n_known else None)
    model.save(tmp_path / "m.tbm")
    back = tb.load(tmp_path / "m.tbm")
    assert_same_bits(back, model)
    assert back.members_ == model.members_
    assert back.from_vote_ == model.from_vote_
    after, before = back.predict(NEW), model.predict(NEW)
    assert before.probabilities is not None
    assert np.array_equal(after.probabilities, before.probabilities)


def test_a_committee_has_no_votes_in_counts(tmp_path: Path) -> None:
    model = tb.Auto().fit(crowd().responses)
    with refused(OptionError, "votes-not-counted"):
        model.save(tmp_path / "m.tbm", keep="counts")
    assert not (tmp_path / "m.tbm").exists()


def test_a_sampler_and_a_committee_live_on(tmp_path: Path) -> None:
    made = crowd()
    rows = rows_of(made.responses)
    known = some_gold(made, 30)
    sampler = tb.GibbsSampler(n_draws=200, random_state=3).fit(rows[:-80])
    committee = tb.Auto().fit(rows[:-80], gold=known)
    for model in (sampler, committee):
        model.save(tmp_path / "m.tbm")
        back = tb.load(tmp_path / "m.tbm")
        if model is sampler:
            assert str(back.workers_table()) == str(model.workers_table())
        back.update(rows[-80:])
        assert back.responses_.n_responses == len(rows)
        assert back.labels_.best() == model.update(rows[-80:]).labels_.best()


@pytest.mark.parametrize("options", LINK_OPTIONS, ids=repr)
def test_links_and_gold_come_back(tmp_path: Path, options: LinkOptions | None) -> None:
    made = crowd()
    links = tb.simulate.links(made.gold, 40, random_state=1)
    model = tb.VariationalBayes(link_options=options)
    model.fit(made.responses, links=links, gold=some_gold(made, 10))
    model.save(tmp_path / "m.tbm")
    back = tb.load(tmp_path / "m.tbm")
    assert_same_bits(back, model)
    assert back.links_.pairs() == links.pairs()
    assert back.gold_.to_dict() == some_gold(made, 10)
    for name in ("link_errors_", "link_report_", "uncertain_groups_", "link_strength_"):
        assert getattr(back, name) == getattr(model, name)
    assert model.violations_ is not None
    assert len(back.violations_) == len(model.violations_)
    again = tb.VariationalBayes(link_options=options).fit(
        back.responses_, links=back.links_, gold=back.gold_
    )
    assert np.array_equal(again.probabilities_, model.probabilities_)


def test_weights_of_responses_come_back(tmp_path: Path) -> None:
    made = crowd().responses
    weight = np.linspace(0.5, 1.5, made.n_responses)
    columns = made.task_of_each(), made.worker_of_each(), made.label_of_each()
    ids = made.tasks, made.workers, made.classes
    weighed = tb.Responses.from_codes(*columns, *ids, weight=weight)
    model = tb.VariationalBayes().fit(weighed)
    model.save(tmp_path / "m.tbm")
    assert np.array_equal(tb.load(tmp_path / "m.tbm").responses_.weight, weight)


def test_large_arrays_stay_on_the_disk_until_they_are_used(tmp_path: Path) -> None:
    model = tb.MajorityVote().fit(tb.simulate.crowd(70_000, 9, 2, random_state=0).responses)
    model.save(tmp_path / "m.tbm")
    assert isinstance(tb.load(tmp_path / "m.tbm").probabilities_.base, np.memmap)


def test_ids_of_numbers_come_back_as_numbers(tmp_path: Path) -> None:
    model = tb.VariationalBayes().fit([(1, 10, True), (2, 10, False), (2, 11, False)])
    model.save(tmp_path / "m.tbm")
    assert tb.load(tmp_path / "m.tbm").labels_.best() == {1: True, 2: False}


def test_loading_and_predicting_need_no_numba(tmp_path: Path) -> None:
    tb.VariationalBayes().fit(crowd().responses).save(tmp_path / "m.tbm")
    code = (
        "import sys, tiebreak as tb\n"
        f"tb.load({str(tmp_path / 'm.tbm')!r}).predict([('new', 'w1', 'c0')])\n"
        "assert 'numba' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# Files that are not whole


def damage_array(folder: Path) -> None:
    file = next(folder.glob("probabilities-*.npy"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def cut_array(folder: Path) -> None:
    file = next(folder.glob("probabilities-*.npy"))
    file.write_bytes(file.read_bytes()[:-8])


def remove_ids(folder: Path) -> None:
    next(folder.glob("*.arrow")).unlink()


def remove_about(folder: Path) -> None:
    (folder / "about.json").unlink()


def cut_about(folder: Path) -> None:
    text = (folder / "about.json").read_text("utf-8")
    (folder / "about.json").write_text(text[: len(text) // 2], "utf-8")


def change_about(folder: Path) -> None:
    text = (folder / "about.json").read_text("utf-8")
    (folder / "about.json").write_text(text.replace('"multiplier": 1.0', '"multiplier": 9.0'))


DAMAGES = [damage_array, cut_array, remove_ids, remove_about, cut_about, change_about]


@pytest.mark.parametrize("harm", DAMAGES, ids=lambda harm: harm.__name__)
def test_a_tampered_or_half_file_is_refused(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    tb.VariationalBayes().fit(crowd().responses).save(tmp_path / "m.tbm")
    harm(tmp_path / "m.tbm")
    with refused(FileError, "array-folder-damaged"):
        tb.load(tmp_path / "m.tbm")


def resealed(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change what a file says, with checksums that fit."""
    about = json.loads((folder / "about.json").read_text("utf-8"))
    change(about)
    about["seal"] = array_folder.seal_of_json(about)
    (folder / "about.json").write_text(json.dumps(about), "utf-8")


def other_class(about: dict[str, Any]) -> None:
    about["results"]["calibration_"]["is"] = "Popen"


def other_file(about: dict[str, Any]) -> None:
    about["files"]["probabilities"]["file"] = "../elsewhere.npy"


def other_shape(about: dict[str, Any]) -> None:
    about["results"]["confusion_"] = about["results"]["class_prior_"]


def other_codes(about: dict[str, Any]) -> None:
    fields = about["responses"]["fields"]
    fields["workers"] = fields["classes"]


def other_gold(about: dict[str, Any]) -> None:
    about["results"]["gold_"] = 7


def other_options(about: dict[str, Any]) -> None:
    about["options"]["tol"] = "x"


CHANGES = [other_class, other_file, other_shape, other_codes, other_gold, other_options]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_does_not_fit_is_refused_even_with_right_checksums(
    tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    tb.VariationalBayes().fit(crowd().responses).save(tmp_path / "m.tbm")
    resealed(tmp_path / "m.tbm", change)
    with refused(FileError, "array-folder-damaged"):
        tb.load(tmp_path / "m.tbm")


NO_RESULTS = ("save", "predict", "_publish", "__class__", "__dict__", "evil_", "tol")


@pytest.mark.parametrize("name", NO_RESULTS)
def test_attributes_that_are_no_results_are_refused(tmp_path: Path, name: str) -> None:
    tb.VariationalBayes().fit(crowd().responses).save(tmp_path / "m.tbm")
    resealed(tmp_path / "m.tbm", lambda about: about["results"].update({name: "mine"}))
    with refused(FileError, "array-folder-damaged"):
        tb.load(tmp_path / "m.tbm")


@pytest.mark.parametrize(
    "pattern", ["about.json", "probabilities-*.npy", "responses.tasks-*.arrow"]
)
def test_a_link_to_a_file_elsewhere_is_refused(tmp_path: Path, pattern: str) -> None:
    model = tb.VariationalBayes().fit(crowd().responses)
    model.save(tmp_path / "m.tbm")
    (file,) = (tmp_path / "m.tbm").glob(pattern)
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    with refused(FileError, "array-folder-damaged"):
        tb.load(tmp_path / "m.tbm")
    if pattern == "about.json":  # nor is what it leads to written to
        with pytest.raises(FileError):
            model.save(tmp_path / "m.tbm")
    assert elsewhere.read_bytes() == before
    (tmp_path / "link.tbm").symlink_to(tmp_path / "m.tbm")  # the folder itself may be one
    file.unlink()
    elsewhere.rename(file)
    assert_same_bits(tb.load(tmp_path / "link.tbm"), model)


def crafted(array: Any) -> dict[str, Any]:
    """Return arrays that an attacker may put in the place of one."""
    made = {"short": array[:-1], "dims": array[None], "dtype": array.astype("f4")}
    if array.dtype.kind in "iu":
        for value in (10**6, -7):
            made[f"value {value}"] = array.copy()
            made[f"value {value}"].flat[-1] = value
    elif array.dtype.kind == "f":
        made["nan"] = array.copy()
        made["nan"].flat[-1] = np.nan
    return made


def harmless(name: str, what: str) -> bool:
    """Tell what may be so: rows are for messages, a link without weight is hard."""
    return (name.endswith(".row") and what == "value 1000000") or (
        name == "links_.weight" and what == "nan"
    )


ATTACKED = ("linked", "kinds", "subtypes", "committee", "sampler", "counts")


def attacked(kind: str) -> Any:
    made = crowd()
    if kind == "linked":
        pairs = tb.simulate.links(made.gold, 40, random_state=1).pairs()
        columns = zip(*((a, b, word, 2.0, "ann") for a, b, word in pairs), strict=True)
        links = tb.Links.from_columns(*columns)
        return tb.VariationalBayes().fit(made.responses, links=links, gold=some_gold(made, 10))
    if kind == "committee":
        return tb.Auto().fit(made.responses, gold=some_gold(made, 30))
    if kind == "sampler":
        return tb.GibbsSampler(n_draws=60, n_warmup=30).fit(made.responses)
    name = "confusion" if kind == "counts" else kind
    return tb.VariationalBayes(worker_model=name).fit(made.responses)


@pytest.mark.filterwarnings("ignore:The chains")
@pytest.mark.parametrize("kind", ATTACKED)
def test_crafted_arrays_are_refused_even_with_right_checksums(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "m.tbm"
    attacked(kind).save(folder, keep="counts" if kind == "counts" else "responses")
    text = (folder / "about.json").read_text("utf-8")
    taken = []
    for name, about_file in json.loads(text)["files"].items():
        file = folder / about_file["file"]
        array = np.load(file) if file.suffix == ".npy" else np.empty(0)
        if name.startswith("violations_") or not array.size:
            continue
        whole = file.read_bytes()
        for what, other in crafted(array).items():
            np.save(file, other)
            seal = {"bytes": file.stat().st_size, "crc32": zlib.crc32(file.read_bytes())}
            resealed(folder, lambda about, name=name, seal=seal: about["files"][name].update(seal))  # type: ignore[misc]
            try:
                tb.load(folder)
                taken += [] if harmless(name, what) else [(name, what)]
            except FileError:
                pass
            (folder / "about.json").write_text(text, "utf-8")
        file.write_bytes(whole)
    assert taken == []


def test_pickles_are_never_read(tmp_path: Path) -> None:
    tb.VariationalBayes().fit(crowd().responses).save(tmp_path / "m.tbm")
    folder = tmp_path / "m.tbm"
    file = next(folder.glob("class_prior-*.npy"))
    np.save(file, np.array([print, 1], dtype=object), allow_pickle=True)
    seal = {"bytes": file.stat().st_size, "crc32": zlib.crc32(file.read_bytes())}
    resealed(folder, lambda about: about["files"]["class_prior"].update(seal))
    with refused(FileError, "array-folder-damaged"):
        tb.load(folder)


def test_other_files_are_refused(tmp_path: Path) -> None:
    crowd().responses.write(tmp_path / "x.tb")
    (tmp_path / "x.csv").write_text("task,worker,label\n")
    with refused(FileError, "array-folder-of-other-kind"):
        tb.load(tmp_path / "x.tb")
    with refused(FileError, "array-folder-is-file"):
        tb.load(tmp_path / "x.csv")
    with refused(FileError, "array-folder-missing"):
        tb.load(tmp_path / "nothing.tbm")


def test_a_version_yet_to_come_is_refused(tmp_path: Path) -> None:
    tb.MajorityVote().fit(crowd().responses).save(tmp_path / "m.tbm")
    resealed(tmp_path / "m.tbm", lambda about: about.update(version=99))
    with refused(FileError, "array-folder-version"):
        tb.load(tmp_path / "m.tbm")


# Writing


def test_a_crash_leaves_the_last_file_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tb.VariationalBayes().fit(crowd().responses)
    first.save(tmp_path / "m.tbm")

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    for name in ("numpy.save", "os.fsync", "os.replace"):
        with monkeypatch.context() as patch:
            patch.setattr(name, fail)
            with pytest.raises(OSError, match="No space"):
                tb.VariationalBayes().fit(crowd(60).responses).save(tmp_path / "m.tbm")
        assert_same_bits(tb.load(tmp_path / "m.tbm"), first)
    second = tb.VariationalBayes().fit(crowd(60).responses)
    second.save(tmp_path / "m.tbm")
    assert_same_bits(tb.load(tmp_path / "m.tbm"), second)
    about = json.loads((tmp_path / "m.tbm" / "about.json").read_text("utf-8"))
    kept = {each["file"] for each in about["files"].values()} | {"about.json"}
    assert {file.name for file in (tmp_path / "m.tbm").iterdir()} == kept


def test_what_somebody_else_made_is_not_overwritten(tmp_path: Path) -> None:
    model = tb.MajorityVote().fit(crowd().responses)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    (tmp_path / "file.tbm").write_text("notes")
    crowd().responses.write(tmp_path / "x.tb")
    for name in ("mine", "file.tbm", "x.tb", "no/such/m.tbm"):
        with pytest.raises(FileError):
            model.save(tmp_path / name)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


def test_a_model_that_knows_nothing_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        tb.VariationalBayes().save(tmp_path / "m.tbm")
    with refused(OptionError, "wrong-value keep"):
        tb.MajorityVote().fit(crowd().responses).save(tmp_path / "m.tbm", keep="all")


def test_a_copy_of_the_folder_is_a_model_too(tmp_path: Path) -> None:
    model = tb.VariationalBayes().fit(rows_of(crowd().responses))
    model.save(tmp_path / "m.tbm")
    shutil.copytree(tmp_path / "m.tbm", tmp_path / "copy.tbm")
    assert model_file.about(tmp_path / "copy.tbm") == model_file.about(tmp_path / "m.tbm")
