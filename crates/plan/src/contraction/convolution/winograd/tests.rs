//! Tests of the choice between the transforms and the direct sum, and of blocks and tiles.

use super::*;
use crate::contraction::convolution::{OpenDimensions, SpatialDimension};

fn same(batch: i64, pixels: i64, inputs: i64, outputs: i64) -> ConvolutionDims {
    let window = WindowDimension { padding_low: 1, padding_high: 1, ..WindowDimension::of_size(3) };
    let spatial = vec![SpatialDimension { input: pixels, output: pixels, window }; 2];
    ConvolutionDims { batch, groups: 1, inputs, outputs, spatial, open: OpenDimensions::None }
}

fn of(dims: &ConvolutionDims, is_constant: bool, allowed: Winograd, cpu: &str) -> Option<WinogradPlan> {
    let target = Target::new("x86_64-pc-linux", cpu, "").expect("a valid triple");
    choose(dims, PrimitiveType::F32, is_constant, allowed, &target)
}

#[test]
fn transforms_are_used_where_they_pay() {
    use Winograd::{Large, Never, Small};
    // (batch, pixels, inputs, outputs, constant), the patches' size for each option; 0 for no
    // transform.
    let table = [
        ((1, 56, 64, 64, true), [0, 2, 4]),
        ((1, 28, 128, 128, true), [0, 2, 4]),
        ((1, 14, 256, 256, true), [0, 2, 2]),
        // The kernel, 16 MB when transformed, is read for only 16 patches.
        ((1, 7, 512, 512, true), [0, 0, 0]),
        ((1, 32, 16, 16, true), [0, 2, 4]),
        // Few channels: the transforms cost what they save.
        ((1, 128, 3, 32, true), [0, 0, 0]),
        ((1, 3, 4, 4, true), [0, 0, 0]),
        // A kernel that is transformed at run time needs more patches.
        ((32, 32, 16, 16, false), [0, 2, 4]),
        ((1, 4, 64, 64, false), [0, 0, 0]),
    ];
    for ((batch, pixels, inputs, outputs, is_constant), expected) in table {
        let dims = same(batch, pixels, inputs, outputs);
        let sizes = [Never, Small, Large].map(|allowed| {
            of(&dims, is_constant, allowed, "sapphirerapids").map_or(0, |plan| plan.transform.outputs)
        });
        assert_eq!(sizes, expected, "{batch} {pixels} {inputs} {outputs}");
    }
}

#[test]
fn other_windows_have_no_transform() {
    let plain = same(1, 56, 64, 64);
    let change = |change: fn(&mut WindowDimension)| {
        let mut dims = plain.clone();
        change(&mut dims.spatial[1].window);
        of(&dims, true, Winograd::Forced(2), "x86-64-v3").is_some()
    };
    assert!(change(|_| {}));
    assert!(change(|w| w.padding_low = 2));
    assert!(!change(|w| w.stride = 2));
    assert!(!change(|w| w.size = 5));
    assert!(!change(|w| w.window_dilation = 2));
    assert!(!change(|w| w.base_dilation = 2));
    assert!(of(&ConvolutionDims { groups: 2, ..plain.clone() }, true, Winograd::Forced(2), "").is_none());
    assert!(of(&ConvolutionDims { batch: 0, ..plain.clone() }, true, Winograd::Forced(2), "").is_none());
    assert!(
        of(&ConvolutionDims { batch: 1 << 40, ..plain.clone() }, true, Winograd::Forced(2), "").is_none()
    );
    assert!(of(&plain, true, Winograd::Forced(3), "").is_none(), "no such transform");
}

#[test]
fn blocks_fit_the_cache_and_register_tiles_the_registers() {
    for cpu in ["x86-64", "x86-64-v3", "x86-64-v4", "sapphirerapids"] {
        let target = Target::new("x86_64-pc-linux", cpu, "").expect("a valid triple");
        for (batch, pixels, inputs, outputs) in [
            (1, 56, 64, 64),
            (1, 28, 128, 128),
            (1, 14, 256, 256),
            (8, 14, 256, 200),
            (1, 8, 64, 64),
            (3, 5, 7, 9),
        ] {
            let dims = same(batch, pixels, inputs, outputs);
            for forced in [2, 4] {
                let plan = of(&dims, true, Winograd::Forced(forced), cpu).expect("possible");
                let (tile, all) = (plan.tile, plan.all_patches(&dims));
                assert!(tile.rows * tile.vectors + tile.vectors < target.vector_registers, "{cpu} {tile:?}");
                assert_eq!(plan.block, (all + plan.blocks - 1) / plan.blocks);
                // Register tiles cover a block. If there are several, each fits the smallest
                // block.
                let tiles = (plan.block + i64::from(tile.rows) - 1) / i64::from(tile.rows);
                assert!(tiles == 1 || i64::from(tile.rows) <= all / plan.blocks);
                assert!(plan.feature_chunks == 1 || plan.chunks == plan.blocks);
                assert!(plan.tasks() <= 64 && plan.tasks() >= 1);
                let input = plan.transform.frequencies() * plan.scratch.input_frequency;
                assert!(tiles == 1 || input as u64 <= target.l2_bytes, "{cpu} {batch} {pixels} {inputs}");
                assert!(plan.scratch.bytes <= MAX_SCRATCH);
            }
        }
    }
}

