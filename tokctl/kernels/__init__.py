"""Numba kernels: arrays in, arrays out. Nothing here imports the rest of tokctl."""
