"""What the API takes and gives, as types; its OpenAPI page is made of them. `null` is a missing reading."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

ROWS, CHANNELS, SAMPLES, HORIZON, GENERATED = 100_000, 64, 500, 2_000, 500_000
DRAWN = 4_000_000  # numbers that one answer may draw: cells times samples
Reading = float | None
Share = Annotated[float, Field(ge=0, le=1)]


class Message(BaseModel):
    """Unknown fields and numbers that are not finite are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Points(Message):
    """One meter: stamps at regular steps, and a list of readings for every channel."""

    times: list[Annotated[str, Field(max_length=40)]] = Field(min_length=2, max_length=ROWS)
    values: dict[str, list[Reading]] = Field(
        min_length=1, max_length=CHANNELS, description="by target; null is missing"
    )
    covariates: dict[str, list[float]] = Field(default={}, max_length=CHANNELS)

    @model_validator(mode="after")
    def _aligned(self) -> Self:
        lengths = {name: len(column) for name, column in self.values.items()}
        lengths |= {name: len(column) for name, column in self.covariates.items()}
        for name, length in lengths.items():
            if length != len(self.times):
                raise ValueError(f"{name} has {length} readings and {len(self.times)} stamps")
        return self


class Drawing(Message):
    """What both questions share."""

    series: Points
    samples: int = Field(default=100, ge=4, le=SAMPLES, description="more are smoother, and slower")
    paths: int = Field(default=5, ge=0, le=20, description="single samples to return")
    seed: int = Field(default=0, ge=0, lt=2**31)
    compare: bool = Field(default=True, description="the free distribution beside the model")


class ImputeRequest(Drawing):
    """Fill every missing reading, and every row in `hide`, whose readings nobody is shown before the scores."""

    hide: list[tuple[int, int]] = Field(default=[], max_length=1000, description="[first row, row after the last]")

    @model_validator(mode="after")
    def _inside(self) -> Self:
        for first, end in self.hide:
            if not 0 <= first < end <= len(self.series.times):
                raise ValueError(f"hide [{first}, {end}] is no range of the {len(self.series.times)} rows")
        return self


class ForecastRequest(Drawing):
    """The steps after the last row; or after row `origin`, so that the answer can be compared with what is known."""

    horizon: int | Annotated[str, Field(max_length=20)] = Field(
        default=24, description="steps, or a duration such as 24h"
    )
    origin: int | None = Field(default=None, ge=1, le=ROWS, description="rows from here on are hidden")


class Band(BaseModel):
    """Draws of the rows of an answer. An observed reading stands in all of its lists."""

    median: list[Reading]
    quantiles: dict[str, list[Reading]] = Field(description="0.05 to 0.95 is the 90 % band, 0.25 to 0.75 the 50 % band")
    paths: list[list[Reading]]
    crps: float | None = Field(description="mean over hidden readings, in the data's units; smaller is better")


class Channel(BaseModel):
    model: Band
    free: Band | None
    truth: list[Reading] = Field(description="what was hidden on request; null elsewhere")


class Drawn(BaseModel):
    """Rows are counted in the series that was sent; those of a forecast run on after it."""

    rows: list[int]
    times: list[str]
    channels: dict[str, Channel]


class TableAnswer(BaseModel):
    """A table as the model reads it."""

    meters: list[str]
    meter: str
    columns: list[str] = Field(description="columns with readings, one of which a model of one target reads")
    series: Points
    step_seconds: float
    notes: list[str]


class GenerateRequest(Message):
    """Synthetic homes: nobody's readings."""

    homes: int = Field(default=6, ge=1, le=500)
    days: int = Field(default=28, ge=1, le=366)
    start: str = Field(default="2024-01-01", max_length=10)
    seed: int = Field(default=0, ge=0, lt=2**31)


class Homes(BaseModel):
    times: list[str]
    homes: list[str]
    values: dict[str, list[list[float]]] = Field(description="by target, one list per home")


class AccountRequest(Message):
    """The numbers of a mechanism: Poisson sampling, Gaussian noise."""

    sampling_rate: float = Field(gt=0, le=1, description="q")
    noise_multiplier: float = Field(gt=0, le=1e6, description="σ")
    steps: int = Field(ge=1, le=1_000_000)
    delta: float = Field(default=1e-5, gt=0, lt=1)
    contributions: int = Field(default=1, ge=1, le=64, description="k, examples that one unit touches")
    neighbour: Literal["removal", "replacement"] = "removal"


class Spent(BaseModel):
    epsilon: float | None = Field(description="null: no guarantee")
    rdp: float | None
    accountant: str
    delta: float
    protection: str


class PlanRequest(Message):
    """Homes, weeks of each, and the privacy loss that one unit may have."""

    homes: int = Field(default=250, ge=2, le=1_000_000)
    weeks: int = Field(default=52, ge=1, le=520, description="of each home")
    epsilon: float = Field(default=3.0, ge=0.05, le=100)
    delta: float = Field(default=1e-5, ge=1e-12, le=1e-2)
    unit: Literal["week", "series"] = Field(default="week", description="a week of a home, or a whole home")


class UnitLoss(BaseModel):
    unit: str
    words: str
    epsilon: float | None = Field(description="null: not computed, or no guarantee")
    protection: str
    reason: str


class Stored(BaseModel):
    """A measured run: its score over that of the free distribution, by task. Below 1 is better."""

    epsilon: float | None = Field(description="null: without privacy")
    tuned: bool = Field(description="false: the shipped model as it is, no private data used")
    seeds: int
    ratio: dict[str, float]
    low: dict[str, float] = Field(description="lowest seed")
    high: dict[str, float] = Field(description="highest seed")


class PlanAnswer(BaseModel):
    examples: int
    batch_size: int
    steps: int
    noise_multiplier: float
    sampling_rate: float
    signal_to_noise: float
    share_of_limit: float
    expectation: str = Field(description="what tuning can be expected to do at this budget")
    warning: str | None
    units: list[UnitLoss]


class Measured(BaseModel):
    """Stored results, by privacy unit."""

    source: str
    units: dict[str, list[Stored]]


class ModelAnswer(BaseModel):
    """What is served. Nothing here was measured on the data."""

    name: str
    words: str
    targets: list[str]
    covariates: list[str]
    step_seconds: float
    step: str
    window: int
    private: bool
    statement: str
    samples: bool = Field(description="whether the simulator can make a sample series")
    upload_bytes: int


class CardUnit(BaseModel):
    unit: str
    words: str
    own: bool
    epsilon: float | None
    protection: str | None
    certainty: str
    reason: str


class CardAnswer(BaseModel):
    """The privacy card in short."""

    title: str
    private: bool
    released: bool
    statement: str
    units: list[CardUnit]
    not_covered: list[str]
    checks: dict[str, str]
    cannot_be_checked: str


class Health(BaseModel):
    present: int = Field(description="requests that wait or compute")
    computing: int
    finished: int
    cancelled: int


class Problem(BaseModel):
    """Every error has this form."""

    error: str = Field(description="one sentence")
    code: str
