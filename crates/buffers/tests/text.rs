//! The printed form of an assignment.

use crate::planned;
use buffers::{Allocation, BufferAssignment, CopyPair, Rotation, Slice};

fn slice(allocation: Allocation, offset: u64, size: u64) -> Slice {
    Slice { allocation, offset, size }
}

#[test]
fn every_part_of_an_assignment_has_a_line() {
    let (module, _) = planned(
        "HloModule m
        ENTRY main {
          x = f32[4] parameter(0)
          y = f32[4] negate(x)
          ROOT out = (f32[4]) tuple(y)
        }",
    );
    let entry = module.entry();
    let find = |name: &str| module[entry].find(name).expect("an instruction");
    let mut assignment = BufferAssignment { temps_size: 640, ..BufferAssignment::default() };
    let empty = assignment.to_text(&module, 0);
    assert_eq!(empty, "temps 640 bytes (640 of them gaps), 0 persistent; constants 0 bytes\n");
    assignment.temps_lower_bound = 640;
    assert_eq!(assignment.to_text(&module, 0), "temps 640 bytes, 0 persistent; constants 0 bytes\n");

    assignment.temps_lower_bound = 576;
    assignment.persistent_size = 64;
    assignment.worker_scratch_size = 128;
    let [temps, other] = [slice(Allocation::Temps, 64, 16), slice(Allocation::Temps, 128, 16)];
    assignment.slices.insert((entry, find("x"), vec![]), slice(Allocation::Parameter(0), 0, 16));
    assignment.slices.insert((entry, find("out"), vec![0]), slice(Allocation::Result(0), 0, 16));
    assignment.scratch.insert((entry, find("y")), temps);
    assignment.packed.insert((entry, find("y"), 2), slice(Allocation::Constants, 192, 8));
    let copy = CopyPair { from: temps, to: other };
    assignment.start_copies.insert((entry, find("y")), vec![copy]);
    let rotation = Rotation { places: vec![temps, other], state: vec![temps], stages: vec![] };
    assignment.rotations.insert((entry, find("y")), vec![rotation]);
    assignment.end_copies.insert(entry, vec![CopyPair { from: other, to: temps }]);
    assert_eq!(
        assignment.to_text(&module, 256),
        "temps 640 bytes (64 of them gaps), 64 persistent; constants 256 bytes
  each worker: 128 bytes
  x: parameter 0[0..16]
  out{0}: result 0[0..16]
  y scratch: temps[64..80]
  y packed 2: constants[192..200]
  before y: temps[64..80] -> temps[128..144]
  each iteration of y exchanges temps[64..80], temps[128..144]
  end of main: temps[128..144] -> temps[64..80]
"
    );
}

#[test]
fn slices_overlap_if_they_share_a_byte() {
    let middle = slice(Allocation::Temps, 64, 16);
    for (offset, size, expected) in [
        (64, 16, true),
        (60, 4, false),
        (60, 5, true),
        (79, 1, true),
        (80, 4, false),
        (0, 200, true),
        (70, 2, true),
        (0, 8, false),
        (200, 8, false),
    ] {
        let other = slice(Allocation::Temps, offset, size);
        assert_eq!(middle.overlaps(&other), expected, "{other}");
        assert_eq!(other.overlaps(&middle), expected, "{other}");
        assert!(!middle.overlaps(&Slice { allocation: Allocation::Constants, ..other }));
    }
}
