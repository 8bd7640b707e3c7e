"""Builds the shared library. All else about the package stands in pyproject.toml.

The library has no functions of Python's C interface, so one wheel of a platform serves all versions of Python.
"""

import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

import jaxlib
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

# The slowest to compile are first: with two cores both are busy to the end. All take 55 s of one core, 10 s each of the
# first two. With -O2 they take a fifth less, and the kernels the time of those that are not made of vectors.
SOURCES = (
    "sort",
    "scan",
    "extrema",
    "top_k",
    "rows_times_matrix",
    "scatter_add",
    "conv",
    "byte_products",
    "places",
    "sum",
    "small_products",
    "sine",
    "instructions",
)
HEADERS = ("handler", "network", "order", "parallel", "radix")
INCLUDED = [f"{path}/include" for path in jaxlib.__path__]

if sys.platform == "win32":
    # clang-cl: Microsoft's own compiler has no vectors of a given size (cpp/network.h).
    OPTIONS = ["/std:c++17", "/O2", "/EHsc", "-Wno-psabi", *(f"-imsvc{path}" for path in INCLUDED)]
    SUFFIX = ".dll"
else:
    OPTIONS = ["-std=c++17", "-O3", "-g0", "-Wall", "-Wextra", "-Wno-psabi", "-fvisibility=hidden"]
    OPTIONS += [f"-isystem{path}" for path in INCLUDED]
    SUFFIX = ".so"


class Library(build_ext):
    def build_extensions(self):
        compile_in_turn = self.compiler.compile

        def compile_in_parallel(sources, **options):
            # Each file is a process of the compiler: with two cores the library is there in half of the time.
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                objects = pool.map(lambda source: compile_in_turn([source], **options), sources)
                return [name for names in objects for name in names]

        if sys.platform == "win32":
            self.compiler.initialize()
            self.compiler.cc = shutil.which("clang-cl") or self.compiler.cc
        self.compiler.compile = compile_in_parallel
        super().build_extensions()

    def get_ext_filename(self, fullname):
        return os.path.join(*fullname.split(".")) + SUFFIX  # without Python's version

    def get_export_symbols(self, extension):
        return []  # not PyInit__kernels, which a linker on Windows would look for


class Wheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(
    cmdclass={"build_ext": Library, "bdist_wheel": Wheel},
    ext_modules=[
        Extension(
            "phlox_kernels._kernels",
            sources=[f"cpp/{name}.cc" for name in SOURCES],
            depends=[f"cpp/{name}.h" for name in HEADERS],
            extra_compile_args=OPTIONS,
            language="c++",
        )
    ],
)
