# The extension is called by this package alone, whose own functions are annotated.
from typing import Any

def __getattr__(name: str) -> Any: ...
