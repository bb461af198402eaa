//! `lgamma` and `digamma` of negative numbers, in terms of the distance to the nearest root.
//!
//! Reflection expresses them as differences that vanish at the roots. There are one or two roots
//! between any two poles. With the root in two parts, every term of the difference between the
//! function at both places has their distance as a factor, so the result is as accurate near a root
//! as elsewhere.

use super::chebyshev;
use crate::expression::Expression;
use hlo::{GatherDimensionNumbers, Op};
use shape::{ArrayShape, Literal, PrimitiveType};
use std::f64::consts::PI;

/// Roots of `lgamma` near -2, -3 ... -26, below and above each, as distances from that integer.
/// There is no root above -2.
const LGAMMA_ROOTS: &[f64] = &[
    -0.45702473822080064,
    0.25,
    -0.14358088834998006,
    0.2523173532725874,
    -0.03936183974053688,
    0.04470571514140207,
    -0.008218168322593521,
    0.008455359439952277,
    -0.0013852944531550972,
    0.0013925199191243706,
    -0.00019833340732475162,
    0.0001984921093623021,
    -2.48002706819597e-05,
    2.4802904179335845e-05,
    -2.7557148226503463e-06,
    2.7557490225318057e-06,
    -2.755730136466002e-07,
    2.7557337083353163e-07,
    -2.5052106852407546e-08,
    2.5052109918476226e-08,
    -2.087675687777539e-09,
    2.087675709796081e-09,
    -1.6059043830108875e-10,
    1.6059043843534355e-10,
    -1.147074559737784e-11,
    1.147074559808161e-11,
    -7.647163731803788e-13,
    7.647163731835846e-13,
    -4.779477332386745e-14,
    4.779477332388026e-14,
    -2.811457254345498e-15,
    2.8114572543455435e-15,
    -1.561920696858622e-16,
    1.5619206968586233e-16,
    -8.22063524662433e-18,
    8.22063524662433e-18,
    -4.110317623312165e-19,
    4.110317623312165e-19,
    -1.9572941063391263e-20,
    1.9572941063391263e-20,
    -8.896791392450574e-22,
    8.896791392450574e-22,
    -3.868170170630684e-23,
    3.868170170630684e-23,
    -1.6117375710961184e-24,
    1.6117375710961184e-24,
    -6.446950284384474e-26,
    6.446950284384474e-26,
    -2.4795962632247976e-27,
    2.4795962632247976e-27,
];

/// Low parts of these roots.
const LGAMMA_ROOT_TAILS: &[f64] = &[
    1.843554041574456e-17,
    0.0,
    3.862806401714152e-18,
    -2.04688991691325e-17,
    3.2731379225891636e-18,
    8.223977942582053e-19,
    -5.582665915956405e-19,
    8.231751957350036e-19,
    -2.6295731811446077e-20,
    -7.090441230646531e-20,
    1.1820573401560963e-20,
    6.263909978492175e-21,
    1.0083974251164085e-21,
    3.15397713595963e-22,
    -5.624459871432079e-23,
    -6.500300408654724e-23,
    -2.4472526783403563e-23,
    1.4502658434955713e-23,
    1.2924868620853802e-24,
    -6.807394864189793e-25,
    -4.849684877236172e-26,
    -8.658839215884982e-26,
    7.046449983196074e-27,
    6.465141936497467e-27,
    4.194056116105366e-28,
    -7.830340218001236e-28,
    4.886154187641447e-29,
    -3.8035184915187745e-29,
    -1.811833433216651e-30,
    -9.319923331229129e-31,
    -2.2878206410005478e-32,
    -8.713180440266469e-32,
    9.970308044546635e-33,
    9.139764076937634e-33,
    -2.0674364147742136e-35,
    4.221635182443431e-34,
    -9.30988539762946e-37,
    1.951606135968959e-36,
    1.3655257886744649e-36,
    -1.3631749773431166e-36,
    7.911649065141598e-38,
    -7.911156164603155e-38,
    8.843224893988871e-40,
    -8.843130416975817e-40,
    3.6846581873876786e-41,
    -3.684656525514274e-41,
    1.9330404368315866e-42,
    -1.9330404099091066e-42,
    1.2953730966780183e-43,
    -1.2953730962750272e-43,
];

