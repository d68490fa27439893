"""Where to compute."""

import torch

from tamedit.errors import UserError


def choose_device(name: str = "auto") -> torch.device:
    """CUDA, then Apple's MPS, then the CPU; or what is asked for, if it is there."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()  # "meta" has no values
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"device={name!r} is not available here; use device='auto' or device='cpu'.") from error
    return device
