"""The arrows of the house: who may import whom. The rules stand in pyproject.toml, under [tool.importlinter]."""

from pathlib import Path

from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

REPOSITORY = Path(__file__).parents[2]


def test_imports_follow_the_arrows(capsys):
    rules = str(REPOSITORY / "pyproject.toml")
    status = lint_imports(config_filename=rules, no_cache=True, no_logo=True)
    report = capsys.readouterr().out
    assert status == EXIT_STATUS_SUCCESS, f"an import points the wrong way\n{report}"
