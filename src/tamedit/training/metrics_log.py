"""Numbers of a run, one JSON object per line."""

import contextlib
import json
from pathlib import Path

from tamedit.files import write_text


class MetricsLog:
    """Appends lines; after a resume, lines newer than the checkpoint are dropped."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, numbers: dict[str, float]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(numbers) + "\n")

    def read(self) -> list[dict[str, float]]:
        """Every line that is a step; a line that is incomplete after a crash, or damaged, is skipped."""
        rows = []
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
                with contextlib.suppress(json.JSONDecodeError):
                    rows.append(json.loads(line))
        return [row for row in rows if isinstance(row, dict) and isinstance(row.get("step"), int)]

    def rewind(self, step: int) -> None:
        """Drop what came after `step`."""
        kept = [row for row in self.read() if row["step"] <= step]
        write_text(self.path, "".join(json.dumps(row) + "\n" for row in kept))
