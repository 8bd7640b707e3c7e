"""Recordings of the profiler: files that TensorBoard and Perfetto read, with the names of the user's program.

In processes of their own: a process makes one recording at a time, and what other tests have cached would be missing.
"""

import gzip
import json
import socket

import pytest

from core_processes import BLOCK_JAX, free_port, run, start

#: A small training program under the profiler; the folder for the recording is in the environment.
TRAINING = (
    BLOCK_JAX
    + """
import os, sys
import phlox
import phlox.numpy as jnp

folder = os.environ["RECORDING"]
assert "phlox.profiler" not in sys.modules and "jaxlib._profiler" not in sys.modules
from phlox import profiler

def loss(weights, batch):
    with phlox.named_scope("my_layer"):
        hidden = jnp.tanh(batch @ weights)
    return (hidden**2).sum()

@phlox.jit
def my_step(weights, batch):
    return weights - 0.1 * phlox.grad(loss)(weights, batch)

@profiler.annotate_function
def load_a_batch():
    return jnp.ones((64, 32))

options = profiler.ProfileOptions()
options.session_id = "mine"
with profiler.trace(folder, create_perfetto_trace=True, profiler_options=options):
    weights = jnp.ones((32, 32))
    for step in range(3):
        with profiler.StepTraceAnnotation("train", step_num=step):
            with profiler.TraceAnnotation("all_of_it", count=step):
                weights = my_step(weights, load_a_batch())
    weights.block_until_ready()
from phlox._base import monitoring
assert monitoring.annotation is None
"""
)


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recording")
    run(TRAINING, RECORDING=str(folder), PHLOX_COMPILATION_CACHE_DIR=str(folder / "cache"))
    return folder / "plugins" / "profile" / "mine"


def test_the_files_of_a_recording(recording):
    endings = sorted(path.name.split(".", 1)[1] for path in recording.iterdir())
    assert endings == ["json.gz", "trace.json.gz", "xplane.pb"]
    (chrome,) = recording.glob("*.trace.json.gz")
    (perfetto,) = recording.glob("perfetto_trace.json.gz")
    whole, copy = (json.loads(gzip.decompress(path.read_bytes())) for path in (chrome, perfetto))
    assert "metadata" in whole and "metadata" not in copy
    assert whole["traceEvents"] == copy["traceEvents"]


def test_names_in_the_trace(recording):
    (chrome,) = recording.glob("*.trace.json.gz")
    events = [e for e in json.loads(gzip.decompress(chrome.read_bytes()))["traceEvents"] if e.get("ph") == "X"]

    def of(name):
        return [e for e in events if e["name"] == name]

    assert [e["args"]["step_num"] for e in of("train")] == ["0", "1", "2"]
    assert [e["args"]["count"] for e in of("all_of_it")] == ["0", "1", "2"]
    assert len(of("load_a_batch")) == 3
    # The stages of a program, and its calls from Python.
    for stage in ("tracing my_step for jit", "lowering of jit(my_step)", "XLA compilation of jit(my_step)"):
        assert len(of(stage)) == 1, stage
    assert any(e["name"].endswith(" jit(my_step)") for e in events)
    assert any(e["name"].endswith(" loss") for e in events)
    # What runs on the device says of which program it is.
    assert {e["args"]["hlo_module"] for e in events if "hlo_module" in e.get("args", {})} >= {"jit_my_step"}
    inside = of("all_of_it")[1]
    outside = of("train")[1]
    assert outside["ts"] <= inside["ts"] and inside["ts"] + inside["dur"] <= outside["ts"] + outside["dur"]


def test_names_in_the_planes(recording):
    from jaxlib._profile_data import ProfileData

    (file,) = recording.glob("*.xplane.pb")
    data = ProfileData.from_file(str(file))
    planes = {plane.name: plane for plane in data.planes}
    assert {"/host:CPU", "/host:metadata"} <= set(planes)
    names = {event.name for line in planes["/host:CPU"].lines for event in line.events}
    assert {"train", "all_of_it", "load_a_batch"} <= names
    # The compiled program, with the user's scopes and file, is part of it: what TensorBoard joins operations with.
    content = file.read_bytes()
    assert b"jvp(my_layer)/tanh" in content and b"jit(my_step)" in content


