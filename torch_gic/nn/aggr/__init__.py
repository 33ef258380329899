"""Readouts of graphs."""
