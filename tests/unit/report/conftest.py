"""The synthetic run lives with the tests of the gate."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "gate"))
