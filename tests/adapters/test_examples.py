"""The examples run from their own files and are what the docs show."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adapters.plain import needs_scan

ROOT = Path(__file__).parents[2]
PAGES = {
    "sklearn_digits": "sklearn",
    "xgboost_digits": "boosting",
    "lightgbm_digits": "boosting",
    "catboost_digits": "boosting",
    "keras_digits": "keras",
    "skorch_digits": "skorch",
    "import_logits": "import",
}
every_example = pytest.mark.parametrize("name", PAGES)


@every_example
def test_an_example_is_short_and_is_the_block_that_its_page_shows(name):
    code = (ROOT / "examples" / f"{name}.py").read_text()
    page = (ROOT / "docs" / "frameworks" / f"{PAGES[name]}.md").read_text()
    assert f"```python\n{code}```" in page
    assert len(code.splitlines()) < 60


@needs_scan
@every_example
def test_an_example_runs_from_its_own_file_and_leaves_a_report(name, tmp_path):
    result = subprocess.run(
        [sys.executable, ROOT / "examples" / f"{name}.py"],
        cwd=tmp_path,
        env=os.environ | {"KERAS_BACKEND": "torch"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert "of the 90 flipped labels" in result.stdout
    assert list(tmp_path.glob("scans/*/report.html"))
