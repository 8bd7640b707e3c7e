"""Reductions, quantiles, histograms and covariances."""
