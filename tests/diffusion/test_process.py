"""The noise process against its definition and against diffusers."""

import torch

from tamedit.diffusion.process import Process
from tamedit.diffusion.sample import make_scheduler


def test_the_schedule_is_the_papers() -> None:
    process = Process()
    beta = torch.linspace(1e-4, 0.02, 1000, dtype=torch.float64)
    torch.testing.assert_close(process.signal.double() ** 2, (1 - beta).cumprod(0), rtol=1e-5, atol=1e-8)
    torch.testing.assert_close(process.signal**2 + process.noise**2, torch.ones(1000))


def test_diffusers_has_the_same_schedule() -> None:
    for solver in ("ddpm", "ddim", "dpm++"):
        scheduler = make_scheduler(Process(), solver)
        torch.testing.assert_close(scheduler.alphas_cumprod.sqrt(), Process().signal, rtol=1e-4, atol=1e-6)


def test_targets_lead_back_to_the_clean_data() -> None:
    clean, epsilon = torch.randn(6, 4, 2), torch.randn(6, 4, 2)
    time = torch.tensor([0, 1, 100, 500, 998, 999])
    for prediction in ("epsilon", "v"):
        process = Process(prediction=prediction)
        noised, wanted = process.diffuse(clean, epsilon, time)
        signal, noise = process.signal[time][:, None, None], process.noise[time][:, None, None]
        back = (noised - noise * wanted) / signal if prediction == "epsilon" else signal * noised - noise * wanted
        torch.testing.assert_close(back, clean, rtol=1e-2, atol=2e-3)
