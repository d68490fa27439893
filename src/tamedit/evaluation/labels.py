"""What people call the methods that are compared."""

LABELS = {
    "model": "this model",
    "free_distribution": "free distribution",
    "free_probabilistic": "free fill + Gaussian",
    "seasonal_draws": "draws from the same hour",
    "linear_interpolation": "linear interpolation",
    "seasonal_naive": "seasonal naive",
    "seasonal_mean": "seasonal mean",
    "free_fill": "free fill",
}
