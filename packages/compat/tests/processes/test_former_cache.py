"""The cache of programs on disk under its former name, in a process of its own."""

from compat_processes import BOTH
from core_processes import run


def test_the_folder_is_set_under_its_former_name(tmp_path):
    program = f"""
        import phlox
        from phlox.experimental.compilation_cache import compilation_cache
        compilation_cache.set_cache_dir({str(tmp_path / "programs")!r})
        compilation_cache.reset_cache()
        phlox.jit(lambda x: x * 3 + 1)(phlox.numpy.ones(7))
        assert phlox.cache.info().directory == phlox.config.compilation_cache_dir
        print(phlox.cache.info().entries > 0)
    """
    assert run(program, PYTHONPATH=BOTH).stdout == "True\n"
    assert list((tmp_path / "programs").iterdir())
