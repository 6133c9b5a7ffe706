"""Blur an image with a box, and find its edges with Sobel's filter: slices, padding, arithmetic in place."""

import tilearray as np  # edit

HEIGHT, WIDTH = 120, 160


def scene():
    """A disc and a ramp, as 8-bit grey."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    disc = (x - 60) ** 2 + (y - 50) ** 2 < 40**2
    return np.where(disc, 220, x).astype(np.uint8)


def blur(image, radius=1):
    """The mean of each square of 2 * radius + 1 pixels, in integers."""
    size = 2 * radius + 1
    padded = np.pad(image, radius, mode="edge").astype(np.uint32)
    total = np.zeros(image.shape, np.uint32)
    for dy in range(size):
        for dx in range(size):
            total += padded[dy : dy + image.shape[0], dx : dx + image.shape[1]]
    total //= size * size
    return total.astype(np.uint8)


def edges(image):
    """The strength of each edge, from 0 to 255."""
    p = np.pad(image, 1, mode="reflect").astype(np.float32)
    across = p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:] - p[:-2, :-2] - 2 * p[1:-1, :-2] - p[2:, :-2]
    down = p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:] - p[:-2, :-2] - 2 * p[:-2, 1:-1] - p[:-2, 2:]
    strength = np.hypot(across, down)
    return np.clip(np.rint(strength * (255.0 / strength.max())), 0, 255).astype(np.uint8)


def main():
    image = scene()
    soft = blur(image, radius=2)
    found = edges(soft)
    print(f"image   {image.shape} {image.dtype}, mean {image.mean():.2f}")
    print(f"blurred mean {soft.mean():.2f}, std {soft.std():.2f}, range {soft.min()} to {soft.max()}")
    print(f"edges   {np.count_nonzero(found > 128)} pixels above 128, sum {found.sum()}")
    return found


if __name__ == "__main__":
    main()