#[test]
fn bytes_are_transformed_where_products_take_several_instructions() {
    let chosen = |dims: &ConvolutionDims, cpu: &str, allowed: Winograd| {
        let target = Target::new("x86_64-pc-linux", cpu, "").expect("a valid triple");
        let types = [PrimitiveType::S8, PrimitiveType::S8, PrimitiveType::S32];
        let direct = dense::of_groups(types, dims, &target).expect("tiles");
        bytes::choose(dims, &direct, allowed, &target)
    };
    let dims = same(1, 28, 128, 128);
    for (cpu, expected) in [
        ("x86-64", true),
        ("x86-64-v2", true),
        ("x86-64-v3", true),
        ("x86-64-v4", true),
        ("sapphirerapids", false),
    ] {
        assert_eq!(chosen(&dims, cpu, Winograd::Small).is_some(), expected, "{cpu}");
        assert!(chosen(&dims, cpu, Winograd::Never).is_none(), "{cpu}");
    }
    let is_possible = |inputs| chosen(&same(1, 8, inputs, 16), "x86-64-v3", Winograd::Forced(2)).is_some();
    // A window of one tap has no transform, but is widened once, with any stride.
    let one = |stride: i64, padding_low: i64| {
        let mut dims = same(1, 28, 64, 64);
        for d in &mut dims.spatial {
            d.window = WindowDimension { stride, padding_low, ..WindowDimension::of_size(1) };
            d.output = (28 + padding_low - 1) / stride + 1;
        }
        chosen(&dims, "x86-64-v3", Winograd::Forced(1)).map(|plan| plan.transform)
    };
    let identity = Some(Transform::IDENTITY);
    assert_eq!([one(1, 0), one(2, 0), one(1, 1)], [identity, identity, None]);
    // Groups of four inputs, and sums of 31 bits.
    assert_eq!([4, 6, 1824, 1828].map(is_possible), [true, false, true, false]);
    // A kernel that few patches read is transformed by each block, a small one once.
    let plan = |pixels, features| {
        chosen(&same(1, pixels, features, features), "x86-64-v3", Winograd::Forced(2)).expect("possible")
    };
    assert!(plan(7, 512).by_columns && !plan(28, 32).by_columns && !plan(112, 256).by_columns);
    assert!(plan(7, 512).kernel_bytes() < plan(7, 512).panels.bytes());
}

#[test]
fn bytes_are_multiplied_by_lanes_without_dot_products() {
    let dims = same(1, 28, 128, 128);
    let choose = |dims: &ConvolutionDims, triple: &str, [cpu, features]: [&str; 2], allowed: Winograd| {
        let target = Target::new(triple, cpu, features).expect("a valid triple");
        let types = [PrimitiveType::S8, PrimitiveType::S8, PrimitiveType::S32];
        let direct = dense::of_groups(types, dims, &target).expect("tiles");
        bytes::choose(dims, &direct, allowed, &target)
    };
    let pointwise = {
        let mut dims = same(1, 28, 128, 128);
        dims.spatial.iter_mut().for_each(|d| d.window = WindowDimension::of_size(1));
        dims
    };
    let (arm64, arm32) = ("aarch64-unknown-linux-gnu", "armv7-unknown-linux-gnueabihf");
    for (triple, cpu, features, rows) in [
        (arm64, "", "", 8),
        (arm64, "cortex-a53", "", 8),
        (arm64, "cortex-a72", "", 8),
        (arm32, "", "", 4),
        (arm32, "cortex-a7", "", 4),
        (arm64, "", "+dotprod", 0),
        (arm64, "neoverse-n1", "", 0),
        (arm64, "neoverse-n2", "", 0),
    ] {
        let of = |dims: &ConvolutionDims, allowed| choose(dims, triple, [cpu, features], allowed);
        let plan = of(&dims, Winograd::Small);
        let tile = plan.as_ref().map(|plan| plan.tile);
        let fits = |tile: Tile| (rows - 1..=rows).contains(&tile.rows) && tile.vectors == 2;
        assert!(tile.map_or(rows == 0, fits), "{triple} {cpu} {features} {tile:?}");
        assert_eq!(plan.as_ref().is_some_and(WinogradPlan::has_halves), rows > 0);
        assert_eq!(of(&same(1, 32, 16, 16), Winograd::Small).is_some(), rows > 0, "{triple} {cpu}");
        // Few features, and a window of one tap, which has nothing to save.
        assert!(of(&same(1, 3, 4, 4), Winograd::Small).is_none(), "{triple} {cpu}");
        assert!(of(&pointwise, Winograd::Small).is_none(), "{triple} {cpu}");
        assert!(of(&dims, Winograd::Never).is_none());
        assert_eq!(of(&pointwise, Winograd::Forced(1)).is_some(), rows > 0, "{triple} {cpu}");
    }
}
