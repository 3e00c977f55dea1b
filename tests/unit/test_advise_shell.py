"""``python -m helpers.advise``: what it prints, where, and its exit code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.advise.__main__ import main

ROOT = Path(__file__).resolve().parents[2]

_MODULE = """
import os
from torch.utils.data import DataLoader
from support_advise import Broken, Waiting

print("printed while importing")
number = 3


def make_loader():
    print("printed by the factory")
    return DataLoader(Waiting(wait_ms=1), batch_size=4, num_workers=1)


def make_broken():
    return DataLoader(Broken(64), batch_size=4)


def make_list():
    return [1, 2]


def fail():
    raise KeyError("no such\\nfolder")


def step(batch):
    os.write(1, b"written past Python\\n")
"""


@pytest.fixture(scope="module", autouse=True)
def mine(tmp_path_factory):
    """A module of the reader's, on the import path."""
    folder = tmp_path_factory.mktemp("mine")
    (folder / "reader_s.py").write_text(_MODULE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield folder


def test_json_is_all_that_comes_out(capfd):
    arguments = ["reader_s:make_loader", "--diagnose", "--step", "reader_s:step"]
    assert main([*arguments, "--budget", "1.5", "--json"]) == 0
    out, err = capfd.readouterr()
    result = json.loads(out)
    assert list(result) == ["diagnose"]
    assert result["diagnose"]["current"]["num_workers"] == 1
    assert "printed by the factory" in err and "written past Python" in err


def test_a_recommendation_as_json_holds_no_nan(capfd):
    arguments = ["reader_s:make_loader", "--tune", "--budget", "1", "--json"]
    assert main(arguments) == 0
    tried = json.loads(capfd.readouterr().out)["tune"]["tried"]
    assert any(row["rate"] is None for row in tried)


def test_text_for_a_reader(capfd):
    assert main(["reader_s:make_loader", "--lint"]) == 0
    assert "No findings" in capfd.readouterr().out


def test_all_three_in_their_own_process(mine):
    arguments = ["reader_s:make_loader", "--budget", "1"]
    done = shell(arguments, mine)
    assert done.returncode == 0, done.stderr
    places = [done.stdout.find(w) for w in ("finding", "Per batch:", "num_workers=")]
    assert -1 < places[0] < places[1]
    assert places[2] > -1


def shell(arguments: list[str], folder: Path) -> subprocess.CompletedProcess:
    paths = f"{ROOT}:{ROOT / 'tests/unit'}"
    return subprocess.run(
        [sys.executable, "-m", "helpers.advise", *arguments],
        cwd=folder,
        env={"PYTHONPATH": paths, "PATH": "/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere:make"], "there is no module nowhere"),
        (["reader_s.inside:make"], "there is no module reader_s.inside"),
        (["reader_s"], "expected MODULE:FUNCTION, got 'reader_s'"),
        (["reader_s:"], "expected MODULE:FUNCTION, got 'reader_s:'"),
        (["reader_s:gone"], "module reader_s has no gone"),
        (["reader_s:number"], "reader_s:number is a int; write a function"),
        (["reader_s:make_list"], "returned a list, not a DataLoader"),
        (["reader_s:fail"], "reader_s:fail() raised KeyError: 'no such\\nfolder'"),
        (["reader_s:make_loader", "--step", "reader_s:x"], "module reader_s has no x"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, message, capfd):
    assert main([*arguments, "--lint"]) == 2
    err = capfd.readouterr().err
    assert message in err
    assert err.startswith("python -m helpers.advise: ") and err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: MODULE:FACTORY"),
        (["a:b", "--budget", "-1"], "must be above 0, got -1"),
        (["a:b", "--budget", "nan"], "must be above 0, got nan"),
        (["a:b", "--lint", "--tune"], "not allowed with"),
    ],
)
def test_bad_options_are_one_line_and_exit_code_2(arguments, message, capfd):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    err = capfd.readouterr().err
    assert message in err and err.count("\n") == 1


def test_a_loader_that_fails_is_one_line_and_exit_code_1(capfd):
    assert main(["reader_s:make_broken", "--tune", "--budget", "2"]) == 1
    err = capfd.readouterr().err
    assert "the loader failed: sample 21 raised ValueError: bad row" in err


def test_the_help_teaches(capfd):
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    out = capfd.readouterr().out
    for words in ("def make_loader():", "--step train:train_step", "exit code"):
        assert words in out
