"""Conway's Game of Life on a torus: neighbours by roll, rules by masks, a glider gun's first glider."""

import tilearray as np  # edit

GUN = """
........................O...........
......................O.O...........
............OO......OO............OO
...........O...O....OO............OO
OO........O.....O...OO..............
OO........O...O.OO....O.O...........
..........O.....O.......O...........
...........O...O....................
............OO......................
"""


def board(height, width):
    """An empty board with the gun at its upper left."""
    cells = np.zeros((height, width), np.uint8)
    rows = GUN.split()
    gun = np.array([[mark == "O" for mark in row] for row in rows], dtype=np.uint8)
    cells[1 : 1 + gun.shape[0], 1 : 1 + gun.shape[1]] = gun
    return cells


def step(cells):
    """The next generation."""
    around = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)]
    neighbours = sum(np.roll(cells, shift, axis=(0, 1)) for shift in around)
    return ((neighbours == 3) | ((neighbours == 2) & (cells == 1))).astype(np.uint8)


def main():
    cells = board(24, 40)
    history = [cells.sum()]
    for _ in range(60):
        cells = step(cells)
        history.append(cells.sum())
    for row in cells[:16]:
        print("".join(".O"[cell] for cell in row))
    print("alive every tenth generation:", [int(n) for n in history[::10]])
    return cells


if __name__ == "__main__":
    main()
