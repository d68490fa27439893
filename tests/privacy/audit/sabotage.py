"""Steps with one mistake each, in place of the real step of a plan. Every mistake is easy to make."""

import numpy as np

from tamedit.privacy.audit import DiracStep
from tamedit.privacy.audit.dirac import dirac_losses
from tamedit.privacy.noise import GaussianNoise


class NoiseForgotten(DiracStep):
    """Three micro-batches, each of which should get noise of σC / √3; only the last one gets it."""

    def __call__(self, step):
        drawn = self.drawn(step)
        sums = sum(self.clipped(part) for part in np.array_split(drawn, 3))
        GaussianNoise(self.plan.noise_standard_deviation / 3**0.5, test_seed=self.plan.seed).add_([sums], step=step)
        return sums.div_(self.plan.divisor)[:, 0], drawn


class NoiseHalved(DiracStep):
    """The noise multiplier taken for twice its value, as if C were the diameter and not the radius."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.noise = GaussianNoise(self.plan.noise_standard_deviation / 2, test_seed=self.plan.seed)


class ClippedPerDraw(DiracStep):
    """Every draw of an example is clipped on its own, and the clipped draws are added up."""

    def clipped(self, drawn):
        rows = np.repeat(drawn, self.plan.draws)
        return self.engine(dirac_losses, self.rows(rows), units=len(rows), draws=1).sums["weight"]


class RealisedDivisor(DiracStep):
    """The mean over the batch that was drawn: its size is no secret any more."""

    def divisor(self, drawn):
        return max(1, len(drawn))


class FixedBatch(DiracStep):
    """Always q · N examples, drawn without replacement, as a data loader that shuffles does."""

    def drawn(self, step):
        generator = np.random.default_rng([self.plan.seed, step])
        size = round(self.plan.sampling_rate * self.batches_of)
        return np.sort(generator.permutation(len(self.axes))[:size])

    batches_of = 0  # N of the data set that the plan was made for
