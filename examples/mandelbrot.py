"""The Mandelbrot set: complex arithmetic where a mask says that a point has not escaped."""

import tilearray as np  # edit

np.set_semantics("numpy")  # edit

STEPS = 60


def escapes(width, height):
    """The step at which each point leaves the circle of radius 2; `STEPS` where it stays."""
    real = np.linspace(-2.2, 0.8, width)
    imaginary = np.linspace(-1.2, 1.2, height)
    c = real[None, :] + 1j * imaginary[:, None]
    z = np.zeros_like(c)
    count = np.full(c.shape, STEPS)
    inside = np.ones(c.shape, dtype=bool)
    for step in range(STEPS):
        z[inside] = z[inside] ** 2 + c[inside]
        escaped = inside & (np.abs(z) > 2.0)
        count[escaped] = step
        inside &= ~escaped
    return count


def main():
    count = escapes(120, 80)
    for row in count[::8, ::3]:
        print("".join(" .:-=+*#%@"[min(n // 3, 9)] for n in row.tolist()))
    print(f"{(count == STEPS).sum()} of {count.size} points stay; {count.sum()} steps")
    return count


if __name__ == "__main__":
    main()
