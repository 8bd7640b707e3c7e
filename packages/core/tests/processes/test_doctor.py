"""``python -m phlox doctor``: its report, as text and as JSON, and its exit status, in processes of their own."""

import json
import subprocess
import sys

from core_processes import SOURCE, environment, run

CHECKS = ["matmul", "conv", "fft", "cholesky", "svd", "sort", "extrema", "selection", "PRNG", "scan"]


def doctor(*options, arguments=("doctor",), **changes):
    return subprocess.run(
        [sys.executable, "-m", "phlox", *arguments, *options],
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=300,
    )


def report(**changes):
    done = doctor("--json", **changes)
    return json.loads(done.stdout), done


def fact(name, **changes):
    """One part of the report, without the checks."""
    done = run(f"import json; from phlox._doctor import facts; print(json.dumps(facts.{name}()))", **changes)
    return json.loads(done.stdout), done.stderr


def test_each_device_agrees_with_numpy():
    found, done = report(PHLOX_NUM_CPU_DEVICES="2")
    assert (done.returncode, done.stderr, found["ok"]) == (0, "", True)
    assert [each["name"] for each in found["devices"]] == ["cpu:0", "cpu:1"]
    expected = [(name, f"cpu:{i}") for i in range(2) for name in CHECKS] + [("psum", "all 2")]
    assert [(each["name"], each["device"]) for each in found["checks"]] == expected
    for each in found["checks"]:
        assert each["ok"] and each["error"] is None and 0 <= each["difference"] <= each["tolerance"] <= 1e-5
        assert each["first_seconds"] > 0 and each["seconds"] > 0
    assert found["versions"]["phlox-compat"].startswith("not installed")
    assert found["versions"]["phlox"] == "0.1.0" and found["versions"]["python"].startswith("3.")
    assert [each["name"] for each in found["platforms"]] == ["cpu"]


def test_the_text_has_every_section():
    done = doctor(PHLOX_PLATFORMS="cpu", PHLOX_NUM_CPU_DEVICES="1")
    assert (done.returncode, done.stderr) == (0, "")
    titles = [line for line in done.stdout.splitlines() if line and not line.startswith(" ")]
    assert titles == [
        *("Versions", "Platforms", "Plugins", "Devices", "Kernels for CPUs", "Cache of compiled programs"),
        *("Environment variables", "Checks against NumPy", "All 11 checks agree."),
    ]
    assert "not installed: sorts, extrema and running sums are XLA's" in done.stdout
    assert "PHLOX_PLATFORMS=cpu" in done.stdout and "read by the flag platforms" in done.stdout


def test_variables_and_what_reads_them():
    found, _ = fact(
        "variables",
        JAX_ENABLE_X64="1",
        JAX_ENABEL_X64="1",
        JAX_NUMPY_RANK_PROMOTION="never",
        JAX_COMPILATION_CACHE_DIR="/nowhere",
        JAX_NUM_CPU_DEVICES="3",
        PHLOX_NUM_CPU_DEVICES="1",
        PHLOX_DEBUG_NAN="1",
        PHLOX_TEST_CASES="3",
        XLA_FLAGS="--xla_cpu_enable_fast_math=false",
        XLA_PYTHON_CLIENT_PREALLOCATE="false",
        XLA_UNKNOWN="1",
    )
    said = {each["name"]: (each["read_by"], each["note"]) for each in found}
    assert said["JAX_ENABLE_X64"] == ("the flag enable_x64", None)
    assert said["JAX_ENABEL_X64"] == (None, "nothing reads it; did you mean JAX_ENABLE_X64?")
    assert said["JAX_NUMPY_RANK_PROMOTION"] == (None, "not followed: it takes one of 'allow', 'warn', 'raise'")
    assert said["JAX_COMPILATION_CACHE_DIR"][1].endswith("see PHLOX_COMPILATION_CACHE_DIR")
    assert said["JAX_NUM_CPU_DEVICES"] == (None, "not read, as PHLOX_NUM_CPU_DEVICES is set")
    assert said["PHLOX_NUM_CPU_DEVICES"] == ("the flag num_cpu_devices", None)
    assert said["PHLOX_DEBUG_NAN"] == (None, "nothing reads it; did you mean PHLOX_DEBUG_NANS?")
    assert said["PHLOX_TEST_CASES"] == ("the tests of phlox", None)
    assert said["XLA_FLAGS"] == ("XLA, when it starts", None)
    assert said["XLA_UNKNOWN"] == (None, "phlox does not read it")
    assert said["XLA_PYTHON_CLIENT_PREALLOCATE"] == ("the client of a GPU, when it starts", None)


