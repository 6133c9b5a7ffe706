"""Calls of torch, CuPy and JAX beside the calls of this library that give the same; tables of the documentation.

`tests/repository/test_partners.py` runs both columns of torch on one input, and looks up the names of all columns.
"""

from __future__ import annotations

TORCH = {
    "torch.cat([x, x])": "ta.concat([x, x])",
    "torch.clamp(x, 0, 1)": "ta.clip(x, 0, 1)",
    "torch.sum(x, dim=1, keepdim=True)": "ta.sum(x, axis=1, keepdims=True)",
    "torch.amax(x, dim=1)": "ta.max(x, axis=1)",
    "torch.cumsum(x, dim=1)": "ta.cumulative_sum(x, axis=1)",
    "torch.std(x, dim=1)": "ta.std(x, axis=1, correction=1)",
    "torch.var(x)": "ta.var(x, correction=1)",
    "torch.softmax(x, dim=1)": "ta.softmax(x, axis=1)",
    "torch.logsumexp(x, dim=1)": "ta.logsumexp(x, axis=1)",
    "torch.sort(x, dim=1).values": "ta.sort(x, axis=1)",
    "torch.argsort(x, dim=1)": "ta.argsort(x, axis=1)",
    "torch.gather(x, 1, i)": "ta.take_along_axis(x, i, axis=1)",
    "torch.index_select(x, 1, i[0])": "ta.take(x, i[0], axis=1)",
    "torch.masked_select(x, x > 0)": "x[x > 0]",
    "torch.permute(x, (1, 0))": "ta.permute_dims(x, (1, 0))",
    "torch.movedim(x, 0, 1)": "ta.moveaxis(x, 0, 1)",
    "torch.unsqueeze(x, 0)": "ta.expand_dims(x, axis=0)",
    "x.expand(4, 2, 3)": "ta.broadcast_to(x, (4, 2, 3))",
    "x.repeat(2, 1)": "ta.tile(x, (2, 1))",
    "torch.repeat_interleave(x, 2, dim=1)": "ta.repeat(x, 2, axis=1)",
    "torch.flip(x, (1,))": "ta.flip(x, axis=1)",
    "torch.roll(x, 1, dims=1)": "ta.roll(x, 1, axis=1)",
    "torch.mul(x, 2)": "ta.multiply(x, 2)",
    "torch.div(x, 3)": "ta.divide(x, 3)",
    "torch.div(x, 3, rounding_mode='floor')": "ta.floor_divide(x, 3)",
    "torch.ne(x, 1)": "ta.not_equal(x, 1)",
    "torch.where(x > 0, x, 0.0)": "ta.where(x > 0, x, 0.0)",
    "torch.matmul(x, x.T)": "ta.matmul(x, x.T)",
    "torch.einsum('ij,kj->ik', x, x)": "ta.einsum('ij,kj->ik', x, x)",
    "torch.linalg.vector_norm(x)": "ta.linalg.vector_norm(x)",
    "x.to(torch.float64)": "x.astype('float64')",
}
CUPY = {
    "cupy.asnumpy(x)": "ta.to_numpy(x)",
    "@cupy.fuse()": "@ta.fuse",
    "cupy.ElementwiseKernel": "@ta.pointwise",
    "cupyx.scatter_add(x, i, y)": "ta.add.at(x, i, y)",
    "cupy.random.default_rng(0)": "ta.random.default_rng(0)",
    "cupy.cuda.Stream()": "ta.cuda.Stream()",
    "cupy.cuda.Event()": "ta.cuda.Event()",
    "cupy.cuda.get_current_stream()": "ta.cuda.current_stream()",
    "cupy.cuda.set_allocator(f)": "ta.cuda.set_allocator(f)",
    "cupy.get_default_memory_pool().free_all_blocks()": "ta.cuda.empty_cache()",
    "cupy.get_default_memory_pool().set_limit(n)": "ta.cuda.set_memory_limit(n)",
    "cupyx.empty_like_pinned(x)": "ta.cuda.pinned_like(x)",
    "cupy.cuda.runtime.getDeviceCount()": "ta.cuda.device_count()",
}
JAX = {
    "jax.jit(f)": "ta.fuse(f)",
    "jax.grad(f)": "ta.grad(f)",
    "jax.value_and_grad(f)": "ta.value_and_grad(f)",
    "jax.vjp": "ta.vjp",
    "jax.jvp": "ta.jvp",
    "x.at[i].set(y)": "x[i] = y",
    "x.at[i].add(y)": "ta.add.at(x, i, y)",
    "jax.device_put(x, d)": "ta.to_device(x, d)",
    "jax.device_get(x)": "ta.to_numpy(x)",
    "x.block_until_ready()": "x.block_until_ready()",
    "jax.nn.softmax(x)": "ta.softmax(x, axis=-1)",
    "jax.nn.logsumexp(x)": "ta.logsumexp(x)",
    "jax.lax.top_k(x, k)": "ta.top_k(x, k)",
    "jnp.concatenate([x, y])": "ta.concat([x, y])",
    "jnp.cumsum(x)": "ta.cumulative_sum(x)",
}
PARTNERS = {"torch": TORCH, "CuPy": CUPY, "JAX": JAX}
