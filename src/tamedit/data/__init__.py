"""A CSV, Parquet file, DataFrame or array becomes a `Series`: values, stamps, channel roles, meters.

Letters used in this folder: T rows, K target channels, V covariate channels, M meters; B windows of L steps in scaling.
"""
