"""Kernels without a GPU, in Triton's interpreter.

`run` calls a kernel in a process where Triton interprets; `mended` corrects the interpreter; `rounding` stands for
libdevice's directed roundings; `emulated_gpu` runs the whole library above the driver.
"""
