"""``python -m tilearray`` is the command ``tilearray``."""

import sys

from tilearray.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
