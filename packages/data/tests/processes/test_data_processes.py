"""What shows only from outside a process: what imports do, how programs end, what is said of missing libraries."""

import pytest

import phlox_data  # noqa: F401  (the programs below are text: this says what they need to tools that read imports)
from data_processes import finish, output, start

EXTRAS = {
    "torch": ("from_torch", "pip install torch"),
    "tensorflow": ("from_tf", "pip install tensorflow-cpu"),
    "tensorflow_datasets": ("local_tfds", "pip install tensorflow-datasets array_record"),
    "grain": ("from_grain", "pip install grain"),
    "datasets": ("from_huggingface", "pip install datasets"),
}


def test_import_starts_nothing_and_imports_no_extra():
    assert (
        output(
            """
            import sys, threading
            import phlox_data
            from phlox._xla import devices
            assert threading.active_count() == 1
            assert not devices.started()
            names = ("torch", "tensorflow", "tensorflow_datasets", "grain", "datasets", "webdataset", "torchdata", "jax")
            print([name for name in (*names, "multiprocessing", "concurrent.futures") if name in sys.modules])
            """
        )
        == "[]"
    )


def test_arrays_need_no_extra():
    program = """
        import numpy as np, phlox_data as data
        print([batch.tolist() for batch in data.batches(np.arange(5), 2)])
        """
    assert output(program, without=[*EXTRAS, "jax"]) == "[[0, 1], [2, 3], [4]]"


@pytest.mark.parametrize("library", EXTRAS)
def test_a_missing_extra_is_one_clear_error(library):
    function, command = EXTRAS[library]
    program = f"""
        import phlox_data as data
        arguments = {{"local_tfds": ("folder", "name", {{}}), "from_huggingface": (None, 4)}}
        arguments = arguments.get("{function}", (lambda epoch: None,))
        try:
            data.{function}(*arguments)
        except data.MissingExtraError as error:
            assert isinstance(error, ImportError) and error.name == error.library == "{library}"
            print(error.command)
            print(error)
        """
    first, what, where, instead = output(program, without=[library]).splitlines()
    assert first == command
    assert what == f"{library} is not installed"
    assert "<string>" in where
    assert instead == f"  instead: {command}"


def test_a_broken_extra_says_itself_what_is_wrong(tmp_path):
    (tmp_path / "torch.py").write_text("import no_such_part")
    program = f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import phlox_data as data
        try:
            data.require("torch")
        except ModuleNotFoundError as error:
            print(error)
        """
    assert output(program) == "No module named 'no_such_part'"


AT_EXIT = {
    "in use": "it = data.batches(x, 8, seed=0).epoch(0); next(it)",
    "never used": "it = data.batches(x, 8, seed=0).epoch(0)",
    "in a cycle": "it = [data.batches(x, 8).epoch(0)]; it.append(it)",
    "used up": "it = data.batches(x, 8).epoch(0); list(it)",
    "half way through pmap": "it = data.batches(x, 8, devices=phlox.devices()[:4]).epoch(0); next(it)",
    "in a loop that fails": "for batch in data.batches(x, 8): raise SystemExit(0)",
}


@pytest.mark.parametrize("case", AT_EXIT)
def test_programs_end_with_a_thread_at_work(case):
    program = f"""
        import numpy as np, phlox, phlox_data as data
        x = np.zeros((4096, 64), np.float32)
        {AT_EXIT[case]}
        """
    assert output(program) == ""


def test_an_interrupt_ends_a_loop_that_waits():
    process = start(
        """
        import threading, phlox_data as data

        class Stuck:
            def __len__(self):
                return 4

            def __getitem__(self, number):
                print("reading", flush=True)
                threading.Event().wait()

        from phlox_data import _ahead
        _ahead._PATIENCE = 0.1
        for batch in data.from_tfds(Stuck(), 2):
            pass
        """
    )
    assert process.stdout.readline() == "reading\n"
    process.send_signal(2)
    status, _, err = finish(process)
    assert status == -2
    assert "KeyboardInterrupt" in err


def test_a_forked_child_can_drop_an_iterator():
    """The child has no thread to stop; it must not wait for one."""
    assert (
        output(
            """
            import os, signal, warnings
            from phlox_data._ahead import Ahead

            it = Ahead((i for i in range(100)), 2)
            next(it)
            warnings.simplefilter("ignore")  # newer Pythons say of every fork beside threads that it may hang
            child = os.fork()
            if not child:
                signal.alarm(20)
                it.close()
                del it
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            print(next(it))
            """
        )
        == "1"
    )
