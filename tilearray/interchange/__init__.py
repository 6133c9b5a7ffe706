"""Memory that other libraries own, or borrow from us, without a copy: one module per protocol.

In the order in which `asarray` asks an object:

- `tilearray.interchange.dlpack`: capsules, both ways. The only module that looks into one.
- `tilearray.interchange.numpy`: ndarrays, NumPy's array protocols and Python's buffer protocol.

They work on ``np.ndarray`` and ``np.dtype`` and do not know the class `Array`. No module here imports a framework: an
object is asked by its protocols, and a framework's peculiarities are looked up only if its user has imported it.
"""
