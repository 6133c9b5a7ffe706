"""Libraries that take arrays of any namespace, run with tilearray: their own tests, or tables of calls.

One module a client. A *suite* (`scipy_suite`, `scikit_learn`, `array_api_extra`, `dask_suite`) runs the tests that the
library ships, with our namespace in the place of the ones that it knows. *Calls* (`einops_calls`, `xarray_calls`,
`dask_calls`, `numpy_calls`) and *kernels* (`npbench`) run the same source with NumPy and with tilearray, and compare.
`run` chooses; `causes` says why a failure is there and whose it is; `record` counts and writes.
"""
