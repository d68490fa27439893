"""The words of the page that no result changes, and the settings of a scale."""

from tamedit.diffusion.process import Process
from tamedit.diffusion.sample import SamplerConfig
from tamedit.runs.config import TrainingConfig
from tamedit.runs.recipe import Scale
from tamedit_paper.claims.verdicts import ENOUGH
from tamedit_paper.grid.cells import Cell
from tamedit_paper.grid.matching import plain_rate
from tamedit_paper.grid.recipes import EFFORT, training_of

INTRODUCTION = """# The paper's tables and figures, made again

Made by `tamedit reproduce` from the results under `paper/results/`; do not edit
(notes by hand: `paper/docs/{notes}`).
The paper: *DP-aware AdaLN-Zero: Taming Conditioning-Induced Heavy-Tailed Gradients in Differentially Private Diffusion*.
So far {progress}.
"""

STAND_IN = """# The paper's tables with {source} meters in the place of PrivatePower

Made by `tamedit reproduce all --source {source}` from the results under `paper/results/`; do not edit
(notes by hand: `paper/docs/{notes}`).
The regime, the settings and what differs from the paper stand on [the first page](reproduction.md), which has a real household
in the place of PrivatePower. Rows of ETTh1 and ETTm1 are the same runs on both pages.
So far {progress}.
"""

HOW_TO_RUN = """## How to run it

    tamedit reproduce all --scale laptop --seeds 3 --workers 2

What is done is skipped and what was begun is continued, so the command may be stopped and given again. One table alone:

    tamedit reproduce tab:ablation-forecast --scale laptop --seeds 3

This page from the results that are there, without any run:

    tamedit reproduce all --scale laptop --tables --out paper/docs

On a cluster every run is a command of its own; runs share nothing but the folder of results. As a SLURM array:

    tamedit reproduce all --scale paper --seeds 3 --print-commands > commands.txt
    sbatch --array=1-$(wc -l < commands.txt)%16 --gpus=1 --wrap 'eval "$(sed -n "${SLURM_ARRAY_TASK_ID}p" commands.txt)"'

With GNU parallel on one machine:

    tamedit reproduce all --scale laptop --seeds 3 --print-commands | parallel --jobs 8
"""

DIFFERENCES = """## What differs from the paper

- **Data.** PrivatePower is not public. The tables use one real household (UCI, hourly) in the same pipeline (windows of 168
  hours, stride 24, 70/15/15 by time, six calendar channels); [a second page](reproduction-simulated.md) has simulated homes.
  ETTh1 and ETTm1 are the paper's own.
- **Size and length.** A laptop's network is smaller and trains for fewer steps. Its σ, learning rate and C are its own, so
  that the numbers without units agree (see the regime above). Fewer steps cost less privacy: ε of both stands there.
- **Privacy.** The paper states σ and no ε. Ours stands beside every σ, of the whole mechanism, for a window (what the paper's
  layout protects) and for one reading. The paper's form standardises with statistics of the training split, which ε does not
  cover. Noise of these runs is reproducible, so they carry no guarantee at all: they are experiments.
- **Block.** The paper prints v = γ ⊙ u + β; with AdaLN-Zero's initialisation no gradient would ever flow. Ours is DiT's
  v = (1 + γ) ⊙ u + β with γ bounded.
- **Bounds.** The paper does not give (C₀, Γ₀, B₀, A₀). Ours come from a sweep on simulated meters under the paper's noise
  (see the reference magnitudes), the same for every data set.
- **Runs.** The paper gives one number per cell and no scatter. Here it is seeds and intervals.
- **Step times** are those of the grid itself, with other runs on the same machine.
- **Added.** Free baselines under every table of utility; they are marked.
- **Not here.** Every run has the paper's form. Our own form, which starts from the free distribution, is measured on
  [the page of the ε curve](private-utility.md).
"""

REGIME = """A smaller network that trains for fewer steps at the same σ and learning rate is another experiment. Scale `{scale}`
chooses its σ, learning rate and clipping norm so that the numbers without units are the paper's: *noise over signal*
σ √P / B, the *walk* rate √T √width (how far noise alone carries what a layer says; AdamW makes steps of the size of
its rate, whatever σ is), warm-up and averaging as shares of the steps, and, at σ = 0.1, the share of clipped gradients. The
paper's σ names a row throughout this page; the σ that was used stands here. Samples are drawn without any clamp, in
all arms alike.
"""

