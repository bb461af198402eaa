//! Tests of which products are in groups, and of panels.

use super::*;
use PrimitiveType::{Bf16, F16, F32, S8, S32, U8};

/// Groups of products whose right operand may be -128.
fn of_types(types: [PrimitiveType; 3], run: i64, sizes: [i64; 2], target: &Target) -> Option<Grouping> {
    Grouping::of(FactorTypes::new(types, None, target), run, sizes, target)
}

#[test]
fn single_rows_of_words_share_few_registers() {
    let of = |cpu, triple| {
        let target = Target::new(triple, cpu, "").expect("a valid triple");
        let tile = tile::choose_with(1, 128, 4, tile::Access::default(), &target);
        let grouping = of_types([S8, S8, S32], 640, [1, 128], &target).expect("groups");
        let limited = grouping.limited(tile, 1, &target);
        (tile.vectors, limited.vectors, limited.lanes, limited.k_split)
    };
    // Without groups, as many columns as other processors have vectors.
    assert_eq!(of("cortex-m4", "thumbv7em-none-eabihf"), (8, 4, 1, 1));
    assert_eq!(of("cortex-m0plus", "thumbv6m-none-eabi"), (8, 2, 1, 1));
    assert_eq!(of("", "riscv32-unknown-none-elf"), (4, 2, 1, 1));
}

#[test]
fn vectors_of_bytes_take_whole_runs_of_signed_bytes() {
    let m55 = Target::new("thumbv8.1m.main-none-eabihf", "cortex-m55", "").expect("a valid triple");
    let of = |lhs, run, columns| of_types([lhs, S8, S32], run, [4, columns], &m55);
    let grouping = of(S8, 40, 8).expect("vectors of bytes");
    assert_eq!((grouping.sums, grouping.summands(), grouping.bytes()), (Sums::Across, 16, 16));
    assert_eq!((grouping.tail, grouping.groups(40), grouping.header(1)), (8, 3, 0));
    // The last group is loaded with summands of the one before, whose factors are 0.
    let places = [0, 7, 8, 15].map(|place| grouping.summand(40, 2, place));
    assert_eq!(places, [None, None, Some(32), Some(39)]);
    assert_eq!((of(S8, 15, 8), of(U8, 40, 8), of(S8, 40, 1)), (None, None, None));
    for (m, sums) in [(1, (1, 4)), (9, (2, 2))] {
        let tile = tile::choose_with(m, 64, 4, tile::Access::default(), &m55.for_groups());
        let Tile { rows, vectors, lanes, .. } = grouping.limited(tile, m, &m55.for_groups());
        assert_eq!((rows, vectors, lanes), (sums.0, sums.1, 1), "{m} rows");
    }
}

#[test]
fn bytes_are_flipped_where_the_instruction_takes_the_other_kind() {
    let target = |triple, cpu| Target::new(triple, cpu, "").expect("a valid triple");
    let (vnni, avx2) = (target("x86_64-pc-linux", "znver4"), target("x86_64-pc-linux", "x86-64-v3"));
    let (arm, plain) =
        (target("aarch64-linux-gnu", "neoverse-n1"), target("aarch64-linux-gnu", "cortex-a53"));
    let of = |lhs, target| of_types([lhs, S8, S32], 10, [8, 16], target);
    let grouping = |is_signed, is_flipped| {
        let factors = Factors::Bytes { is_signed, is_flipped };
        Some(Grouping { factors, tail: 2, is_widened: false, moves_signs: false, sums: Sums::Lanes })
    };
    assert_eq!(of(S8, &vnni), grouping(false, true));
    assert_eq!(of(U8, &vnni), grouping(false, false));
    let widened = |grouping: Option<Grouping>| grouping.map(|g| Grouping { is_widened: true, ..g });
    assert_eq!(of(S8, &avx2), widened(grouping(true, false)));
    assert_eq!(of(U8, &avx2), widened(grouping(false, false)));
    assert_eq!(of(S8, &arm), grouping(true, false));
    assert_eq!(of(U8, &arm), grouping(true, true));
    let halves = |grouping: Option<Grouping>| {
        grouping.map(|g| Grouping { is_widened: true, moves_signs: false, sums: Sums::Halves, ..g })
    };
    assert_eq!(of(S8, &plain), halves(grouping(true, false)));
    assert_eq!(of(U8, &plain), halves(grouping(true, true)));
    assert_eq!(of_types([S8, U8, S32], 10, [8, 16], &vnni), None);
    assert_eq!(of_types([S8, S8, S32], 10, [8, 1], &vnni), None);
}