/// `lgamma(x)` divided by its distances from both roots on [-2.8125, -2.4375], as a series in `(x +
/// 2.625) / 0.1875`, highest order first, with the coefficient of order 0 doubled.
const BETWEEN_ROOTS: &[f64] = &[
    3.1785019986704977e-18,
    -1.2246292709631281e-17,
    4.723261336700168e-17,
    -1.8237498430938517e-16,
    7.050324154299334e-16,
    -2.72904562637603e-15,
    1.0578248006921326e-14,
    -4.106420013690241e-14,
    1.596672957854003e-13,
    -6.219075643846717e-13,
    2.427004984018838e-12,
    -9.490974854940834e-12,
    3.720187880728371e-11,
    -1.461784772535695e-10,
    5.760713830987428e-10,
    -2.276802156697932e-09,
    9.03381595417233e-09,
    -3.5960949302865975e-08,
    1.4397314456454326e-07,
    -5.781668203213557e-07,
    2.344529614564772e-06,
    -9.512751651759368e-06,
    3.9366960105202286e-05,
    -0.00016136943342869175,
    0.0006932872568173972,
    -0.002850643657674549,
    0.01328309127022368,
    -0.053088609024009775,
    0.30390431695244224,
    -1.061471156999284,
    11.987164359455697,
];

/// Roots of `digamma` below 0, -1 ... -31.
const DIGAMMA_ROOTS: &[f64] = &[
    -0.5040830082644554,
    -1.5734984731623904,
    -2.6107208684441447,
    -3.635293366436901,
    -4.653237761743142,
    -5.6671624415568855,
    -6.678418213073427,
    -7.687788325031626,
    -8.695764163816401,
    -9.702672540001863,
    -10.708740838254144,
    -11.714133061228955,
    -12.718971025749207,
    -13.723347457363827,
    -14.727334416018529,
    -15.730988906332882,
    -16.734356723955734,
    -17.73747515997759,
    -18.7403749447801,
    -19.74308167259022,
    -20.745616863607527,
    -21.74799876820113,
    -22.75024298430606,
    -23.752362937385183,
    -24.75437025782297,
    -25.756275080771037,
    -26.758086286661367,
    -27.759811695826706,
    -28.761458227264864,
    -29.763032029127462,
    -30.76453858671817,
    -31.765982812458248,
];

/// Low parts of these roots.
const DIGAMMA_ROOT_TAILS: &[f64] = &[
    -8.15428206243813e-18,
    -1.574185691077347e-17,
    9.881960746978353e-17,
    5.454396163173039e-17,
    -2.5492686201468193e-16,
    -3.2153051074948335e-18,
    3.470798723495241e-16,
    -1.351562494643672e-16,
    -3.2859903716289447e-16,
    -3.2563178405401477e-16,
    -6.287211750540301e-16,
    8.598250154343834e-16,
    -4.752312432106917e-16,
    4.528278691518058e-16,
    -3.6618399963139786e-17,
    1.0551956373365842e-16,
    -1.2039501631800144e-15,
    -5.125776230727235e-16,
    7.757330874026816e-16,
    6.505672516695227e-16,
    9.370177952348924e-16,
    -1.2246233990931817e-15,
    -1.1268600266054163e-15,
    8.157017519280734e-16,
    -1.316906917865066e-15,
    1.3077979683180938e-15,
    1.1334337131725835e-15,
    -1.120148225799811e-16,
    -1.5405711086887488e-15,
    -4.657204559411395e-16,
    -1.0553524434167124e-15,
    -6.70609301293155e-16,
];

/// Coefficients of `1 / z`, `1 / z^3` ... in Stirling's series of `lgamma`.
const STIRLING: &[f64] =
    &[1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360_360.0];

/// Coefficients of `-1 / z^2`, `-1 / z^4` ... in the series of `digamma`.
const DIGAMMA_SERIES: &[f64] =
    &[1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32_760.0];

/// Number of steps by which arguments are raised, so that these series are short.
const STEPS: u32 = 9;

/// Selects table entries by index.
pub(super) fn look_up<'f>(table: &[f64], index: Expression<'f>) -> Expression<'f> {
    let shape = ArrayShape::new(index.element_type(), &[table.len() as i64]);
    let literal = Literal::from_floats(shape, table.iter().copied());
    let table = index.function().literal(literal);
    let rank = index.rank();
    let index = index.convert(PrimitiveType::S32);
    let numbers = GatherDimensionNumbers {
        collapsed_slice_dims: vec![0],
        start_index_map: vec![0],
        index_vector_dim: rank,
        ..GatherDimensionNumbers::default()
    };
    let op =
        Op::Gather { gather_dimension_numbers: numbers, slice_sizes: vec![1], indices_are_sorted: false };
    index.function().op(op, &[table, index], None)
}

/// `(u^k - v^k) / (u - v)` for `k` from 1 to 12.
fn divided_powers<'f>(u: Expression<'f>, v: Expression<'f>) -> Vec<Expression<'f>> {
    let mut divided = vec![u.splat(1.0)];
    let mut power = v;
    for _ in 1..12 {
        let last = divided[divided.len() - 1];
        divided.push(u * last + power);
        power = power * v;
    }
    divided
}

