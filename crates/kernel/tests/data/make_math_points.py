"""Writes math_points.txt: F64 operands and correctly rounded results of elementary functions, as bits.

Needs mpmath. Run: python make_math_points.py > math_points.txt
A line is `function operand [operand] result`, the numbers as hexadecimal bits. Special values follow C, annex F.
"""

import math
import random
import struct

import mpmath as mp

mp.mp.prec = 300
random.seed(20)
INF, NAN = math.inf, math.nan
RANDOM_POINTS = 28
SPECIAL = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 5e-324, -5e-324, 2.2250738585072014e-308, 2.225073858507201e-308,
    1.7976931348623157e308, -1.7976931348623157e308, 1e-300, INF, -INF, NAN, 1 + 2**-52, 1 - 2**-53, -1 - 2**-52,
    -1 + 2**-53,
]
SPECIAL_PAIRS = [
    0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -3.0, 2.5, 5e-324, 1.7976931348623157e308, 2.0**53 + 2, -(2.0**52) - 1, INF, -INF,
    NAN,
]


def bits(x):
    return "%016x" % struct.unpack("<Q", struct.pack("<d", x))[0]


def rounded(v):
    """Returns the F64 nearest to a number of many digits, with ties to even."""
    if v == 0:
        return 0.0
    sign = 1.0 if v > 0 else -1.0
    if abs(v) >= mp.mpf(2) ** 1024 * (1 - mp.mpf(2) ** -54):
        return sign * INF
    mantissa, exponent = mp.frexp(v)
    digits = min(53, exponent + 1074)
    if digits < 0:
        return sign * 0.0
    integer = int(mp.nint(mp.ldexp(abs(mantissa), digits)))
    return sign * math.ldexp(integer, exponent - digits)


def emit(name, operands, value):
    result = value if isinstance(value, float) else rounded(value)
    print(name, *(bits(x) for x in operands), bits(result))


def log_uniform(low, high):
    return math.exp(random.uniform(math.log(low), math.log(high)))


def any_float():
    while True:
        x = struct.unpack("<d", struct.pack("<Q", random.getrandbits(64)))[0]
        if x == x and not math.isinf(x):
            return x


def uniform(low, high):
    return lambda: random.uniform(low, high)


def magnitudes(low, high):
    return lambda: random.choice([-1, 1]) * log_uniform(low, high)


def positive(low, high):
    return lambda: log_uniform(low, high)


def sign(x):
    return math.copysign(1.0, x)


