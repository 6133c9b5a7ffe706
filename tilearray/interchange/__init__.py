"""Memory that other libraries own, or borrow from us, without a copy: one module per protocol.

`asarray` asks an object in this order:

- `tilearray.interchange.numpy`: ndarrays, NumPy's array protocols and Python's buffer protocol.
- `tilearray.interchange.dlpack`: DLPack, both ways. Only `capsules` reads and writes the inside of a capsule.
  `c_exchange` takes memory without a capsule if the producer offers this.
- `tilearray.interchange.cuda_array_interface`: the CUDA Array Interface, both ways.

These modules use ``np.ndarray`` and ``np.dtype``, and do not depend on the class `Array`.
`tilearray.interchange.foreign_memory` describes memory on a GPU. No module here imports a framework. They ask an object
for its protocols, and check a framework's peculiarities only if the user has imported the framework.
"""