#[test]
fn signs_move_to_bytes_without_the_lowest_one() {
    let of = |lhs, weights: [i8; 4], cpu| {
        let target = Target::new("x86_64-pc-linux", cpu, "").expect("a valid triple");
        let weights = Literal::from_elements(&[4], &weights);
        let types = FactorTypes::new([lhs, S8, S32], Some(&weights), &target);
        let grouping = Grouping::of(types, 8, [8, 16], &target).expect("groups");
        (grouping.moves_signs, grouping.is_flipped())
    };
    for cpu in ["x86-64-v2", "x86-64-v3"] {
        assert_eq!(of(S8, [-127, 0, 5, 127], cpu), (true, false));
        // Signs move from signed bytes only.
        assert_eq!(of(U8, [-127, 0, 5, 127], cpu), (true, true));
        assert_eq!(of(S8, [-128, 0, 5, 127], cpu), (false, false));
        assert_eq!(of(U8, [-128, 0, 5, 127], cpu), (false, false));
    }
    for cpu in ["x86-64", "x86-64-v4", "znver4"] {
        assert!(!of(S8, [-127, 0, 5, 127], cpu).0, "{cpu}");
    }
}

#[test]
fn narrow_floats_are_pairs() {
    let target = |triple, cpu| Target::new(triple, cpu, "").expect("a valid triple");
    let table = [
        (Bf16, target("x86_64-pc-linux", "znver4"), Some((Factors::Bf16, false))),
        (Bf16, target("x86_64-pc-linux", "x86-64-v3"), Some((Factors::Bf16, true))),
        (Bf16, target("aarch64-linux-gnu", "neoverse-n2"), Some((Factors::Bf16, false))),
        (F16, target("x86_64-pc-linux", "znver4"), None),
        (Bf16, target("thumbv7em-none-eabi", "cortex-m4"), None),
    ];
    for (ty, target, expected) in table {
        let grouping = of_types([ty, ty, F32], 7, [1, 16], &target);
        assert_eq!(grouping.map(|g| (g.factors, g.is_widened)), expected, "{ty} for '{}'", target.cpu);
        assert!(grouping.is_none_or(|g| (g.tail, g.tail_bytes(), g.groups(7)) == (1, 2, 4)));
        assert_eq!(of_types([ty, F32, F32], 7, [1, 16], &target), None);
    }
}

#[test]
fn rows_and_columns_are_multiplied_in_pairs() {
    let i8mm = Target::new("aarch64-linux-gnu", "neoverse-n2", "").expect("a valid triple");
    let table = [
        // (types, run, rows), (summands of a group, its bytes, those of the last group)
        ([S8, S8, S32], 13, 8, Some((8, 8, 5))),
        ([U8, S8, S32], 16, 2, Some((8, 8, 0))),
        ([Bf16, Bf16, F32], 7, 3, Some((4, 8, 6))),
        // Groups that would be half empty, one row, and factors without such an instruction.
        ([S8, S8, S32], 4, 8, Some((4, 4, 0))),
        ([S8, S8, S32], 13, 1, Some((4, 4, 1))),
    ];
    for (types, run, rows, expected) in table {
        let grouping = of_types(types, run, [rows, 16], &i8mm);
        assert_eq!(grouping.map(|g| (g.summands(), g.bytes(), g.tail_bytes())), expected, "{types:?} {run}");
        assert!(grouping.is_some_and(|g| !g.is_flipped()));
    }
    let signed = Target::new("aarch64-linux-gnu", "neoverse-n1", "").expect("a valid triple");
    assert!(of_types([S8, S8, S32], 13, [8, 16], &signed).is_some_and(|g| g.sums == Sums::Lanes));
}