ANGLES = [6381956970095103 * 2.0**797, math.pi, math.pi / 2, 1e22, 2.0**1023, 1048575.9, 1048576.0]
ANGLE_RANGES = [uniform(-10, 10), magnitudes(1e-20, 1), uniform(-1e6, 1e6), any_float, magnitudes(1e5, 1e7)]
UNIT = [uniform(-1, 1), magnitudes(1e-20, 1), uniform(0.45, 0.55), uniform(0.99, 1), uniform(-1, -0.99)]
# Name: the function of an mpf, its value at infinities, interesting operands, sources of random
# operands, and True if the function is odd.
UNARY = {
    "exp": (mp.exp, lambda x: INF if x > 0 else 0.0,
            [709.782712893384, 709.7827128933841, -745.1332191019411, -745.1332191019412, -708.4],
            [uniform(-745, 710), uniform(-1, 1), magnitudes(1e-20, 1), uniform(-746, -708)], False),
    "expm1": (mp.expm1, lambda x: INF if x > 0 else -1.0, [709.782712893384, 709.7827128933841, -37.5, 37.4],
              [uniform(-40, 40), uniform(-1, 1.2), magnitudes(1e-20, 1), uniform(0, 710)], True),
    "log": (lambda x: mp.log(x) if x > 0 else (-INF if x == 0 else NAN), lambda x: INF if x > 0 else NAN, [],
            [positive(1e-308, 1e308), uniform(0.5, 2), uniform(0.99, 1.01), positive(5e-324, 1e-308)], False),
    "log1p": (lambda x: mp.log1p(x) if x > -1 else (-INF if x == -1 else NAN), lambda x: INF if x > 0 else NAN, [],
              [positive(1e-308, 1e308), uniform(-1, 1), magnitudes(1e-20, 1), uniform(0, 10)], True),
    "sin": (mp.sin, lambda x: NAN, ANGLES, ANGLE_RANGES, True),
    "cos": (mp.cos, lambda x: NAN, ANGLES, ANGLE_RANGES, False),
    "tan": (mp.tan, lambda x: NAN, ANGLES, ANGLE_RANGES, True),
    "tanh": (mp.tanh, sign, [19.06, 19.1, 22.0], [uniform(-3, 3), magnitudes(1e-20, 1), uniform(-25, 25)], True),
    "sinh": (mp.sinh, lambda x: x, [710.4758600739439, 710.475860073944],
             [uniform(-3, 3), magnitudes(1e-20, 1), uniform(-711, 711)], True),
    "cosh": (mp.cosh, abs, [710.4758600739439, 710.475860073944],
             [uniform(-3, 3), magnitudes(1e-20, 1), uniform(-711, 711)], False),
    "asin": (lambda x: mp.asin(x) if abs(x) <= 1 else NAN, lambda x: NAN, [], UNIT, True),
    "acos": (lambda x: mp.acos(x) if abs(x) <= 1 else NAN, lambda x: NAN, [], UNIT, False),
    "atan": (mp.atan, lambda x: math.copysign(math.pi / 2, x), [],
             [uniform(-1, 1), magnitudes(1e-20, 1), magnitudes(1e-3, 1e3), any_float], True),
    "asinh": (mp.asinh, lambda x: x, [],
              [uniform(-3, 3), magnitudes(1e-20, 1), magnitudes(1e-3, 1e3), any_float], True),
    "acosh": (lambda x: mp.acosh(x) if x >= 1 else NAN, lambda x: INF if x > 0 else NAN, [],
              [uniform(1, 2), lambda: 1 + log_uniform(1e-15, 1), positive(1, 1e308)], False),
    "atanh": (lambda x: mp.atanh(x) if abs(x) < 1 else (NAN if abs(x) > 1 else sign(x) * INF), lambda x: NAN, [],
              [uniform(-1, 1), magnitudes(1e-20, 1), uniform(0.99, 1), uniform(-0.5, 0.5)], True),
    "erf": (mp.erf, sign, [0.84375, 1.25, 1 / 0.35, 5.9, 6.0, 5.8],
            [uniform(-3, 3), magnitudes(1e-20, 1), uniform(-6.5, 6.5), uniform(0.8, 1.3)], True),
    "logistic": (lambda x: 1 / (1 + mp.exp(-x)), lambda x: 1.0 if x > 0 else 0.0,
                 [-709.9, -744.9, -745.2, -746.0, 40.0, 36.7, -36.7],
                 [uniform(-3, 3), uniform(-40, 40), uniform(-746, -30), magnitudes(1e-20, 1)], False),
    "cbrt": (lambda x: mp.cbrt(x) if x > 0 else -mp.cbrt(-x), lambda x: x, [],
             [uniform(-3, 3), positive(1, 8), any_float, positive(5e-324, 1e-308)], True),
    "rsqrt": (lambda x: 1 / mp.sqrt(x) if x > 0 else NAN, lambda x: 0.0 if x > 0 else NAN, [],
              [uniform(0, 3), positive(1, 4), positive(1e-308, 1e308)], False),
}


