"""NumPy's distributions that `Generator` does not have: each is an AttributeError that says what to write.

Most follow from the distributions that it has, so the numbers are the same on every device. ``rng`` is the generator in
these expressions, and parameters have NumPy's names. Others come from NumPy's own generator.
"""

from __future__ import annotations

from typing import Final

from tilearray.missing_names import MissingAttribute

BY_FORMULA: Final = {
    "beta": "(x := rng.standard_gamma(a, size)) / (x + rng.standard_gamma(b, size))",
    "chisquare": "2 * rng.standard_gamma(df / 2, size)",
    "dirichlet": "(x := rng.standard_gamma(alpha, (size, len(alpha)))) / x.sum(axis=1, keepdims=True)",
    "f": "rng.standard_gamma(dfnum / 2, size) / dfnum / (rng.standard_gamma(dfden / 2, size) / dfden)",
    "geometric": "ta.ceil(rng.exponential(size=size) / -math.log1p(-p)).astype('int64')",
    "gumbel": "loc - scale * ta.log(rng.exponential(size=size))",
    "laplace": "loc + rng.exponential(scale, size) - rng.exponential(scale, size)",
    "logistic": "loc + scale * ta.log(rng.exponential(size=size) / rng.exponential(size=size))",
    "lognormal": "ta.exp(rng.normal(mean, sigma, size))",
    "multivariate_normal": "mean + rng.normal(size=(size, len(mean))) @ ta.linalg.cholesky(cov).T",
    "negative_binomial": "rng.poisson(rng.gamma(n, (1 - p) / p, size))",
    "pareto": "ta.expm1(rng.exponential(size=size) / a)",
    "power": "rng.random(size) ** (1 / a)",
    "rayleigh": "scale * ta.sqrt(2 * rng.exponential(size=size))",
    "standard_cauchy": "rng.normal(size=size) / rng.normal(size=size)",
    "standard_t": "rng.normal(size=size) / ta.sqrt(2 * rng.standard_gamma(df / 2, size) / df)",
    "weibull": "rng.exponential(size=size) ** (1 / a)",
}
"""Expressions that draw from a distribution."""

BY_NUMPY: Final = (
    *("hypergeometric", "logseries", "multinomial", "multivariate_hypergeometric", "noncentral_chisquare"),
    *("noncentral_f", "triangular", "vonmises", "wald", "zipf"),
)
"""Distributions without an expression here."""

OLD_NAMES: Final = {
    **dict.fromkeys(("rand", "ranf", "random_sample", "sample"), "random"),
    **dict.fromkeys(("randint", "random_integers"), "integers"),
    "randn": "standard_normal",
}
"""Functions of ``numpy.random`` that are methods of a generator by other names."""

INSTEAD: Final = {
    **{name: f"write {formula}" for name, formula in BY_FORMULA.items()},
    **{name: f"write ta.asarray(np.random.default_rng(seed).{name}(...))" for name in BY_NUMPY},
    **{name: f"write rng.{method}" for name, method in OLD_NAMES.items()},
}
"""What to write for each name."""


class MissingDistributions:
    """The base class of `Generator` that has the descriptors."""

    __slots__ = ()

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name not in INSTEAD]


for _name, _text in INSTEAD.items():
    setattr(MissingDistributions, _name, MissingAttribute("Generator", _name, _text))
