"""The second program, in small, on some of the eight virtual devices that tests have."""

import phlox
from example_runs import results, run, size_of_png
from phlox_examples import data_parallel

SMALL = ("data-parallel", "--widths", "16", "--epochs", "2")


def test_results(tmp_path, capsys):
    assert phlox.device_count() == 8
    run(*SMALL, "--devices", "4", "--out", tmp_path)
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert lines[0].split("   ") == ["epoch", "loss on 1 device", "on 4", "largest difference"]
    found = results(tmp_path, "data-parallel")
    assert found["settings"]["devices"] == 4
    assert len(found["losses"]) == 2 * 22
    differences = [abs(step["one_device"] - step["all_devices"]) for step in found["losses"]]
    assert found["largest_difference"] == max(differences) <= found["tolerance"] == 1e-5
    assert found["losses"][-1]["one_device"] < found["losses"][0]["one_device"] - 0.5
    for number, line in enumerate(lines[1:3]):
        shown = [float(word) for word in line.split()[1:3]]
        steps = found["losses"][22 * number : 22 * (number + 1)]
        assert abs(shown[0] - sum(step["one_device"] for step in steps) / 22) < 1e-9
        assert abs(shown[1] - sum(step["all_devices"] for step in steps) / 22) < 1e-9
    width, height = size_of_png(tmp_path / "data-parallel.png")
    assert 1000 < width < 3000 and 500 < height < 2000


def test_losses_that_differ(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(data_parallel, "TOLERANCE", 1e-30)
    run(*SMALL, "--devices", "8", "--out", tmp_path, status=1)
    err = capsys.readouterr().err
    assert err.startswith("./train: the losses differ by ") and err.endswith(", which is more than 1e-30\n")
    assert results(tmp_path, "data-parallel")["largest_difference"] > 0, "there to be looked at"


def test_more_devices_than_there_are(tmp_path, capsys):
    assert phlox.device_count() == 8
    run(*SMALL, "--devices", "16", "--out", tmp_path, status=2)
    assert capsys.readouterr().err == (
        "./train: --devices 16: this machine has 8; with PHLOX_PLATFORMS=cpu set it makes virtual ones\n"
    )
