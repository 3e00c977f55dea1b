"""Sets on disk: found again, written once and whole, tidy after every accident."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from data_gen import ImageSpec, cache_folder, ensure, read_manifest
from data_gen.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
SPEC = ImageSpec(classes=3, per_class=4, size=24)
SMALL = ["--classes", "3", "--per-class", "4", "--size", "24"]
# Takes two processes a few seconds, so there is time to disturb them.
LONG = ["--classes", "4", "--per-class", "100", "--size", "128", "--processes", "2"]
LONG_SPEC = ImageSpec(classes=4, per_class=100, size=128)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache folder for each test."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("DATALOADER_BOOK_CACHE", str(folder))
    return folder


def command(*arguments) -> list[str]:
    words = [sys.executable, "-m", "data_gen", "images", *arguments]
    return [str(word) for word in words]


def finish(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True)


def contents(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


# Found again


def test_cache_folder_follows_the_variable(cache, monkeypatch):
    assert cache_folder() == cache
    monkeypatch.delenv("DATALOADER_BOOK_CACHE")
    assert cache_folder().name == "dataloader-book"


def test_set_is_written_once_and_found_again(cache):
    first = ensure(SPEC)
    assert first.parent == cache
    before = {path: path.stat().st_mtime_ns for path in first.rglob("*")}
    assert ensure(SPEC) == first
    assert {path: path.stat().st_mtime_ns for path in first.rglob("*")} == before
    assert list(cache.iterdir()) == [first]


def test_other_options_make_another_set():
    assert ensure(SPEC) != ensure(ImageSpec(classes=3, per_class=4, size=25))


def test_spec_file_says_what_was_asked(tmp_path):
    root = ensure(SPEC, out=tmp_path / "set")
    content = json.loads((root / "spec.json").read_text())
    assert content["kind"] == "images"
    assert ImageSpec(**content["parameters"]) == SPEC


def test_empty_folder_is_filled(tmp_path):
    (tmp_path / "set").mkdir()
    root = ensure(SPEC, out=tmp_path / "set")
    assert len(read_manifest(root)) == 12


def test_occupied_folder_is_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(FileExistsError, match="holds something else"):
        ensure(SPEC, out=tmp_path / "mine")
    assert os.listdir(tmp_path) == ["mine"]
    assert os.listdir(tmp_path / "mine") == ["thesis.txt"]


def test_other_set_is_left_alone(tmp_path):
    root = ensure(SPEC, out=tmp_path / "set")
    before = contents(root)
    with pytest.raises(FileExistsError, match="holds something else"):
        ensure(ImageSpec(classes=3, per_class=5, size=24), out=root)
    assert contents(root) == before


# Accidents


@pytest.fixture
def started(tmp_path):
    """A long run with output below ``tmp_path``, some of whose files exist already."""
    run = subprocess.Popen(
        command("--out", tmp_path / "set", *LONG),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while len(list(tmp_path.rglob("*.jpg"))) < 20:
        assert run.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    yield run
    run.kill()
    run.communicate()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Contents of the long set from a run that nothing disturbed."""
    return contents(ensure(LONG_SPEC, out=tmp_path_factory.mktemp("long") / "set"))


def test_killed_run_leaves_nothing_half_and_is_taken_up(tmp_path, started, undisturbed):
    helpers = psutil.Process(started.pid).children()
    assert len(helpers) == 2
    started.kill()
    started.wait()
    assert not psutil.wait_procs(helpers, timeout=10)[1]
    assert not (tmp_path / "set").exists()
    drawn = {
        path.relative_to(tmp_path / ".set.partial"): path.stat().st_mtime_ns
        for path in tmp_path.rglob("*.jpg")
    }
    root = ensure(LONG_SPEC, out=tmp_path / "set")
    assert contents(root) == undisturbed
    assert os.listdir(tmp_path) == ["set"]
    assert len(drawn) >= 20
    assert {file: (root / file).stat().st_mtime_ns for file in drawn} == drawn


