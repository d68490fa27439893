"""Published numbers of others, shown next to ours: data, task, method, value, source. None of them was computed here."""

from dataclasses import asdict, dataclass
from typing import Any

TIMESNET = "Wu et al., TimesNet, ICLR 2023 (arXiv 2210.02186)"
RERUN = "a user's re-run, thuml/Time-Series-Library issue 775"
LINEAR = "Zeng et al., Are Transformers Effective for Time Series Forecasting?, AAAI 2023 (arXiv 2205.13504)"
PROBTS = "Zhang et al., ProbTS, NeurIPS 2024 (arXiv 2310.07446)"


@dataclass(frozen=True)
class Published:
    """One published result. Protocols: tslib (imputation), csdi (CRPS_CSDI), ltsf (forecasts of 96 from 96 or more)."""

    data: str
    protocol: str
    task: str
    method: str
    metrics: dict[str, float]
    source: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


_SHARES = ("12.5 %", "25 %", "37.5 %", "50 %")
# MSE and MAE at each share of hidden cells; z-units, windows of 96.
_IMPUTATION = {
    ("etth1", "TimesNet"): ((0.057, 0.159), (0.069, 0.178), (0.084, 0.196), (0.102, 0.215)),
    ("etth1", "DLinear"): ((0.151, 0.267), (0.180, 0.292), (0.215, 0.318), (0.257, 0.347)),
    ("ettm1", "TimesNet"): ((0.019, 0.092), (0.023, 0.101), (0.029, 0.111), (0.036, 0.124)),
    ("ettm1", "DLinear"): ((0.058, 0.162), (0.080, 0.193), (0.103, 0.219), (0.132, 0.248)),
}
_RERUN = (0.062, 0.080, 0.097, 0.116)  # MSE, ETTh1
# MSE and MAE at horizon 96, z-units.
_FORECAST = {
    ("etth1", "TimesNet"): (0.384, 0.402, TIMESNET),
    ("etth1", "DLinear"): (0.375, 0.399, LINEAR),
    ("etth1", "NLinear"): (0.374, 0.394, LINEAR),
    ("etth1", "Autoformer"): (0.449, 0.459, LINEAR),
    ("ettm1", "TimesNet"): (0.338, 0.375, TIMESNET),
    ("ettm1", "DLinear"): (0.299, 0.343, LINEAR),
    ("ettm1", "NLinear"): (0.306, 0.348, LINEAR),
    ("ettm1", "Autoformer"): (0.505, 0.475, LINEAR),
}
# Quantile loss divided by Σ |y| at horizon 96, the data's units.
_CRPS = {
    "etth1": {"iTransformer": 0.321, "PatchTST": 0.328, "CSDI": 0.437, "TimeGrad": 0.455},
    "ettm1": {"CSDI": 0.236, "iTransformer": 0.271, "PatchTST": 0.272, "TimeGrad": 0.522},
}

PUBLISHED: tuple[Published, ...] = (
    *(
        Published(data, "tslib", share, method, {"MSE": mse, "MAE": mae}, TIMESNET)
        for (data, method), row in _IMPUTATION.items()
        for share, (mse, mae) in zip(_SHARES, row, strict=True)
    ),
    *(
        Published("etth1", "tslib", share, "TimesNet, re-run", {"MSE": mse}, RERUN)
        for share, mse in zip(_SHARES, _RERUN, strict=True)
    ),
    *(
        Published(data, "ltsf", "forecast 96", method, {"MSE": mse, "MAE": mae}, source)
        for (data, method), (mse, mae, source) in _FORECAST.items()
    ),
    *(
        Published(data, "csdi", "forecast 96", method, {"CRPS_CSDI": crps}, PROBTS)
        for data, methods in _CRPS.items()
        for method, crps in methods.items()
    ),
)


def published(data: str | None = None, protocol: str | None = None) -> list[Published]:
    """What others report for this data (a name such as etth1) under this protocol; of all if none is named."""
    return [
        one
        for one in PUBLISHED
        if (data is None or one.data == data.lower()) and (protocol is None or one.protocol == protocol)
    ]
