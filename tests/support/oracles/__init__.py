"""Expected values, from other sources than the code under test.

`formats` rounds and casts by the published parameters of dtypes; `rules` holds the written rules and one line for each
operation; `promotion` has the common dtype under the five semantics; `exact` and `rounding` compute exactly and round
once; `calls` puts them together into the outcome of a call; `axes` and `indexing` serve functions of whole axes and
index arrays.
"""
