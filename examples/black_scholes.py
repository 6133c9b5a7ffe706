"""Prices of European options by Black and Scholes, their deltas, and the volatility that a price implies."""

from scipy.special import erf

import tilearray as np  # edit

np.set_semantics("numpy")  # edit


def normal(x):
    """The cumulative distribution of the standard normal."""
    return 0.5 * (1.0 + erf(x / np.sqrt(2.0)))


def price(spot, strike, years, rate, volatility):
    """The prices of a call and a put, and the delta of the call."""
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / spread
    d2 = d1 - spread
    discounted = strike * np.exp(-rate * years)
    call = spot * normal(d1) - discounted * normal(d2)
    return call, call - spot + discounted, normal(d1)


def implied(target, spot, strike, years, rate):
    """The volatility at which a call costs `target`, by 50 halvings of an interval."""
    low, high = np.full(target.shape, 0.01), np.full(target.shape, 2.0)
    for _ in range(50):
        middle = 0.5 * (low + high)
        dear = price(spot, strike, years, rate, middle)[0] > target
        low, high = np.where(dear, low, middle), np.where(dear, middle, high)
    return 0.5 * (low + high)


def main():
    spot = np.linspace(80.0, 120.0, 9)
    years = np.asarray([0.25, 1.0, 2.0])[:, None]
    volatility = 0.15 + 0.05 * np.sqrt(years)
    call, put, delta = price(spot, 100.0, years, 0.02, volatility)
    print("call ", np.round(call[:, 4], 4).tolist())
    print("put  ", np.round(put[:, 4], 4).tolist())
    print("delta", np.round(delta[:, 4], 4).tolist())
    again = implied(call, spot, 100.0, years, 0.02)
    print("implied volatility is exact to 12 digits:", np.allclose(again, volatility, rtol=0, atol=1e-12))
    return np.stack([call, put, delta])


if __name__ == "__main__":
    main()