def test_file_that_was_being_written_at_the_kill_is_written_again(tmp_path):
    code = (
        "import os, pathlib\n"
        "from data_gen import ImageSpec, ensure\n"
        "write = pathlib.Path.write_bytes\n"
        "def half(path, data):\n"
        "    if '000002.jpg' not in path.name:\n"
        "        return write(path, data)\n"
        "    write(path, data[:100])\n"
        "    os._exit(9)\n"
        "pathlib.Path.write_bytes = half\n"
        f"ensure({SPEC!r}, out={str(tmp_path / 'set')!r})\n"
    )
    assert finish(sys.executable, "-c", code).returncode == 9
    root = ensure(SPEC, out=tmp_path / "set")
    assert contents(root) == contents(ensure(SPEC))
    assert "set" in os.listdir(tmp_path)
    assert ".set.partial" not in os.listdir(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="signals to groups are POSIX")
def test_interrupted_run_says_so_and_is_taken_up(tmp_path, started, undisturbed):
    os.killpg(started.pid, signal.SIGINT)  # as Ctrl-C does: the helpers too
    _, said = started.communicate(timeout=30)
    assert (started.returncode, said) == (
        130,
        "stopped; the same command goes on from here\n",
    )
    assert contents(ensure(LONG_SPEC, out=tmp_path / "set")) == undisturbed
    assert os.listdir(tmp_path) == ["set"]


def test_death_of_a_helper_is_an_error_that_leaves_nothing(tmp_path, started):
    psutil.Process(started.pid).children()[0].kill()
    _, said = started.communicate(timeout=30)
    assert started.returncode == 2
    assert said.count("\n") == 1 and "a helper process ended" in said
    assert os.listdir(tmp_path) == []


def test_remains_of_another_set_are_not_mixed_in(tmp_path):
    other = ensure(ImageSpec(classes=3, per_class=9, size=24), out=tmp_path / "other")
    shutil.move(other, tmp_path / ".set.partial")
    assert len(contents(ensure(SPEC, out=tmp_path / "set"))) == 14
    assert os.listdir(tmp_path) == ["set"]


def test_two_that_ask_at_once_get_one_set(tmp_path, cache, undisturbed):
    log = tmp_path / "log"
    code = (
        "from data_gen import ImageSpec, ensure\n"
        "write = ImageSpec.write_into\n"
        "def noted(self, *rest):\n"
        f"    print('written', file=open({str(log)!r}, 'a'))\n"
        "    write(self, *rest)\n"
        "ImageSpec.write_into = noted\n"
        f"print(ensure({LONG_SPEC!r}))\n"
    )
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    paths = {run.communicate(timeout=60)[0].strip() for run in runs}
    assert [run.returncode for run in runs] == [0, 0]
    assert log.read_text() == "written\n"
    (path,) = paths
    assert contents(Path(path)) == undisturbed
    assert os.listdir(cache) == [Path(path).name]


# No room, no permission


def in_namespace(script: str, *arguments) -> subprocess.CompletedProcess:
    """Run a shell script as root of a mount namespace of its own, or skip."""
    if os.name == "nt" or not shutil.which("unshare"):
        pytest.skip("needs unshare")
    enter = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "-rm"]
    probe = [*enter, "sh", "-c", "mount -t tmpfs none /tmp"]
    if subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("may not mount here")
    return finish(*enter, "sh", "-ec", script, "sh", *map(str, arguments))


@pytest.mark.parametrize("processes", [1, 2])
def test_full_disk_is_one_line_and_leaves_nothing(tmp_path, processes):
    script = (
        'mount -t tmpfs -o size=600k none "$1"; folder="$1"; shift; code=0;'
        '"$@" || code=$?; ls -A "$folder"; exit $code'
    )
    out = tmp_path / "deep" / "set"
    run = in_namespace(script, tmp_path, *command("--out", out, *LONG[:-1], processes))
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == (
        f"python -m data_gen images: error: cannot write {out}: No space left on "
        "device. Choose another folder with --out, out= or the environment variable "
        "DATALOADER_BOOK_CACHE.\n"
    )


