"""Pieces of a language model: embeddings, rotary positions, masked attention, top-k, and a gradient by scatter-add."""

from numpy.random import default_rng

import tilearray as np  # edit

WORDS, WIDTH, LENGTH = 50, 16, 12


def rotary(x):
    """Rotate each pair of columns by an angle that grows with the position."""
    position = np.arange(x.shape[0], dtype=np.float32)[:, None]
    angle = position * 10000.0 ** (-np.arange(0, WIDTH, 2, dtype=np.float32) / WIDTH)
    cos, sin = np.cos(angle), np.sin(angle)
    rotated = np.empty_like(x)
    rotated[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
    rotated[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
    return rotated


def attention(x):
    """Each position sees itself and those before it."""
    scores = np.einsum("id,jd->ij", x, x) / np.sqrt(WIDTH)
    visible = np.tril(np.ones((len(x), len(x)), dtype=bool))
    scores = np.where(visible, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ x


def top(logits, k):
    """The indices of the k largest of each row, largest first."""
    return np.argsort(-logits, axis=-1)[:, :k]


def main():
    rng = default_rng(0)
    table, words = rng.normal(size=(WORDS, WIDTH)).astype(np.float32), rng.integers(0, WORDS, LENGTH)
    table, words = np.asarray(table), np.asarray(words)  # edit
    y = attention(rotary(table[words]))
    print("top 3 of the last position:", top(y @ table.T, 3)[-1].tolist())
    gradient = np.zeros_like(table)
    np.add.at(gradient, words, y)
    rows = np.flatnonzero(np.any(gradient != 0, axis=1))
    print(f"{len(rows)} rows of the table have a gradient: {rows.tolist()}")
    print(f"norm {np.linalg.norm(gradient):.4f}, sum {gradient.sum():.3f}")
    return gradient


if __name__ == "__main__":
    main()