def unary_points():
    for name, (function, at_infinity, extra, sources, odd) in UNARY.items():
        operands = SPECIAL + extra + [random.choice(sources)() for _ in range(RANDOM_POINTS)]
        for x in operands:
            if x != x:
                value = NAN
            elif math.isinf(x):
                value = at_infinity(x)
            elif x == 0 and odd:
                value = x
            elif x == 0 and name == "rsqrt":
                value = math.copysign(INF, x)
            else:
                value = function(mp.mpf(x))
            emit(name, (x,), value)


def is_odd(y):
    return not math.isinf(y) and y == int(y) and int(y) % 2 == 1


def power(x, y):
    if y == 0 or x == 1:
        return 1.0
    if x != x or y != y:
        return NAN
    negative = math.copysign(1, x) < 0
    if x == 0 or math.isinf(x) or math.isinf(y):
        if abs(x) == 1:
            return 1.0
        value = INF if (abs(x) > 1) == (y > 0) else 0.0
        return -value if negative and is_odd(y) else value
    if negative and y != int(y):
        return NAN
    exponent = mp.mpf(y) * mp.log(abs(mp.mpf(x)))
    value = INF if exponent > 720 else 0.0 if exponent < -760 else mp.power(abs(mp.mpf(x)), mp.mpf(y))
    return -value if negative and is_odd(y) else value


def angle(y, x):
    if x != x or y != y:
        return NAN
    if x == 0 or y == 0 or math.isinf(x) or math.isinf(y):
        return math.atan2(y, x)
    return mp.atan2(mp.mpf(y), mp.mpf(x))


def remainder(x, y):
    if x != x or y != y or math.isinf(x) or y == 0:
        return NAN
    return math.fmod(x, y)


def power_operands():
    kind = random.randrange(6)
    if kind == 0:
        return log_uniform(1e-300, 1e300), random.uniform(-2, 2)
    if kind == 1:
        return random.uniform(0.5, 2), random.uniform(-700, 700)
    if kind == 2:
        return random.choice([-1, 1]) * log_uniform(1e-5, 1e5), float(random.randrange(-50, 50))
    if kind == 3:
        x = 1 + random.choice([-1, 1]) * log_uniform(1e-15, 1e-2)
        return x, random.uniform(-745, 709) / math.log(x)
    if kind == 4:
        x = log_uniform(1e-300, 1e300)
        return x, random.uniform(-745, -708) / math.log(x)
    return random.choice([-1, 1]) * log_uniform(1e-308, 1e308), random.choice([0.5, 1 / 3, 2.0, 3.0, -1.0, -0.5])


def angle_operands():
    kind = random.randrange(4)
    if kind == 0:
        return any_float(), any_float()
    if kind == 1:
        return random.uniform(-1, 1), random.uniform(-1, 1)
    if kind == 2:
        return magnitudes(1e-5, 1e5)(), magnitudes(1e-5, 1e5)()
    y = magnitudes(1e-300, 1e300)()
    return y, random.choice([-1, 1]) * y * (1 + random.uniform(-1e-9, 1e-9))


def remainder_operands():
    kind = random.randrange(5)
    if kind == 0:
        return any_float(), any_float()
    if kind == 1:
        return random.uniform(-100, 100), random.uniform(-10, 10)
    if kind == 2:
        y = any_float()
        x = y * random.getrandbits(random.randrange(1, 53))
        return (y if math.isinf(x) else x), y
    if kind == 3:
        return log_uniform(5e-324, 1e-300), log_uniform(5e-324, 1e-305)
    return float(random.getrandbits(60)), float(random.getrandbits(random.randrange(1, 53)) + 1)


def binary_points():
    binary = (("pow", power, power_operands), ("atan2", angle, angle_operands),
              ("fmod", remainder, remainder_operands))
    for name, function, operands in binary:
        pairs = [(x, y) for x in SPECIAL_PAIRS for y in SPECIAL_PAIRS]
        pairs += [operands() for _ in range(4 * RANDOM_POINTS)]
        for x, y in pairs:
            emit(name, (x, y), function(x, y))


unary_points()
binary_points()