def test_a_recording_is_made_one_at_a_time(tmp_path):
    program = """
        import os
        import phlox
        from phlox import profiler

        def refused(error, call):
            try:
                call()
            except error as raised:
                assert isinstance(raised, phlox.errors.PhloxError)
                return str(raised)
            raise AssertionError("not refused")

        folder = os.environ["RECORDING"]
        refused(RuntimeError, profiler.stop_trace)
        profiler.start_trace(folder)
        assert folder in refused(RuntimeError, lambda: profiler.start_trace(folder))
        profiler.stop_trace()
        refused(RuntimeError, profiler.stop_trace)
        try:
            with profiler.trace(folder):
                raise KeyError
        except KeyError:
            pass
        with profiler.trace(folder):
            phlox.jit(abs)(1.0)
        refused(TypeError, lambda: profiler.annotate_function("name"))
        refused(ValueError, profiler.stop_server)
    """
    run(program, RECORDING=str(tmp_path))


def test_server():
    program = f"""
        import socket, phlox
        from phlox import profiler
        server = profiler.start_server({free_port()})
        try:
            profiler.start_server({free_port()})
        except ValueError as error:
            assert "only one" in str(error)
        else:
            raise AssertionError
        profiler.stop_server()
        with socket.create_server(("", 0)) as held:
            try:
                profiler.start_server(held.getsockname()[1])
            except OSError:
                pass
            else:
                raise AssertionError
    """
    run(program)


def test_other_processes_are_registered_and_taken_back():
    """What XLA then shows of them differs between its versions; on CPU, 0.10.2 shows nothing, as under jax."""
    port = free_port()
    worker = f"""
        import time
        from phlox import profiler
        server = profiler.start_server({port})
        print("ready", flush=True)
        time.sleep(60)
    """
    with start(worker) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            program = f"""
                import os
                from phlox import profiler
                end = profiler.register_subprocess({process.pid}, {port})
                for pid in ({process.pid}, os.getpid()):
                    try:
                        profiler.register_subprocess(pid, {port})
                    except RuntimeError as error:
                        print(error)
                    else:
                        raise AssertionError
                end()
                end = profiler.register_subprocess({process.pid}, {port})
                end()
            """
            run(program)
        finally:
            process.kill()


def test_a_recording_is_served_to_perfetto(tmp_path):
    program = """
        import contextlib, io, os, threading, time, urllib.request
        from phlox import profiler

        fetched = []

        def fetch():
            for _ in range(200):
                time.sleep(0.05)
                try:
                    urllib.request.urlopen("http://127.0.0.1:9001/other")
                except urllib.error.HTTPError as error:
                    fetched.append(error.code)
                except urllib.error.URLError:
                    continue
                reply = urllib.request.urlopen("http://127.0.0.1:9001/perfetto_trace.json.gz")
                fetched.append((reply.headers["Access-Control-Allow-Origin"], len(reply.read()) > 0))
                return

        browser = threading.Thread(target=fetch)
        browser.start()
        out = io.StringIO()
        here = os.getcwd()
        with contextlib.redirect_stdout(out):
            profiler.start_trace(os.environ["RECORDING"], create_perfetto_link=True)
            profiler.stop_trace()
        browser.join()
        assert fetched == [404, ("https://ui.perfetto.dev", True)], fetched
        assert "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/perfetto_trace.json.gz" in out.getvalue()
        assert os.getcwd() == here
    """
    try:
        socket.create_server(("127.0.0.1", 9001)).close()
    except OSError:
        pytest.skip("the only port that Perfetto's page may fetch from, 9001, is in use")
    run(program, RECORDING=str(tmp_path))


