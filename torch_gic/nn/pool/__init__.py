"""Coarsening as a pooling layer."""
