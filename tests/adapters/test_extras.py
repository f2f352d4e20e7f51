import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("adapter", "blocked", "extra"),
    [
        ("boosting", ("xgboost", "lightgbm", "catboost"), "xgboost"),
        ("keras", ("keras",), "keras"),
        ("skorch", ("skorch",), "skorch"),
    ],
)
def test_an_adapter_without_its_framework_names_the_extra(adapter, blocked, extra):
    code = f"""
import sys
for name in {blocked!r}: sys.modules[name] = None
import undermargin
try: import undermargin.adapters.{adapter}
except ImportError as error: print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f'pip install "undermargin[{extra}]"' in result.stdout