/// A series of differences of powers, summed from the smallest terms.
fn series<'f>(divided: &[Expression<'f>], first: usize, coefficients: &[f64]) -> Expression<'f> {
    let terms = coefficients.iter().enumerate().map(|(k, &c)| divided[first + 2 * k - 1] * c);
    let terms: Vec<Expression<'f>> = terms.collect();
    terms.into_iter().rev().reduce(|sum, term| sum + term).expect("there are coefficients")
}

/// True where [`lgamma_by_roots`] equals `lgamma`.
pub(super) fn is_among_lgamma_roots(x: Expression<'_>) -> Expression<'_> {
    x.lt(-2.0) & x.gt(-26.0)
}

/// `lgamma(x)` for `-26 < x < -2`, given a root `r`:
/// `log(sin(pi r) / sin(pi x)) + lgamma(1 - r) - lgamma(1 - x)`.
pub(super) fn lgamma_by_roots(x: Expression<'_>) -> Expression<'_> {
    let n = (0.5 - x).floor();
    let t = x + n;
    let index = (n - 2.0) * 2.0 + t.gt(0.0).select(x.splat(1.0), 0.0);
    let root = look_up(LGAMMA_ROOTS, index);
    let d = (root - t) + look_up(LGAMMA_ROOT_TAILS, index);

    // The quotient of the sines minus 1: `cos(pi d) - 1 + cot(pi x) sin(pi d)`.
    let (angle, sine) = (t * PI, (t * PI).sin());
    let half = (d * (PI / 2.0)).sin();
    let less_1 = angle.cos() / sine * (d * PI).sin() - half * half * 2.0;
    let quotient = (root * PI).sin() / sine;
    let sines = less_1.abs().lt(0.5).select(less_1.log1p(), quotient.log());

    let y = 1.0 - x;
    let mut product = x.splat(0.0);
    for k in 0..STEPS {
        let factor = -d / (y + f64::from(k));
        product = product + factor + product * factor;
    }
    let z = y + f64::from(STEPS);
    let below = z - d;
    let (u, v) = (1.0 / below, 1.0 / z);
    let stirling = d * u * v * series(&divided_powers(u, v), 1, STIRLING);
    let raised = (below - 0.5) * (-d / z).log1p() + d - d * z.log() + stirling;
    sines + (raised - product.log1p())
}

/// True where [`lgamma_between_roots`] equals `lgamma`.
pub(super) fn is_between_lgamma_roots(x: Expression<'_>) -> Expression<'_> {
    x.ge(-2.8125) & x.le(-2.4375)
}

/// `lgamma(x)` between the two roots near -2.6, where it remains small.
pub(super) fn lgamma_between_roots(x: Expression<'_>) -> Expression<'_> {
    let below = (x + 2.7476826467274127) - 9.055340329338315e-17;
    let above = (x + 2.4570247382208006) + 3.7075610815513266e-17;
    chebyshev((x + 2.625) * (2.0 / 0.1875), BETWEEN_ROOTS) * below * above
}

/// `sin(pi (x + tail))`, exact at integers.
fn sine_of_turn<'f>(x: Expression<'f>, tail: Expression<'f>) -> Expression<'f> {
    let n = (x + 0.5).floor();
    let sine = ((x - n + tail) * PI).sin();
    (n % 2.0).equal(0.0).select(sine, -sine)
}

/// True where [`digamma_by_roots`] equals `digamma`.
pub(super) fn is_among_digamma_roots(x: Expression<'_>) -> Expression<'_> {
    x.lt(0.0) & x.gt(-(DIGAMMA_ROOTS.len() as f64))
}

/// `digamma(x)` for `-32 < x < 0`, given a root `r`:
/// `pi cot(pi r) - pi cot(pi x) + digamma(1 - x) - digamma(1 - r)`.
pub(super) fn digamma_by_roots(x: Expression<'_>) -> Expression<'_> {
    let n = (-x).floor();
    let root = look_up(DIGAMMA_ROOTS, n);
    let tail = look_up(DIGAMMA_ROOT_TAILS, n);
    let d = (root - x) + tail;
    let sines = sine_of_turn(x, x.splat(0.0)) * sine_of_turn(root, tail);
    let cotangents = -((d * PI).sin() * PI) / sines;

    let y = 1.0 - x;
    let mut sum = x.splat(0.0);
    for k in 0..STEPS {
        let raised = y + f64::from(k);
        sum = sum + 1.0 / (raised * (raised - d));
    }
    let z = y + f64::from(STEPS);
    let (u, v) = (1.0 / (z - d), 1.0 / z);
    let powers = series(&divided_powers(u, v), 2, DIGAMMA_SERIES) + 0.5;
    cotangents + (d * (sum + u * v * powers) - (-d / z).log1p())
}
