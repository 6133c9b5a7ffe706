"""Bessel functions of `scipy.special` of the orders 0 and 1, for Arrays on a GPU, as in `special_on_gpu`.

Each table has the coefficients of Chebyshev polynomials, from values of mpmath with 60 digits; one row is for each
order. Up to 8, and of `k0` and `k1` up to 2, a table is for what is left without the logarithm and the pole (DLMF 10.8,
10.31), beyond for the factors of sine and cosine (DLMF 10.17.3), or of the exponential. Near zeros the errors are to
1e-15 of the functions' size beside them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilearray.arrays.fusion.fuse import fuse
from tilearray.functions.searching import where
from tilearray.ops.arithmetic import abs
from tilearray.ops.elementary import cos, exp, log, sin, sqrt
from tilearray.ops.number_parts import isnan, sign

# fmt: off
_J = (
    (
        0.15772797147489012, -0.008723442352852221, 0.2651786132033368, -0.37009499387264977, 0.15806710233209725,
        -0.034893769411408884, 0.004819180069467605, -0.00046062616620627504, 3.246032882100508e-05,
        -1.7619469077621507e-06, 7.608163592418782e-08, -2.679253530557673e-09, 7.848696314479465e-11,
        -1.9438346867370164e-12, 4.125320595634374e-14, -7.588508125447546e-16, 1.2218515873961411e-17,
    ),
    (
        0.08104484632565812, -0.1489751450676521, 0.1609992623572097, -0.08268049176681791, 0.022213639654966037,
        -0.003646940600769276, 0.0004050337728354822, -3.255554866857259e-05, 1.9858774049915165e-06,
        -9.521984756750436e-08, 3.687133759097148e-09, -1.178026622695885e-10, 3.160154580348003e-12,
        -7.221755239651773e-14, 1.4232144003513942e-15, -2.4441972916190464e-17, 3.6912682997929334e-19,
    ),
)
"""J0 up to 8, and J1 over x."""
_Y = (
    (
        -0.03314611320328494, -0.2744743055297453, 0.17903431407718265, 0.26156734625504663, -0.17730201278114358,
        0.04719668959576339, -0.007287962479552079, 0.0007531135932577742, -5.632079141056987e-05,
        3.206532537654801e-06, -1.44072332740187e-07, 5.248794787330516e-09, -1.5837552541812015e-10,
        4.02633081830612e-12, -8.747341203310769e-14, 1.6434898714919468e-15, -2.6977881152566837e-17,
    ),
    (
        0.0025380132357417816, -0.01608717304766875, -0.09591204536083074, 0.08445197259652346, -0.028328123944594365,
        0.005289897544167113, -0.0006414551451326356, 5.505982873338744e-05, -3.53808001868935e-06,
        1.7707804556154404e-07, -7.11055004989928e-09, 2.344337905911516e-10, -6.4651518414115946e-12,
        1.51429151205002e-13, -3.0511859694473254e-15, 5.34668038572867e-17, -8.224911372021585e-19,
    ),
)
"""Y0 up to 8 without its logarithm, and Y1 over x without that and its pole."""
_P = (
    (
        0.9994603493475187, -0.0005365220468132117, 3.0751847875194745e-06, -5.1705945376060975e-08,
        1.6306464635151382e-09, -7.86409137723707e-11, 5.168262387349193e-12, -4.3045788699253914e-13,
        4.3265957431549404e-14, -5.069034095935236e-15, 6.748072215733873e-16, -1.0011513723467786e-16,
        1.6305919233744186e-17, -2.880866169482871e-18,
    ),
    (
        1.0009030408600137, 0.0008989898330859408, -3.987284300488908e-06, 6.177633960644299e-08,
        -1.8718907491063067e-09, 8.816898659582339e-11, -5.704863640395645e-12, 4.699195515230542e-13,
        -4.6842237839904895e-14, 5.452674896044717e-15, -7.221180842274018e-16, 1.0667689114335412e-16,
        -1.7312313216116335e-17, 3.0492991197665872e-18,
    ),
)
_Q = (
    (
        -0.12444683684269607, 0.0005470815954089319, -5.9315987288485175e-06, 1.4377965798375193e-07,
        -5.817532749493056e-09, 3.376097523734991e-10, -2.565397936797308e-11, 2.404916100281365e-12,
        -2.6690625482579414e-13, 3.4041800321963686e-14, -4.87994410531204e-15, 7.729703176242605e-16,
        -1.3348852171502517e-16, 2.4865952389390515e-17, -4.952892629886514e-18, 1.047315897377605e-18,
    ),
    (
        0.3742222965562826, -0.0007702178839325664, 7.3108922063643636e-06, -1.676782510726674e-07,
        6.583354662120443e-09, -3.749090950541556e-10, 2.8121750359748866e-11, -2.61145253946232e-12,
        2.8774212663332235e-13, -3.649001916061838e-14, 5.206626366226707e-15, -8.215318025458595e-16,
        1.4141084390211833e-16, -2.626761589838529e-17, 5.219264919671406e-18, -1.1012617187879541e-18,
    ),
)
"""The factors of both functions beyond 8; the second one times x."""
_K = (
    (
        -0.2676636966169514, 0.3442898999246285, 0.0359799365153615, 0.001264615411446926, 2.286212103119452e-05,
        2.5347910790261494e-07, 1.904516377220209e-09, 1.0349695257633625e-11, 4.2598161427910826e-14,
        1.3744654358807508e-16,
    ),
    (
        -0.06409034516866254, -0.10916919599320105, -0.006636878452817714, -0.00016822792382067343,
        -2.389559180803608e-06, -2.1853569024549695e-08, -1.3982271326113327e-10, -6.618562752976041e-13,
        -2.4134516242987822e-15, -6.990873731242567e-18,
    ),
)
"""K0 up to 2 without its logarithm, and K1 over x without that and its pole."""
_FAR = (
    (
        1.2201515410329777, -0.0314481013119645, 0.0015698838857300533, -0.00012849549581627802, 1.39498137188765e-05,
        -1.8317555227191195e-06, 2.766813639445015e-07, -4.660489897687948e-08, 8.574034017414225e-09,
        -1.6975345093890614e-09, 3.5773972814003283e-10, -7.957489244477396e-11, 1.8559491149549264e-11,
        -4.514597883374519e-12, 1.1403405882073441e-12, -2.9800969231481784e-13, 8.032890775068375e-14,
        -2.2275133267462965e-14, 6.340076476276646e-15, -1.848593377920907e-15, 5.5120559994043335e-16,
        -1.6782311257549006e-16, 5.2103917776435543e-17, -1.6475805939842632e-17, 5.3004337711773354e-18,
    ),
    (
        1.3603130952422213, 0.10392373657681724, -0.002857816859622779, 0.00019521551847135162, -1.936197974166083e-05,
        2.406484947837217e-06, -3.5019606030878126e-07, 5.7410841254500495e-08, -1.0345762465678097e-08,
        2.0150497551970347e-09, -4.1903547593419254e-10, 9.218315187605315e-11, -2.129967838427791e-11,
        5.139639673482343e-12, -1.2891739609498229e-12, 3.348419666052243e-13, -8.976705182010146e-14,
        2.4771544242195988e-14, -7.0198370892147685e-15, 2.038703166239861e-15, -6.057047270643018e-16,
        1.8380935752430455e-16, -5.689462849193648e-17, 1.7940510478863572e-17, -5.756744482073302e-18,
    ),
)
"""Beyond 2, times the exponential and the root of x."""
# fmt: on


def _chebyshev(t: Any, coefficients: Sequence[float]) -> Any:
    """The sum of Chebyshev polynomials of t (the method of Clenshaw)."""
    before: Any = 0.0
    last: Any = coefficients[-1]
    for factor in reversed(coefficients[1:-1]):
        before, last = last, 2 * t * last - before + factor
    return t * last - before + coefficients[0]


# --- of both kinds ---------------------------------------------------------------------------------------------------


@fuse
def j0(x: Any) -> Any:
    """The Bessel function of the first kind and order 0."""
    return _first_kind(x, 0)


@fuse
def j1(x: Any) -> Any:
    """The Bessel function of the first kind and order 1."""
    return _first_kind(x, 1)


@fuse
def y0(x: Any) -> Any:
    """The Bessel function of the second kind and order 0."""
    return _second_kind(x, 0)


@fuse
def y1(x: Any) -> Any:
    """The Bessel function of the second kind and order 1."""
    return _second_kind(x, 1)


def _first_kind(x: Any, order: int) -> Any:
    size = abs(x)
    found = where(size <= 8, _near(size, order), _waves(size, order)[0])
    found = where(size == math.inf, 0.0, where(isnan(x), x, found))
    return found * sign(x) if order else found


def _second_kind(x: Any, order: int) -> Any:
    usual = x > 0
    small = where(usual & (x <= 8), x, 1.0)
    pole = log(small) * _near(small, order) - (1 / small if order else 0)
    near = 2 / math.pi * pole + _chebyshev(_of_squares(small), _Y[order]) * (small if order else 1)
    found = where(x <= 8, near, where(x == math.inf, 0.0, _waves(x, order)[1]))
    return where(usual, found, where(x == 0, -math.inf, math.nan))


def _of_squares(size: Any) -> Any:
    return size * size / 32 - 1


def _near(size: Any, order: int) -> Any:
    small = where(size <= 8, size, 1.0)
    return _chebyshev(_of_squares(small), _J[order]) * (small if order else 1)


def _waves(size: Any, order: int) -> tuple[Any, Any]:
    """Both kinds beyond 8."""
    large = where((size > 8) & (size < math.inf), size, 8.0)
    place = 128 / (large * large) - 1
    first, second = _chebyshev(place, _P[order]), _chebyshev(place, _Q[order]) / large
    sine, cosine = sin(large), cos(large)  # of size less a quarter of pi, and in order 1 a half more
    scale = 1 / sqrt(math.pi * large)
    along, across = (sine - cosine, 0 - sine - cosine) if order else (cosine + sine, sine - cosine)
    return scale * (first * along - second * across), scale * (first * across + second * along)


# --- modified, of the second kind ------------------------------------------------------------------------------------


@fuse
def k0(x: Any) -> Any:
    """The modified Bessel function of the second kind and order 0."""
    return _modified(x, 0, False)


@fuse
def k0e(x: Any) -> Any:
    """exp(x) `k0`."""
    return _modified(x, 0, True)


@fuse
def k1(x: Any) -> Any:
    """The modified Bessel function of the second kind and order 1."""
    return _modified(x, 1, False)


@fuse
def k1e(x: Any) -> Any:
    """exp(x) `k1`."""
    return _modified(x, 1, True)


def _modified(x: Any, order: int, scaled: bool) -> Any:
    usual = (x > 0) & (x < math.inf)
    small, large = where(usual & (x <= 2), x, 1.0), where(usual & (x > 2), x, 2.0)
    quarter, growing = small * small / 4, 1.0
    for k in range(12, 0, -1):
        growing = 1 + growing * quarter * (1 / (k * (k + order)))
    logarithm = log(small / 2) * growing
    rest = _chebyshev(small * small / 2 - 1, _K[order])
    near = 1 / small + (logarithm * 0.5 + rest) * small if order else rest - logarithm
    far = _chebyshev(4 / large - 1, _FAR[order]) / sqrt(large)
    near, far = (near * exp(small), far) if scaled else (near, far * exp(-large))
    ends = where(x == 0, math.inf, where(x == math.inf, 0.0, math.nan))
    return where(usual, where(x <= 2, near, far), where(isnan(x), x, ends))
