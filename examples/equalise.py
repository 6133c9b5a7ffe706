"""Equalise the histogram of a dark photograph: bincount, a cumulative sum, a lookup table, percentiles."""

from numpy.random import default_rng

import tilearray as np  # edit


def photograph():
    """Dark, with little contrast."""
    rng = default_rng(0)
    grains = rng.gamma(2.0, 15.0, (96, 128))
    grains = np.asarray(grains)  # edit
    return grains.clip(0, 255).astype(np.uint8)


def equalised(image):
    """Map each level so that the cumulative histogram becomes a straight line."""
    counts = np.bincount(image.ravel(), minlength=256)
    cumulative = np.cumsum(counts)
    first = cumulative[cumulative > 0][0]
    table = np.round((cumulative - first) / (image.size - first) * 255.0)
    return np.clip(table, 0, 255).astype(np.uint8)[image]


def describe(name, image):
    low, middle, high = np.percentile(image, [5, 50, 95])
    histogram, _ = np.histogram(image, bins=8, range=(0, 256))
    print(f"{name:8} 5% {low:5.1f}, median {middle:5.1f}, 95% {high:5.1f}; levels {len(np.unique(image))}")
    print(f"{'':8} histogram {histogram.tolist()}")


def main():
    image = photograph()
    result = equalised(image)
    describe("before", image)
    describe("after", result)
    deciles = np.digitize(result, np.linspace(0, 255, 11)[1:-1])
    print("pixels by tenth:", np.bincount(deciles.ravel()).tolist())
    return result


if __name__ == "__main__":
    main()
