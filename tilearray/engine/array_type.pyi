from typing_extensions import TypeVar

from tilearray.arrays.array import Array as Array
from tilearray.engine.signature import ArrayBase
from tilearray.tile_space.grid import Tiles as Tiles

A = TypeVar("A", bound=ArrayBase, default=Array)
