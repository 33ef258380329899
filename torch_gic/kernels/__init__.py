"""Loads the compiled kernels, and says which are active."""
