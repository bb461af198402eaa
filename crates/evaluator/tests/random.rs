//! Random bits compared with XLA on the CPU, bit for bit.

use crate::support::*;
use hlo::RandomAlgorithm::{self, Philox, ThreeFry};
use hlo::{Computation, Module, Op, RandomDistribution};
use shape::PrimitiveType::{self, *};
use shape::{Literal, Scalar, Shape};

const KEY: u64 = 0x1234_5678_9abc_def0;

#[test]
fn bits_and_states_are_those_of_xla() {
    type Case = (RandomAlgorithm, PrimitiveType, &'static [i64], &'static [u64], u64);
    let cases: &[Case] = &[
        (Philox, U32, &[5], &[3151517439, 3080049825, 2645875639, 2972309415, 1480449822], 0),
        (Philox, U64, &[3], &[13228713271577040639, 12765971733663767479, 12951043062988922654], 0),
        (Philox, U32, &[2, 3], &[3151517439, 3080049825, 2645875639, 2972309415, 1480449822, 3015399692], 0),
        (
            Philox,
            U32,
            &[3, 3],
            &[
                3151517439, 3080049825, 2645875639, 2972309415, 1480449822, 3015399692, 3935955418,
                1076038438, 271420659,
            ],
            1,
        ),
        (Philox, U8, &[5], &[255, 161, 183, 167, 30], 0),
        (Philox, U32, &[], &[3151517439], 18446744073709551615),
        (Philox, U16, &[3], &[22271, 54433, 56247], 18446744073709551615),
        (ThreeFry, U32, &[5], &[1010520186, 1888741164, 2754706343, 569486026, 1593802813], 1),
        (ThreeFry, U64, &[3], &[8112081530999492730, 2445923859953712039, 5540413775124856893], 1),
        (ThreeFry, U32, &[2, 3], &[1010520186, 2754706343, 1593802813, 1888741164, 569486026, 1289978105], 1),
        (
            ThreeFry,
            U32,
            &[3, 3],
            &[
                1010520186, 2754706343, 1593802813, 1888741164, 569486026, 1289978105, 961273596, 1379882886,
                1430061416,
            ],
            4,
        ),
        (ThreeFry, U8, &[5], &[122, 44, 167, 202, 61], 1),
        (ThreeFry, U32, &[], &[1010520186], 18446744073709551615),
        (ThreeFry, U16, &[3], &[20602, 59180, 31655], 0),
    ];
    for &(algorithm, element_type, sizes, bits, counter) in cases {
        let state = Literal::from_elements(&[2], &[KEY, u64::MAX - 1]);
        let shape = Shape::Tuple(vec![Shape::array(U64, &[2]), Shape::array(element_type, sizes)]);
        let Literal::Tuple(results) = run(Op::RngBitGenerator { algorithm }, shape, &[&state]) else {
            panic!("a tuple")
        };
        assert_eq!(
            results[0].to_vec::<u64>().unwrap(),
            [KEY, counter],
            "{algorithm:?} {element_type} {sizes:?}"
        );
        let expected: Vec<Scalar> = bits.iter().map(|&b| Scalar::Unsigned(b)).collect();
        assert_eq!(
            results[1].scalars().collect::<Vec<_>>(),
            expected,
            "{algorithm:?} {element_type} {sizes:?}"
        );
    }
}

#[test]
fn the_counter_outlives_a_run_and_starts_at_zero() {
    let mut c = Computation::new("main");
    let shape = Shape::array(U64, &[2]);
    let root = add(&mut c, Op::RngGetAndUpdateState { delta: 300 }, shape, &[]);
    c.set_root(root);
    let mut module = Module::new("test");
    let entry = module.add_computation(c);
    module.set_entry(entry);
    let mut evaluator = evaluator::Evaluator::new(&module);
    assert_eq!(evaluator.evaluate(&[]).unwrap(), Literal::from_elements(&[2], &[0u64, 0]));
    assert_eq!(evaluator.evaluate(&[]).unwrap(), Literal::from_elements(&[2], &[300u64, 0]));
    assert_eq!(evaluator.random_state(), 600);
}

#[test]
fn distributions_have_their_moments() {
    let draw = |distribution, a: f32, b: f32| {
        let (a, b) = (Literal::scalar(a), Literal::scalar(b));
        run_array(Op::Rng { distribution }, F32, &[10_000], &[&a, &b]).to_vec::<f32>().unwrap()
    };
    let mean = |values: &[f32]| values.iter().sum::<f32>() / values.len() as f32;
    let uniform = draw(RandomDistribution::Uniform, 2.0, 6.0);
    assert!(uniform.iter().all(|v| (2.0..6.0).contains(v)));
    assert!((mean(&uniform) - 4.0).abs() < 0.05);
    let normal = draw(RandomDistribution::Normal, 1.0, 3.0);
    let squares: Vec<f32> = normal.iter().map(|v| (v - 1.0) * (v - 1.0)).collect();
    assert!((mean(&normal) - 1.0).abs() < 0.12);
    assert!((mean(&squares) - 9.0).abs() < 0.5);
}

/// Numbers from TensorFlow's own Philox kernel (`StatelessRandomUniformFullIntV2`), with a counter
/// that carries.
#[test]
fn a_philox_state_of_three_words_is_tensorflows_key_and_counter() {
    type Case = (PrimitiveType, [u64; 5], u64);
    let cases: [Case; 2] = [
        (U32, [331251688, 310605263, 3358087957, 1236178067, 887823221], 1),
        (
            U64,
            [
                1334039446881730536,
                5309344373155584789,
                18036748059889310581,
                4898133090397050204,
                7557277321987818124,
            ],
            2,
        ),
    ];
    for (element_type, bits, next) in cases {
        let state = Literal::from_elements(&[3], &[KEY, u64::MAX, 41]);
        let shape = Shape::Tuple(vec![Shape::array(U64, &[3]), Shape::array(element_type, &[5])]);
        let Literal::Tuple(results) = run(Op::RngBitGenerator { algorithm: Philox }, shape, &[&state]) else {
            panic!("a tuple")
        };
        assert_eq!(results[0].to_vec::<u64>().unwrap(), [KEY, next, 42]);
        assert_eq!(results[1].scalars().collect::<Vec<_>>(), bits.map(Scalar::Unsigned));
    }
}