@pytest.mark.parametrize("processes", [1, 2])
def test_file_that_cannot_grow_raises_and_leaves_nothing(
    tmp_path, monkeypatch, processes
):
    """A limit on the size of files stands in for a full disk, without any rights."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, hard))
    try:
        with pytest.raises(OSError, match="cannot write .*: File too large"):
            ensure(LONG_SPEC, out=tmp_path / "set", processes=processes)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(tmp_path) == []


READ_ONLY = 'mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"; shift; "$@"'


def test_read_only_folder_is_one_line(tmp_path):
    run = in_namespace(READ_ONLY, tmp_path, *command("--out", tmp_path / "set", *SMALL))
    assert (run.returncode, run.stdout) == (2, "")
    assert f"cannot write {tmp_path / 'set'}: Read-only file system" in run.stderr
    assert run.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_read_only_cache_that_holds_the_set_is_enough(cache):
    root = ensure(SPEC)
    run = in_namespace(READ_ONLY, cache, *command(*SMALL))
    assert (run.returncode, run.stdout, run.stderr) == (0, f"{root}\n", "")


def test_folder_below_a_file_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot write .*set: ") as caught:
        ensure(SPEC, out=tmp_path / "file" / "deep" / "set")
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == ["file"]


# Command line


def test_command_prints_the_path_and_nothing_else(cache):
    run = finish(*command(*SMALL))
    assert (run.returncode, run.stderr) == (0, "")
    root = Path(run.stdout.removesuffix("\n"))
    assert root == ensure(SPEC)


def test_command_passes_every_option_on(tmp_path):
    words = (
        "images --classes 2 --per-class 3,1 --size 20-40 --format png --quality 50 "
        f"--difficulty 0.7 --broken 0.5 --seed 9 --out {tmp_path}/set"
    )
    assert main(words.split()) == 0
    spec = ImageSpec(2, (3, 1), (20, 40), "png", 50, 0.7, 0.5, 9)
    assert contents(tmp_path / "set") == contents(ensure(spec))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--classes 0", "classes must be a whole number from 1 to 100, got 0"),
        ("--classes ten", "--classes: must be a whole number from 1 to 100, got 'ten'"),
        ("--per-class 3,x", "--per-class: must be a whole number from 1 to 1000000"),
        ("--per-class 3,4", "got 2 numbers for 10 classes"),
        ("--size 300-200", "size must be a whole number of pixels from 16 to 4096"),
        ("--size -5", "--size: must be a whole number of pixels from 16 to 4096"),
        ("--format gif", "format must be 'jpeg' or 'png', got 'gif'"),
        ("--quality 100", "quality must be a whole number from 1 to 95, got 100"),
        ("--difficulty 2", "difficulty must be a number from 0 to 1, got 2.0"),
        ("--broken 5%", "--broken: must be a share from 0 to 1, got '5%'"),
        ("--seed -1", "seed must be a whole number from 0 to 4294967295, got -1"),
        ("--processes 0", "processes must be a whole number from 1 to 64, got 0"),
        ("--out /", "out must be a folder below the root, got '/'"),
        ("--colour red", "unrecognized arguments: --colour red"),
    ],
)
def test_wrong_option_is_one_line_and_exit_code_2(words, said, capsys, cache):
    try:
        code = main(["images", *words.split()])
    except SystemExit as end:
        code = end.code
    printed = capsys.readouterr()
    assert (code, printed.out) == (2, "")
    assert said in printed.err
    assert printed.err.count("\n") == 1
    assert not cache.exists()


def test_help_names_every_option_with_its_range(capsys):
    with pytest.raises(SystemExit) as end:
        main(["images", "--help"])
    assert end.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for option in dataclasses.asdict(SPEC):
        assert f"--{option.replace('_', '-')}" in text
    assert "a whole number of pixels from 16 to 4096" in text
    assert "examples:" in text
