"""The second program, in small, on some of the eight virtual devices that tests have."""

import pytest

from example_runs import check_picture, results, run
from phlox_examples import data_parallel

SMALL = ("data-parallel", "--widths", "16", "--epochs", "2")


def test_results(tmp_path, capsys):
    run(*SMALL, "--devices", "4", "--out", tmp_path)
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert lines[0].split("   ") == ["epoch", "loss on 1 device", "loss on 4", "largest difference"]
    found = results(tmp_path, "data-parallel")
    assert found["settings"]["devices"] == 4
    assert len(found["losses"]) == 2 * 22
    differences = [abs(step["one_device"] - step["all_devices"]) for step in found["losses"]]
    assert found["largest_difference"] == max(differences) <= found["tolerance"] == 1e-5
    assert found["losses"][-1]["one_device"] < found["losses"][0]["one_device"] - 0.5
    for number, line in enumerate(lines[1:3]):
        shown = [float(word) for word in line.split()[1:3]]
        steps = found["losses"][22 * number : 22 * (number + 1)]
        assert abs(shown[0] - sum(step["one_device"] for step in steps) / 22) < 1e-6
        assert abs(shown[1] - sum(step["all_devices"] for step in steps) / 22) < 1e-6
    check_picture(tmp_path / "data-parallel.png")


def test_losses_that_differ(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(data_parallel, "TOLERANCE", 1e-30)
    run(*SMALL, "--devices", "8", "--out", tmp_path, status=1)
    err = capsys.readouterr().err
    assert err.startswith("./train: the losses differ by ") and err.endswith(", which is more than 1e-30\n")
    assert results(tmp_path, "data-parallel")["largest_difference"] > 0, "there to be looked at"


def test_more_devices_than_there_are(tmp_path, capsys):
    run(*SMALL, "--devices", "16", "--out", tmp_path, status=2)
    assert capsys.readouterr().err == (
        "./train: --devices 16: this machine has 8; with PHLOX_PLATFORMS=cpu set it makes virtual ones\n"
    )


@pytest.mark.filterwarnings("error")
def test_one_device_draws_without_a_warning(tmp_path):
    """All differences are zero, which a logarithmic axis cannot show."""
    run(*SMALL, "--devices", "1", "--out", tmp_path)
    assert results(tmp_path, "data-parallel")["largest_difference"] == 0


def test_several_processes(tmp_path, capsys):
    run(*SMALL, "--devices", "4", "--processes", "2", "--out", tmp_path)
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines()[0].split("   ")[2].strip() == "loss on 4 in 2"
    found = results(tmp_path, "data-parallel")
    assert found["settings"]["processes"] == 2
    assert found["largest_difference"] <= found["tolerance"]
    # The same numbers as with as many devices in one process: what is compared does not depend on where they are.
    run(*SMALL, "--devices", "4", "--out", tmp_path / "one")
    pairs = zip(found["losses"], results(tmp_path / "one", "data-parallel")["losses"], strict=True)
    assert max(abs(a["all_devices"] - b["all_devices"]) for a, b in pairs) <= 1e-6
