"""Clipped gradient sums of any `nn.Module`, per privacy unit."""

from tamedit.privacy.engine.clipping import ClippedSum, Engine

__all__ = ["ClippedSum", "Engine"]
