"""How much of a training step goes into preparing the batch: `python benchmarks/preparation.py [--size paper]`.

One process, interleaved: the preparation (gather, masks, units, free fill, diffusion noise) and the whole step (with the
preparation, forward, backward, AdamW). Prints the median times and their ratio. Size `paper`: depth 8, width 256, L = 168.
"""

import argparse
import json
import statistics
import time

import torch

from tamedit.data.calendar import network_covariates
from tamedit.data.scaling import fit_scaling
from tamedit.data.simulate import simulate
from tamedit.diffusion.loss import draw_noise
from tamedit.diffusion.process import Process
from tamedit.model.dit import DiffusionTransformer
from tamedit.model.zoo import SIZES, NetworkConfig
from tamedit.streams import example_keys
from tamedit.training.source import PlainGradients
from tamedit.windows.cut import cut
from tamedit.windows.examples import ANCHOR_FEATURES, ExampleConfig, Examples
from tamedit.windows.masks import MaskConfig

parser = argparse.ArgumentParser()
parser.add_argument("--size", default="paper", choices=sorted(SIZES))
parser.add_argument("--batch", type=int, default=96)
parser.add_argument("--repeats", type=int, default=7)
arguments = parser.parse_args()

series = network_covariates(simulate(), calendar=True)
examples = Examples(cut(series, 168, 24), MaskConfig(), fit_scaling("instance", series), ExampleConfig(), seed=0)
shape = {"target_channels": 1, "covariate_channels": 6, "anchor_features": ANCHOR_FEATURES["free"], "length": 168}
config = NetworkConfig.model_validate(shape | SIZES[arguments.size])
network, process = DiffusionTransformer(config), Process()
gradients = PlainGradients(network, examples, process, arguments.batch)
optimizer = torch.optim.AdamW(network.parameters(), foreach=True)


def prepare(step: int) -> None:
    indices = gradients.indices(step)
    batch = examples.batch(indices, step)
    draw_noise(example_keys(0, "diffusion", step, indices), batch, process)


def whole_step(step: int) -> None:
    gradients(step)
    optimizer.step()


times: dict[str, list[float]] = {"preparation": [], "step": []}
for repeat in range(arguments.repeats + 1):
    for name, run in (("preparation", prepare), ("step", whole_step)):
        begun = time.perf_counter()
        run(repeat)
        if repeat:  # the first round warms up
            times[name].append(time.perf_counter() - begun)
medians = {name: statistics.median(values) for name, values in times.items()}
print(
    json.dumps(
        {
            "size": arguments.size,
            "batch": arguments.batch,
            "threads": torch.get_num_threads(),
            "preparation_ms": round(1e3 * medians["preparation"], 2),
            "step_ms": round(1e3 * medians["step"], 1),
            "share": round(medians["preparation"] / medians["step"], 4),
        }
    )
)
