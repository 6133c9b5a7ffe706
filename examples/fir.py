"""A low-pass filter for sound: a windowed sinc, applied through a view of sliding windows, written as 16-bit PCM."""

from numpy.lib.stride_tricks import sliding_window_view

import tilearray as np  # edit

np.set_semantics("numpy")  # edit

RATE = 16_000
TAPS = 101


def low_pass(cutoff):
    """A sinc of `TAPS` points under Hamming's window, with sum 1."""
    n = np.arange(TAPS) - (TAPS - 1) / 2
    h = np.sinc(2 * cutoff / RATE * n) * (0.54 + 0.46 * np.cos(2 * np.pi * n / (TAPS - 1)))
    return h / h.sum()


def filtered(x, h):
    """Each output is the dot product of a window with the reversed filter."""
    return sliding_window_view(x, len(h)) @ h[::-1]


def pcm(x):
    """16-bit integers at 90% of full scale."""
    return np.rint(x / np.abs(x).max() * 0.9 * 32767).astype(np.int16)


def main():
    t = np.arange(RATE // 4) / RATE
    low, high = np.sin(2 * np.pi * 440 * t), 0.5 * np.sin(2 * np.pi * 5000 * t)
    h = low_pass(1500)
    y = filtered(low + high, h)
    delay = (TAPS - 1) // 2
    rest = y - low[delay : delay + y.size]
    print(f"{y.size} samples, rms {np.sqrt(np.mean(y**2)):.6f}, rms of the rest {np.std(rest):.6f}")
    print(f"same as convolve: {np.allclose(y, np.convolve(low + high, h, mode='valid'))}")
    sound = pcm(y)
    print(f"PCM from {sound.min()} to {sound.max()}, {np.count_nonzero(np.diff(np.signbit(sound)))} zero crossings")
    return sound


if __name__ == "__main__":
    main()
