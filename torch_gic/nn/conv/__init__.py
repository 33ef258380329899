"""The convolution."""
