"""Heat in a plate with three cold sides and a warm one: explicit steps in place until they change little."""

import tilearray as np  # edit

np.set_semantics("numpy")  # edit

SIZE = 48


def plate():
    """Cold, with a warm upper side and a hot spot."""
    u = np.zeros((SIZE, SIZE))
    u[0, :] = 100.0
    u[SIZE // 2, SIZE // 2] = 500.0
    return u


def step(u, new):
    """Write one step of diffusion of `u` into `new`, with the borders of `u`."""
    new[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.2 * (
        u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
    )
    new[0, :], new[-1, :], new[:, 0], new[:, -1] = u[0, :], u[-1, :], u[:, 0], u[:, -1]


def main():
    u = plate()
    new = np.empty_like(u)
    change, count = np.inf, 0
    while change > 0.5:
        step(u, new)
        change = np.linalg.norm(new - u)
        u, new = new, u
        count += 1
    down, across = np.gradient(u)
    flow = np.hypot(down, across)
    print(f"{count} steps, mean {u.mean():.6f}, centre {u[SIZE // 2, SIZE // 2]:.6f}")
    print("middle column:", np.round(u[::8, SIZE // 2], 3).tolist())
    row, column = np.unravel_index(flow[8:].argmax(), flow[8:].shape)
    print(f"steepest away from the warm side: row {row + 8}, column {column}: {flow[8:].max():.4f}")
    return u


if __name__ == "__main__":
    main()
