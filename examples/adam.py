"""Adam, in place: weights of a linear model in bfloat16, with a master copy and moments in float32."""

from ml_dtypes import bfloat16
from numpy.random import default_rng

import tilearray as np  # edit

RATE, BETA1, BETA2, EPSILON = 0.05, 0.9, 0.999, 1e-8


class Adam:
    """The state of one parameter: a float32 master, and the running means of the gradient and of its square."""

    def __init__(self, parameter):
        self.parameter = parameter
        self.master = parameter.astype(np.float32)
        self.mean = np.zeros_like(self.master)
        self.square = np.zeros_like(self.master)
        self.steps = 0

    def step(self, gradient):
        self.steps += 1
        self.mean *= BETA1
        self.mean += (1 - BETA1) * gradient
        self.square *= BETA2
        self.square += (1 - BETA2) * gradient**2
        mean = self.mean / (1 - BETA1**self.steps)
        square = self.square / (1 - BETA2**self.steps)
        self.master -= RATE * mean / (np.sqrt(square) + EPSILON)
        self.parameter[...] = self.master


def main():
    rng = default_rng(1)
    x = rng.normal(size=(256, 8)).astype(np.float32)
    x = np.asarray(x)  # edit
    true = np.arange(8, dtype=np.float32) - 3.5
    y = x @ true
    weights = np.zeros(8, dtype=bfloat16)
    adam = Adam(weights)
    for step in range(301):
        error = x @ weights.astype(np.float32) - y
        if step % 100 == 0:
            print(f"step {step:3}: loss {np.mean(error**2):.3f}")
        adam.step(2 * (x.T @ error) / len(x))
    print("weights:", [float(w) for w in weights])
    assert np.allclose(weights.astype(np.float32), true, atol=0.05)
    return adam.master


if __name__ == "__main__":
    main()
