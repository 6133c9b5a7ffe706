"""Arrays as chunks of dask.array.

``import tilearray`` does not import dask: `tilearray.interchange.waiting` fills dask's tables after dask's modules are
imported, before or after ours. dask finds the backend "tilearray" by an entry point as well.

- `tilearray.dask.chunks`: what dask looks up by the type of a chunk.
- `tilearray.dask.backend`: the creation functions under ``dask.config.set({"array.backend": "tilearray"})``.
- `tilearray.dask.tokens`: the names of arrays in graphs.
- `tilearray.dask.serialize`: arrays in messages between processes.
- `tilearray.dask.workers`: a worker for each GPU of a host.
"""
