"""Scaled conversion to narrow formats: which elements share a scale, the scales, values, and their places in memory.

`quantize` divides each block of an array by a scale, so that its largest element is as large as a narrow format allows,
and rounds. `dequantize` is the product of both. The functions are in `tilearray`, which imports this package late.
"""
