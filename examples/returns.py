"""Returns of three shares: cumulative products, drawdowns, rolling volatility, correlations and quantiles."""

from numpy.lib.stride_tricks import sliding_window_view
from numpy.random import default_rng

import tilearray as np  # edit

np.set_semantics("numpy")  # edit

NAMES = ["ore", "sun", "sea"]
DAYS = 250


def daily():
    """Daily returns with a common part, one row for each day."""
    rng = default_rng(7)
    common, own = rng.normal(0.0003, 0.008, (DAYS, 1)), rng.normal(0.0, 0.01, (DAYS, 3))
    common, own = np.asarray(common), np.asarray(own)  # edit
    return common * np.array([1.0, 0.5, -0.2]) + own


def drawdown(wealth):
    """How far each day lies below the highest day before it."""
    return wealth / np.maximum.accumulate(wealth, axis=0) - 1.0


def main():
    r = daily()
    wealth = np.cumprod(1.0 + r, axis=0)
    below = drawdown(wealth)
    volatility = sliding_window_view(r, 20, axis=0).std(axis=-1, ddof=1) * np.sqrt(252)
    for j, name in enumerate(NAMES):
        low, high = np.quantile(r[:, j], [0.05, 0.95])
        print(
            f"{name}: total {wealth[-1, j] - 1:8.2%}, drawdown {below[:, j].min():8.2%}, "
            f"volatility {volatility[:, j].mean():6.2%}, 90% of days in {low:6.2%} to {high:6.2%}"
        )
    correlation = np.corrcoef(r, rowvar=False)
    print("correlations:", np.round(correlation[np.triu_indices(3, 1)], 3).tolist())
    sharpe = r.mean(axis=0) / r.std(axis=0, ddof=1) * np.sqrt(252)
    print("best:", NAMES[np.argmax(wealth[-1])], "| Sharpe ratios:", np.round(sharpe, 3).tolist())
    return np.concatenate([wealth, below], axis=1)


if __name__ == "__main__":
    main()
