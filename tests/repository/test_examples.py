"""The programs of examples/: each prints and returns what the NumPy program gives that it was made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.examples import FILES, IMPORT, of_numpy, ran, text_of

import tilearray as ta


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_gives_what_the_numpy_program_gives(file: Path, capsys: Any):
    pytest.importorskip("scipy")  # one of them takes a function of SciPy
    expected, array = ran(of_numpy(text_of(file)), capsys)
    assert type(array) is np.ndarray
    printed, ours = ran(text_of(file), capsys)
    assert type(ours) is ta.Array
    assert ours.dtype == array.dtype
    np.testing.assert_allclose(np.asarray(ours), array, rtol=2e-6, atol=1e-6)
    assert printed == expected
    with ta.semantics("numpy"):
        assert ran(of_numpy(text_of(file), "tilearray"), capsys)[0] == expected  # the import alone is enough


def test_an_example_is_short_and_needs_at_most_three_edits():
    assert len(FILES) == 13
    for file in FILES:
        text = text_of(file)
        assert text.count(IMPORT) == 1, file.name
        assert text.count("# edit") <= 3, file.name
        assert len(text.splitlines()) <= 60, file.name


def test_a_numpy_program_has_none_of_the_edits():
    text = f'"""Text."""\n\n{IMPORT}\n\nnp.set_semantics("numpy")  # edit\nx = np.ones(3)\n'
    assert of_numpy(text) == '"""Text."""\n\nimport numpy as np\n\nx = np.ones(3)\n'
