"""Synthetic homes beside real ones: fidelity by ε, for the product's generators and for what costs nothing."""