#[test]
fn tiles_of_pairs_have_even_numbers_of_rows_if_the_product_has() {
    let i8mm = Target::new("aarch64-linux-gnu", "neoverse-n2", "").expect("a valid triple");
    let grouping = of_types([S8, S8, S32], 64, [8, 64], &i8mm).expect("groups");
    let tile = Tile { rows: 8, vectors: 2, lanes: 4, k_split: 1 };
    // The other tiles have `step` rows less, and all together exactly `m`.
    for (m, rows, step) in [(16, 8, 2), (10, 6, 2), (12, 6, 2), (26, 8, 2), (13, 7, 1), (7, 7, 1)] {
        let limited = grouping.limited(tile, m, &i8mm);
        let (most, tiles) = (i64::from(limited.rows), (m + rows - 1) / rows);
        assert_eq!((most, grouping.row_step(m, limited.rows)), (rows, step), "{m}");
        assert!(tiles * (most - step) <= m && m <= tiles * most && (m - tiles * (most - step)) % step == 0);
    }
}

#[test]
fn a_panel_of_bytes_begins_with_the_sums_of_its_columns() {
    let layout = PanelLayout {
        rows: 2,
        columns: 2,
        width: 2,
        element_bytes: 4,
        header: 1,
        block_rows: 0,
        scale_bytes: 0,
    };
    let mut packed = vec![0; layout.panel_bytes() as usize];
    let factors = Factors::Bytes { is_signed: true, is_flipped: false };
    let grouping = Grouping { factors, tail: 0, is_widened: false, moves_signs: false, sums: Sums::Lanes };
    let source: Vec<u8> = (0..8).chain((0..8).map(|x: u8| x.wrapping_neg())).collect();
    grouping.fill(&mut packed, layout, &source, |row, column, k| Some(8 * column + 4 * row + k));
    let sums: Vec<i32> =
        packed[..8].chunks(4).map(|b| i32::from_le_bytes(b.try_into().expect("four bytes"))).collect();
    assert_eq!(sums, [-128 * 28, 128 * 28]);
    assert_eq!(packed[8..16], [0, 1, 2, 3, 0, 255, 254, 253]);
    assert_eq!(packed[16..24], [4, 5, 6, 7, 252, 251, 250, 249]);
}

#[test]
fn a_panel_for_pairs_has_eight_bytes_of_each_column() {
    let layout = PanelLayout {
        rows: 1,
        columns: 2,
        width: 2,
        element_bytes: 8,
        header: 0,
        block_rows: 0,
        scale_bytes: 0,
    };
    let factors = Factors::Bytes { is_signed: true, is_flipped: false };
    let grouping = Grouping { factors, tail: 7, is_widened: false, moves_signs: false, sums: Sums::Pairs };
    assert_eq!(grouping.header(1), 0);
    let mut packed = vec![0; layout.panel_bytes() as usize];
    let source: Vec<u8> = (1..=14).collect();
    grouping.fill(&mut packed, layout, &source, |_, column, k| (k < 7).then_some(2 * k + column));
    assert_eq!(packed, [1, 3, 5, 7, 9, 11, 13, 0, 2, 4, 6, 8, 10, 12, 14, 0]);
}

#[test]
fn a_panel_of_pairs_has_no_sums() {
    let layout = PanelLayout {
        rows: 1,
        columns: 2,
        width: 2,
        element_bytes: 4,
        header: 0,
        block_rows: 0,
        scale_bytes: 0,
    };
    let mut packed = vec![0; layout.panel_bytes() as usize];
    let grouping = Grouping {
        factors: Factors::Bf16,
        tail: 1,
        is_widened: false,
        moves_signs: false,
        sums: Sums::Lanes,
    };
    let source = [1, 2, 3, 4];
    grouping.fill(&mut packed, layout, &source, |_, column, k| (k == 0).then_some(column));
    assert_eq!(packed, [1, 2, 0, 0, 3, 4, 0, 0]);
}

#[test]
fn the_last_group_of_a_run_ends_with_its_summands() {
    let factors = Factors::Bytes { is_signed: false, is_flipped: true };
    let grouping =
        |tail| Grouping { factors, tail, is_widened: false, moves_signs: false, sums: Sums::Lanes };
    let of = |tail, run, group| [0, 1, 2, 3].map(|place| grouping(tail).summand(run, group, place));
    assert_eq!(of(1, 9, 1), [4, 5, 6, 7].map(Some));
    assert_eq!(of(1, 9, 2), [None, None, None, Some(8)]);
    assert_eq!(of(3, 11, 2), [None, Some(8), Some(9), Some(10)]);
    assert_eq!(of(0, 8, 1), [4, 5, 6, 7].map(Some));
    assert_eq!(of(3, 3, 0), [Some(0), Some(1), Some(2), None]);
}