UNMATCHED = """One number cannot be matched by a small run: the signal adds up over T steps and the noise over √T, so that √T over
the noise over signal, what a whole run can learn, is smaller here than in the paper. Clipping rates are those of
DP-vanilla; C was set on the simulator at σ = 0.1.
"""

COLLAPSE = """## Collapsed runs

A run has *collapsed* at a task if R² < −8 (a mark set after the first runs were seen): its RMSE is more than
three times that of one constant guess. RMSE in z-units, over seeds.
"""

LOSS_BY_TIME = """## Loss and samples

A lower training loss need not give better samples. ε-prediction turns an error δ of the network at diffusion step t into
an error δ √(1 − ᾱ_t) / √ᾱ_t of the clean series. The mean loss is made at small t, where that factor is small. Samples
are made from large t downwards, where the factor is 10 to 100 and the loss is a few hundredths. So a network whose loss
falls at small t and rises at large t has a better loss and worse samples. The table shows the loss on test windows at
some t, and *in italics* the error of the clean series that it stands for (z-units). Medians over seeds.
"""

REFERENCE_SWEEP = """## The reference magnitudes

(C₀, Γ₀, B₀, A₀) come from a sweep on the simulator at the paper's noise (`tamedit reproduce reference`): one factor
on the p99 of ‖c‖, |γ|, |β|, |α| that training without noise shows (19, 3.3, 1.4, 2.5). Medians over seeds. The factor
that was taken, 0.25, is the preset *medium*, 0.9 of the reference; it is the same for all data sets. Then each of the four
bounds by itself, halved and doubled; and both arms at other depths, with the same bounds.
"""

RULES = f"""A claim is a list of comparisons over the same seeds. A comparison *holds* if its 95 % t-interval lies where the claim
says, is the *opposite* if it lies elsewhere, *open* if it reaches across the border, and has *few seeds* below {ENOUGH}.
A claim is **reproduced** if every comparison holds, **not reproduced** if none does, **partly** otherwise, and **not yet run**
while a comparison is missing or has few seeds. *Effect*: how much better, in percent, from the least to the most of the
comparisons, *the paper's in italics*; a claim that holds with less than a tenth of the paper's mean effect is reproduced
**in direction only**. No correction is made for the number of comparisons: of those without any effect
behind them, one in forty holds by chance. Three seeds see little (the interval is the mean ± 2.5 standard deviations), so
*open* is no proof that there is nothing. The rules and margins were set before any DP-aware run was seen, but for the tenth,
which was added after the first seven runs, one seed each.
"""


def settings_text(scale: Scale) -> str:
    """What a scale spends, beside the paper's settings."""
    ours, paper, defaults = EFFORT[scale], EFFORT["paper"], dict(TrainingConfig.model_validate({}))
    training = {**defaults, **training_of(Cell(source="household", arm="vanilla", sigma=0.1), scale)}
    _, steps = SamplerConfig().resolved(Process(prediction="epsilon"))
    rows = [
        *((key, ours.network[key], paper.network[key]) for key in ("depth", "width", "heads")),
        *((name, f"{training[key]:.6g}", f"{defaults[key]:.6g}") for name, key in _TRAINING.items()),
        ("test windows", ours.windows, f"not said ({paper.windows} at scale `paper`)"),
        ("samples per window", ours.samples, f"not said ({paper.samples} at scale `paper`)"),
        ("sampler steps", steps, f"not said ({steps} at scale `paper`)"),
    ]
    lines = [
        f"| setting | scale `{scale}` | the paper's |",
        "|---|---|---|",
        *(f"| {a} | {b} | {c} |" for a, b, c in rows),
    ]
    same = (
        f"Clipping threshold C = {ours.clip:g} where the paper has 1; δ = 1e-5. The private arms of a table differ in the "
        f"forward pass alone. Runs without privacy have the learning rate {plain_rate(ours.network['width']):g}."
    )
    return "## Settings\n\n" + "\n".join(lines) + f"\n\n{same}\n"


_TRAINING = {
    "training steps": "steps",
    "batch size": "batch_size",
    "learning rate": "learning_rate",
    "weight decay": "weight_decay",
    "warm-up steps": "warmup",
    "moving average": "ema",
}
