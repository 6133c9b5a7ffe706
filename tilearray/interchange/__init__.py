"""Memory that other libraries own, or borrow from us, without a copy: one module per protocol.

In the order in which `asarray` asks an object:

- `tilearray.interchange.numpy`: ndarrays, NumPy's array protocols and Python's buffer protocol.
- `tilearray.interchange.dlpack`: DLPack, both ways; `capsules` is the only module that looks into one, and
  `c_exchange` takes the way without a capsule where a producer offers it.
- `tilearray.interchange.cuda_array_interface`: the CUDA Array Interface, both ways.

They work on ``np.ndarray`` and ``np.dtype`` and do not know the class `Array`; what lies on a GPU is described by
`tilearray.interchange.foreign_memory`. No module here imports a framework: an object is asked by its protocols, and a framework's
peculiarities are looked up only if its user has imported it.
"""
