# What the BUILD files of this repository have in common; Pants loads it before them (pants.toml).

# Tests that install packages or run ./train start pip, which needs to hear how to reach its index. PYTHONPATH is emptied
# for them: they must find the phlox that they installed, not the sources beside them.
INSTALLING = (  # a tuple: Pants wants constants that hash
    "PYTHONPATH=",
    "PIP_CACHE_DIR",
    "PIP_CERT",
    "PIP_CONFIG_FILE",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "PIP_NO_INDEX",
    "PIP_TRUSTED_HOST",
    "PYENV_ROOT",
    "REQUESTS_CA_BUNDLE",
)


def suite(area, kind, sources, alone=False, **fields):
    """The tests of one kind, which is their name and their tag: ./pants --tag=conformance test ::

    Files of a suite share processes, unless `alone`, which is for tests that count processes, threads or seconds.
    """
    python_tests(
        name=kind,
        sources=sources,
        tags=[kind],
        batch_compatibility_tag=None if alone else area + "-" + kind,
        **fields,
    )


def package(name, by_name=(), needs=(), native=()):
    """A package of the repository: sources, tests by what they need, and a wheel as pip would build it.

    Sources that find the others by names in strings are given as `by_name`, the packages in which they look as `needs`;
    those of a library in C++, and what builds it, as `native`.
    """
    python_sources(name="modules", sources=["src/**/*.py", *("!" + path for path in by_name)], dependencies=[":data"])
    if by_name:
        python_sources(name="by-name", sources=by_name, dependencies=[":modules", *needs])
    target(name="src", dependencies=[":modules", ":by-name"] if by_name else [":modules"])
    resources(name="data", sources=["src/**/*", "!**/*.py", "!**/*.egg-info/**"])

    # What lies outside the named folders is a unit test.
    suite(name, "conformance", ["tests/conformance/**/test_*.py"])
    # These name the package only inside the programs that they start.
    suite(name, "processes", ["tests/processes/**/test_*.py"], alone=True, dependencies=[":src"])
    suite(name, "torch", ["tests/torch/**/test_*.py"])
    suite(name, "tensorflow", ["tests/tensorflow/**/test_*.py"])
    suite(
        name,
        "unit",
        [
            "tests/**/test_*.py",
            "!tests/conformance/**",
            "!tests/processes/**",
            "!tests/torch/**",
            "!tests/tensorflow/**",
        ],
    )
    python_test_utils(name="utils", sources=["tests/**/*.py", "!**/test_*.py"])

    resources(name="project", sources=["pyproject.toml", "README.md", "LICENSE"])
    if native:
        resources(name="native", sources=native)
    python_distribution(
        name="wheel",
        dependencies=[":project", ":src", *([":native"] if native else [])],
        provides=python_artifact(name=name),
        generate_setup=False,
        sdist=False,
    )
