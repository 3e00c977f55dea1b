"""One setting switches on all that needs a repository address, and off again."""

import json
import shutil

import pytest
import small_chapter

from tools import notebooks, repository

ADDRESS = "https://github.com/OWNER/NAME"


@pytest.fixture
def root(tmp_path):
    """A copy of what the setting touches, without an address."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "chapters").mkdir()
    for name in ("_config.yml", "pyproject.toml"):
        shutil.copy(notebooks.ROOT / name, tmp_path)
    notebooks.save(small_chapter.chapter(), tmp_path / "chapters/small.ipynb")
    (tmp_path / "tools/repository.json").write_text('{"address": "", "tag": ""}')
    repository.write(repository.Repository(), tmp_path)
    return tmp_path


def state(root):
    """Every file below a folder."""
    return {p: p.read_text() for p in root.rglob("*") if p.is_file()}


def test_set_switches_everything_on(root):
    changed = repository.write(repository.Repository(ADDRESS, "v1"), root)
    assert changed == ["tools/repository.json", "_config.yml", "chapters/small.ipynb"]
    config = (root / "_config.yml").read_text()
    assert f'  url: "{ADDRESS}"\n' in config
    assert "  use_repository_button: true\n" in config
    assert "  use_issues_button: true\n" in config
    assert f'  colab_url: "{repository.COLAB}"\n' in config
    notebook = notebooks.load(root / "chapters/small.ipynb")
    line = f'ADDRESS, TAG, HOME = "{ADDRESS}", "v1", "dataloader-book"\n'
    assert line in notebooks.tagged(notebook, "setup")[0].source
    assert repository.read(root) == repository.Repository(ADDRESS, "v1")


def test_clear_undoes_set(root):
    before = state(root)
    assert repository.main(["set", ADDRESS + ".git/", "--tag", "v1"], root) == 0
    assert repository.read(root).address == ADDRESS.removesuffix(".git")
    assert state(root) != before
    assert repository.main(["clear"], root) == 0
    assert state(root) == before


def test_the_tag_is_the_release_unless_given(root):
    repository.main(["set", ADDRESS], root)
    assert repository.read(root).tag == "v0.1.0"


def test_show(root, capsys):
    repository.main(["show"], root)
    repository.main(["set", ADDRESS, "--tag", "v1"], root)
    capsys.readouterr()
    repository.main(["show"], root)
    assert capsys.readouterr().out == f"{ADDRESS} at v1\n"


@pytest.mark.parametrize(
    "address",
    ["book", "http://github.com/a/b", 'https://github.com/a/"b', "https://e.org/a/b"],
)
def test_what_is_no_address_is_refused_in_one_line(root, address, capsys):
    before = state(root)
    with pytest.raises(SystemExit) as stop:
        repository.main(["set", address], root)
    assert stop.value.code == 2
    assert "is no repository address" in capsys.readouterr().err
    assert state(root) == before


def test_a_missing_line_of_the_configuration_is_said(root):
    config = (root / "_config.yml").read_text().replace("  colab_url:", "  colab:")
    with pytest.raises(ValueError, match="colab_url"):
        repository.rewrite_config(config, repository.Repository())


def test_the_setting_of_the_project_is_applied():
    """Nobody edited one of the files by hand."""
    setting = repository.read()
    config = (notebooks.ROOT / "_config.yml").read_text(encoding="utf-8")
    assert repository.rewrite_config(config, setting) == config
    stored = json.loads((notebooks.ROOT / "tools/repository.json").read_text())
    assert set(stored) == {"address", "tag"}
