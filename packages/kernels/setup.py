"""Builds the shared library. All else about the package stands in pyproject.toml.

The library has no functions of Python's C interface, so one wheel of a platform serves all versions of Python.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import jaxlib
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext


class Library(build_ext):
    def build_extensions(self):
        compile_in_turn = self.compiler.compile

        def compile_in_parallel(sources, **options):
            # Each file is a process of the compiler: with two cores the library is there in half of the time.
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                objects = pool.map(lambda source: compile_in_turn([source], **options), sources)
                return [name for names in objects for name in names]

        self.compiler.compile = compile_in_parallel
        super().build_extensions()

    def get_ext_filename(self, fullname):
        return os.path.join(*fullname.split(".")) + ".so"  # without Python's version


class Wheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(
    cmdclass={"build_ext": Library, "bdist_wheel": Wheel},
    ext_modules=[
        Extension(
            "phlox_kernels._kernels",
            sources=[f"cpp/{name}.cc" for name in ("extrema", "instructions", "places", "scan", "sort", "top_k")],
            depends=["cpp/handler.h", "cpp/network.h", "cpp/order.h", "cpp/parallel.h", "cpp/radix.h"],
            extra_compile_args=[
                *("-std=c++17", "-O3", "-g0", "-Wall", "-Wextra", "-Wno-psabi", "-fvisibility=hidden"),
                *(f"-isystem{path}/include" for path in jaxlib.__path__),
            ],
            language="c++",
        )
    ],
)
