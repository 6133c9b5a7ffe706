"""Helpers that several test modules share. No test module imports another test module.

| module | contains |
|---|---|
| `oracles/` | expected values from written rules, exact arithmetic and NumPy; nothing of tilearray is computed there |
| `drawing`, `layouts`, `drawn_keys` | Hypothesis strategies: calls, layouts, index keys |
| `properties` | runs a drawn call on a device and compares it with the oracles |
| `hard_to_round`, `rounding_cases` | operands that are hard to round, and the comparisons of all devices |
| `kernels`, `raw_kernels` | generated kernel sources without a GPU, and what the compiler makes of them |
| `interpreter/` | kernels in Triton's interpreter, and an emulated GPU made of it |
| `recorder` | arrays on a GPU that does not exist, and the kernels that calls on them need |
| `cubins` | invented compiled kernels, for the tests of the disk cache |
| `capsules`, `pairs`, `views` | DLPack structures; the same memory and views in NumPy and tilearray |
| `conformance`, `cutile` | the same question to tilearray and to another system |
| `processes`, `threads` | code in other interpreters, and in threads that start together |
"""
