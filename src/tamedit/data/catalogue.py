"""The catalogue of named data sets: their files, licences and what is publicly known about them."""

from dataclasses import dataclass

from tamedit.errors import UserError

_ETT = "https://raw.githubusercontent.com/zhouhaoyi/ETDataset/main/ETT-small/"


@dataclass(frozen=True)
class Source:
    """A named data set, with the public facts that a model of it may use for free."""

    name: str
    file: str
    sha256: str
    licence: str
    description: str
    origin: str  # how to get it
    url: str | None  # where it is downloaded from; None if by hand
    frequency: str  # step between rows
    extent: str  # of the study, by its publication: the first moment and the first that does not belong
    window: int  # L
    stride: int  # distance of training windows
    typical_level: tuple[float, ...]  # per target, rounded: what one expects before seeing the data
    typical_scale: tuple[float, ...]
    non_negative: bool


# The ETT files are public; these are the rounded mean and deviation of ETTh1's training rows (the first 8,640).
_ETT_LEVEL = (8.0, 2.0, 5.0, 0.75, 2.8, 0.8, 17.0)
_ETT_SCALE = (6.0, 2.0, 5.5, 2.0, 1.0, 0.6, 9.0)
# Homes: national averages, not the files. A French home uses about 4.7 MWh of electricity a year, a British one about
# 3.1 MWh; the spread of an hourly load is about as large as its mean.
_FRENCH_HOME, _BRITISH_HOME = (0.54,), (0.35,)
# fmt: off
# The homes of `ideal` that are for test: drawn once from the 254, and fixed since (see `split_by_meter`).
IDEAL_TEST = frozenset(
    f"ideal_home{number:03d}"
    for number in (
        47, 64, 65, 72, 76, 84, 97, 100, 102, 120, 135, 138, 141, 143, 145, 146, 154, 160,
        162, 164, 165, 171, 174, 183, 194, 197, 200, 206, 213, 225, 229, 230, 235, 238, 242, 256,
        259, 270, 275, 279, 281, 293, 298, 305, 306, 307, 308, 311, 320, 322, 325, 326, 328, 333,
    )
)
# fmt: on

SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        Source(
            name="etth1",
            file="ETTh1.csv",
            sha256="f18de3ad269cef59bb07b5438d79bb3042d3be49bdeecf01c1cd6d29695ee066",
            licence="CC BY-ND 4.0",
            description="electricity transformer, hourly, 7 variables, 2016-07 to 2018-06 (Zhou et al. 2021)",
            origin="downloaded from the ETDataset repository",
            url=_ETT + "ETTh1.csv",
            frequency="1h",
            extent="2016-07-01/2018-06-26T20:00",
            window=96,
            stride=1,
            typical_level=_ETT_LEVEL,
            typical_scale=_ETT_SCALE,
            non_negative=False,
        ),
        Source(
            name="ettm1",
            file="ETTm1.csv",
            sha256="6ce1759b1a18e3328421d5d75fadcb316c449fcd7cec32820c8dafda71986c9e",
            licence="CC BY-ND 4.0",
            description="the same transformer, every 15 minutes (Zhou et al. 2021)",
            origin="downloaded from the ETDataset repository",
            url=_ETT + "ETTm1.csv",
            frequency="15min",
            extent="2016-07-01/2018-06-26T20:00",
            window=96,
            stride=1,
            typical_level=_ETT_LEVEL,
            typical_scale=_ETT_SCALE,
            non_negative=False,
        ),
        Source(
            name="household",
            file="household_uci_hourly.csv",
            sha256="97a7502b46ec2182d147e753329674ea257d1fff19eb3bf802f0516aac17bf62",
            licence="CC BY 4.0",
            description="one household near Paris, kWh per hour, 2006-12 to 2010-11 (UCI 235, doi 10.24432/C58K54)",
            origin="household_power_consumption.txt from https://archive.ics.uci.edu/dataset/235",
            url=None,
            frequency="1h",
            extent="2006-12-16T17:00/2010-11-26T22:00",
            window=168,
            stride=24,
            typical_level=_FRENCH_HOME,
            typical_scale=_FRENCH_HOME,
            non_negative=True,
        ),
        Source(
            name="ideal",
            file="ideal_homes_hourly.parquet",
            sha256="af85c816f3bfd0a0a39a31034cf75ec3c1cb544ebb3f8888ea88723732cf2fe9",
            licence="CC BY 4.0",
            description="254 homes around Edinburgh, hourly mean kVA, 2016-08 to 2018-06 (Pullinger et al. 2021)",
            origin="the electricity readings of IDEAL from https://datashare.ed.ac.uk/handle/10283/3647",
            url=None,
            frequency="1h",
            extent="2016-08-01/2018-07-01",
            window=168,
            stride=24,
            typical_level=_BRITISH_HOME,
            typical_scale=_BRITISH_HOME,
            non_negative=True,
        ),
    )
}

PUBLIC = ("etth1", "ettm1")  # these tell nothing about a person


def source(name: str) -> Source:
    """The facts of a named data set."""
    if name not in SOURCES:
        raise UserError(f"There is no data set {name!r}; choose one of {', '.join(SOURCES)}, or give a file.")
    return SOURCES[name]
