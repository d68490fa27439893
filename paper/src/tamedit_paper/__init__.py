"""Reproduces the paper and measures our own claims. The product, `tamedit`, never imports this package."""
