"""Tile space: an array as a grid of tiles of one shape, as in cuTile.

The function is in `tilearray`, which imports this package late.
"""
