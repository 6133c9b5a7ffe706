"""Attacks on the library: random calls that are meant to break it. `scripts/reliability` runs them at length.

Each module is one attack: ``run(cases, seed, device)`` makes its cases and returns an `Outcome`. The tests of
`tests/reliability` run a few cases of each.
"""