def test_memory_profile(tmp_path):
    program = """
        import gzip, json, os
        import phlox
        import phlox.numpy as jnp
        from phlox import profiler
        from jaxlib import _jax

        def hold_some_memory():
            return jnp.full(12345, 3.5)

        held = hold_some_memory()
        profile = json.loads(_jax.pprof_profile_to_json(gzip.decompress(profiler.device_memory_profile())))
        words = profile["stringTable"]
        functions = {f["id"]: words[int(f["name"])] for f in profile["function"]}
        frames = {place["id"]: [functions[line["functionId"]] for line in place["line"]] for place in profile["location"]}
        bytes_by_function = {}
        for sample in profile["sample"]:
            for name in {name for place in sample["locationId"] for name in frames[place]}:
                bytes_by_function[name] = bytes_by_function.get(name, 0) + int(sample["value"][1])
        print(bytes_by_function["hold_some_memory"])
        print([[words[int(kind[part])] for part in ("type", "unit")] for kind in profile["sampleType"]])
        path = os.path.join(os.environ["RECORDING"], "memory.prof")
        profiler.save_device_memory_profile(path)
        saved = json.loads(_jax.pprof_profile_to_json(gzip.decompress(open(path, "rb").read())))
        assert sorted(saved["stringTable"]) == sorted(words) and len(saved["sample"]) == len(profile["sample"])
        assert any(array is not held and array.shape == (12345,) for array in phlox.live_arrays())
        del held
        assert not any(array.shape == (12345,) for array in phlox.live_arrays())
        after = json.loads(_jax.pprof_profile_to_json(gzip.decompress(profiler.device_memory_profile())))
        assert not any(int(sample["value"][1]) == 4 * 12345 for sample in after["sample"])
        assert phlox.devices()[0].memory_stats() is None  # the host's memory has no such counts
    """
    out = run(program, RECORDING=str(tmp_path)).stdout.splitlines()
    assert int(out[0]) == 4 * 12345 + 4  # and the number that fills it
    assert out[1] == "[['allocations', 'count'], ['space', 'bytes']]"


#: sessions that stay in memory, and are written afterwards
SESSIONS = (
    BLOCK_JAX
    + """
import os, pathlib
import phlox, phlox.numpy as jnp
from phlox import profiler

folder = pathlib.Path(os.environ["RECORDING"])
session = profiler.ProfileSession(create_perfetto_trace=True)
assert session.start() is session and session.is_running and session.profile_data is None
for refused in (session.start, lambda: profiler.export_profile_data(session, folder)):
    try:
        refused()
    except RuntimeError as error:
        assert "stop" in str(error)
    else:
        raise AssertionError
with profiler.TraceAnnotation("in_memory"):
    phlox.jit(jnp.sin)(1.0).block_until_ready()
data = session.stop()
assert not session.is_running and not folder.exists()
names = {event.name for plane in data.planes for line in plane.lines for event in line.events}
assert "in_memory" in names and isinstance(next(data.planes.__iter__()), profiler.ProfilePlane)
profiler.export_profile_data(session, folder, session_id="later", create_perfetto_trace=True)
profiler.export_profile_data(session, folder)
with profiler.trace() as second:
    second.stop()
assert second.profile_data is not None
try:
    profiler.stop_trace()
except RuntimeError as error:
    assert "no profile started" in str(error)
else:
    raise AssertionError
"""
)


def test_sessions_in_memory(tmp_path):
    folder = tmp_path / "recording"
    run(SESSIONS, RECORDING=str(folder), PHLOX_COMPILATION_CACHE_DIR=str(tmp_path / "cache"))
    recordings = folder / "plugins" / "profile"
    assert len(list(recordings.iterdir())) == 2
    assert len(list((recordings / "later").glob("*.xplane.pb"))) == 1
    assert (recordings / "later" / "perfetto_trace.json.gz").exists()
