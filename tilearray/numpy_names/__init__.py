"""NumPy's names that the array API standard does not have: aliases, and functions of their own.

The module `names` lists the names of each other one, and `tilearray` imports a module when a program uses one of its
names for the first time. Functions that are combinations of others run wherever those run. The rest is computed by
NumPy on the host (see `tilearray.numpy_names.through_numpy`). On a GPU other functions compute most of it, with NumPy's
formulas (see `tilearray.numpy_names.on_device`); what they do not is a DeviceError.
"""
