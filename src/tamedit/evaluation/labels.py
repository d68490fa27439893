"""What people call the methods that are compared."""

LABELS = {
    "model": "this model",
    "free_probabilistic": "free fill + Gaussian",
    "linear_interpolation": "linear interpolation",
    "seasonal_naive": "seasonal naive",
    "seasonal_mean": "seasonal mean",
    "free_fill": "free fill",
}
