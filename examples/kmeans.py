"""k-means: distances by broadcasting, means of selected rows, counts by bincount."""

from numpy.random import default_rng

import tilearray as np  # edit

np.set_semantics("numpy")  # edit

CENTRES = [[0.0, 0.0], [6.0, 1.0], [2.0, 7.0]]


def points(count):
    """`count` points around each centre."""
    rng = default_rng(0)
    noise = rng.normal(size=(len(CENTRES), count, 2))
    noise = np.asarray(noise)  # edit
    return (np.array(CENTRES)[:, None, :] + noise).reshape(-1, 2)


def assign(x, centres):
    """The nearest centre of each point, and the sum of the squared distances."""
    squares = ((x[:, None, :] - centres[None, :, :]) ** 2).sum(axis=-1)
    return squares.argmin(axis=1), squares.min(axis=1).sum()


def fit(x, k):
    """Move k centres to the means of their points until none moves."""
    centres, moved, steps = np.zeros((k, x.shape[1])), x[:k], 0
    while not np.allclose(moved, centres):
        centres[...] = moved
        labels, _ = assign(x, centres)
        moved = np.stack([x[labels == j].mean(axis=0) for j in range(k)])
        steps += 1
    return centres, steps


def main():
    x = points(200)
    centres, steps = fit(x, len(CENTRES))
    labels, inertia = assign(x, centres)
    order = np.argsort(centres[:, 0])
    print(f"{len(x)} points, {steps} steps, inertia {inertia:.2f}")
    for j in order.tolist():
        print(f"centre {centres[j, 0]:6.3f} {centres[j, 1]:6.3f}: {np.bincount(labels, minlength=3)[j]} points")
    return centres[order]


if __name__ == "__main__":
    main()
