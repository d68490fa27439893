"""What the core says about reading a table, for someone who drops a file on a page: there are no arguments, only the file."""

import re

REMEDIES = {
    "time": "call the column of time stamps `time`, and write stamps as 2024-01-31 13:00",
    "id": "call the column of meters `meter`",
    "targets": "leave the columns that are no readings out of the file",
    "covariates": "leave the columns that are no readings out of the file",
    "frequency": "write one row at every step, at regular times",
    "round": "write the stamps on a regular grid, without seconds of jitter",
    "timezone": "write the stamps in UTC, such as 2024-01-31 13:00Z",
    "missing": "leave the cell empty where a reading is missing",
    "missing_covariates": "fill it in the file",
    "columns": "write one row per meter and time, with the columns `time`, `meter` and the reading",
    "files": "send one file with the columns `time`, `meter` and the reading",
    "static": "leave the column out of the file",
    "resample": "bring the readings to the model's step",
    "aggregate": "bring the readings to the model's step",
}
_NAMES = "|".join(sorted(REMEDIES, key=len, reverse=True))
_ARGUMENT = re.compile(rf"(?<![^\s(,;:])(?:(?P<name>{_NAMES})=|`(?P<quoted>{_NAMES})`)")


def for_page(sentence: str) -> str:
    """The sentence, with a remedy in the file where it named an argument of `tamedit.read`."""
    problem, apart, remedy = sentence.rpartition("; ")
    found = _ARGUMENT.search(remedy)
    if not apart or found is None:
        return sentence
    problem = for_page(problem) if _ARGUMENT.search(problem) else problem
    return f"{problem}; {REMEDIES[found['name'] or found['quoted']]}."