def test_strict_settings_of_the_user_fail_no_check():
    _, done = report(
        PHLOX_CHECKS="strict",
        PHLOX_NO_EXECUTION="1",
        PHLOX_NO_TRACING="1",
        PHLOX_TRANSFER_GUARD="disallow",
        PHLOX_NUMPY_RANK_PROMOTION="raise",
        PHLOX_NUMPY_DTYPE_PROMOTION="strict",
        PHLOX_ENABLE_X64="1",
        PHLOX_DEBUG_NANS="1",
    )
    assert done.returncode == 0


def test_without_a_device():
    found, done = report(PHLOX_PLATFORMS="tpu")
    assert (done.returncode, found["ok"], found["checks"], found["devices"]) == (1, False, [], [])
    assert found["platforms"] == [{"name": "tpu", "devices": 0, "state": "not there: Unknown backend: 'tpu'"}]
    assert doctor(PHLOX_PLATFORMS="tpu").stdout.endswith("There is no device to check.\n")


#: what stands for jnp.sort, and what the report says of it
WRONG = {
    "lambda x: x": "FAILED: more than 0e+00",
    "lambda x: phlox.lax.sort(x) * jnp.nan": "FAILED: RuntimeError: the result has a nan or an infinity",
    "lambda x: phlox.lax.sort(x)[1:]": "FAILED: RuntimeError: the result is float32[9999], not float32[10000]",
    "lambda x: x.astype(int)": "FAILED: RuntimeError: the result is int32[10000], not float32[10000]",
    "lambda x: 1 / 0": "FAILED: ZeroDivisionError: division by zero",
}


def test_a_wrong_result_is_named():
    program = f"""
    import phlox, phlox.numpy as jnp
    from phlox._doctor.command import main
    for jnp.sort in [{", ".join(WRONG)}]:
        print("exit status", main(["doctor"]))
    """
    lines = run(program, PHLOX_NUM_CPU_DEVICES="1").stdout.splitlines()
    failed = [line for line in lines if "FAILED" in line]
    assert [line.split()[0] for line in failed] == ["sort"] * len(WRONG)
    assert all(line.endswith(message) for line, message in zip(failed, WRONG.values(), strict=True)), failed
    assert lines.count("exit status 1") == lines.count("1 of 11 checks failed.") == len(WRONG)


def test_installed_plugins(tmp_path):
    package = tmp_path / "some_plugin-1.2.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: some-plugin\nVersion: 1.2\n")
    (package / "entry_points.txt").write_text("[jax_plugins]\nsome = some_plugin\n")
    found, _ = fact("plugins", PYTHONPATH=f"{SOURCE}:{tmp_path}")
    (plugin,) = found
    assert (plugin["name"], plugin["version"]) == ("some_plugin", "some-plugin 1.2")
    assert plugin["state"] == "some-plugin 1.2 fails: ModuleNotFoundError: No module named 'some_plugin'"


def test_state_of_the_cache(tmp_path):
    assert fact("cache", PHLOX_ENABLE_COMPILATION_CACHE="0")[0]["state"] == "off"
    (tmp_path / "program.xla").write_bytes(bytes(10))
    found, _ = fact("cache", PHLOX_COMPILATION_CACHE_DIR=str(tmp_path))
    assert found["state"] == "on" and found["max_bytes"] == 2**30
    assert (found["directory"], found["entries"], found["bytes"]) == (str(tmp_path), 1, 10)
    tmp_path.chmod(0o777)
    found, warning = fact("cache", PHLOX_COMPILATION_CACHE_DIR=str(tmp_path))
    assert found["state"] == "not used" and "others may write to the folder" in warning


def test_usage():
    for arguments in (["docter"], ["doctor", "--jsno"]):
        done = doctor(arguments=arguments)
        assert done.returncode == 2 and "usage: python -m phlox" in done.stderr


def test_importing_phlox_does_not_load_it():
    done = run(
        "import sys, phlox, phlox.numpy; print({'argparse', 'phlox.__main__', 'phlox._doctor'} & set(sys.modules))"
    )
    assert done.stdout == "set()\n"


def test_without_a_command():
    done = doctor(arguments=())
    assert done.returncode == 0 and "doctor" in done.stdout
    assert doctor(arguments=("--version",)).stdout.startswith("phlox 0.")
