"""Lint raises no false alarm: no errors and no warnings on healthy loaders."""

import pytest
import support_lint as support
import torch

from helpers.advise import doctor

METHODS = torch.multiprocessing.get_all_start_methods()
USUAL = "fork" if "fork" in METHODS else "spawn"


def alarms(findings) -> list[str]:
    return [str(finding) for finding in findings.errors + findings.warnings]


@pytest.mark.parametrize("role", ["train", None])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", support.HEALTHY)
def test_static_rules(name, workers, role, tmp_path):
    loader = support.healthy(name, tmp_path, workers, USUAL)
    assert alarms(doctor.lint(loader, role=role)) == []


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", support.HEALTHY)
def test_sample_rules(name, workers, tmp_path):
    loader = support.healthy(name, tmp_path, workers, USUAL)
    findings = doctor.lint(loader, probe="worker")
    assert alarms(findings) == []
    assert "DL902" not in findings.codes, str(findings)


@pytest.mark.parametrize("method", [m for m in METHODS if m != "fork"])
@pytest.mark.parametrize("name", support.HEALTHY)
def test_static_rules_where_workers_are_spawned(name, method, tmp_path):
    loader = support.healthy(name, tmp_path, 2, method)
    assert alarms(doctor.lint(loader)) == []


@pytest.mark.parametrize("name", ["image folder", "seeded numpy"])
def test_sample_rules_where_workers_are_spawned(name, tmp_path, capfd):
    loader = support.healthy(name, tmp_path, 2, "spawn")
    findings = doctor.lint(loader, probe="worker")
    assert alarms(findings) == []
    assert "DL902" not in findings.codes, str(findings)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("name", ["in memory", "table", "memory-mapped"])
def test_evaluation(name, tmp_path):
    dataset, _ = support.HEALTHY[name](tmp_path)
    loader = torch.utils.data.DataLoader(dataset, batch_size=3)
    assert alarms(doctor.lint(loader, role="eval", probe="worker")) == []
