//! Transposes in tiles. The threads of a warp first read neighbors along one side of the tile, then
//! write neighbors along the other one.

use super::team::{self, from_memory, memory, to_memory};
use crate::context::KernelContext;
use crate::context::addressing::Containment;
use crate::element::Element;
use crate::index::{Facts, Index, Position};
use nest::{ThreadIndex, Type, ValueId};
use plan::{Loop, TILE, TILE_ROWS, TransposePlan};
use support::Result;

/// Distance of the rows of a tile in elements. Threads that read a column use different banks.
const PITCH: i64 = TILE + 1;

/// A transposed value: its tiles, one for each part, and their types in registers.
struct Tile {
    value: hlo::InstructionId,
    parts: Vec<(ValueId, Type)>,
}

/// Writes the result.
pub(super) fn emit(cx: &mut KernelContext<'_>, plan: &TransposePlan) -> Result<()> {
    let root = cx.fusion().root;
    let rank = cx.shape(root)?.rank();
    let local = cx.thread(ThreadIndex::Local);
    cx.learn(local, Facts::range(0, TILE * TILE_ROWS - 1));
    let (row, column) = cx.div_rem(&Index::scalar(local), TILE)?;
    let (across, innermost) = plan.tiles();
    let outer: i64 = plan.outer.iter().map(|l| l.extent).product();
    let group = team::group(cx, outer * across * innermost);
    let (group, of_innermost) = cx.div_rem(&group, innermost)?;
    let (group, of_across) = cx.div_rem(&group, across)?;
    let mut indices = vec![Index::default(); rank];
    team::place(cx, &plan.outer, &group, &mut indices)?;
    let (of_across, of_innermost) = (of_across.times(TILE), of_innermost.times(TILE));
    let mut tiles: Vec<Tile> = Vec::with_capacity(plan.values.len());
    for first in (0..TILE).step_by(TILE_ROWS as usize) {
        let line = row.plus_constant(first);
        let Some((a, _)) = inside(cx, &of_across.plus(&column), plan.across)? else { continue };
        let Some((i, _)) = inside(cx, &of_innermost.plus(&line), plan.innermost)? else { continue };
        indices[plan.across.dimension] = a;
        indices[plan.innermost.dimension] = i;
        for (k, &id) in plan.values.iter().enumerate() {
            let element = cx.element(id, &Position::Multi(indices.clone()))?;
            let values = cx.widen(element, 1)?.values();
            if tiles.len() == k {
                let mut parts = Vec::with_capacity(values.len());
                for &value in &values {
                    let ty = cx.ty(value);
                    let bytes = (memory(ty).scalar.byte_size() as i64 * TILE * PITCH) as u64;
                    parts.push((cx.workgroup_memory(bytes, 16), ty));
                }
                tiles.push(Tile { value: id, parts });
            }
            for (&(tile, ty), value) in tiles[k].parts.iter().zip(values) {
                let size = memory(ty).scalar.byte_size() as i64;
                let place = cx.scalar_value(&line.times(PITCH).plus(&column))?;
                let address = cx.offset(tile, place, size);
                let raw = to_memory(cx, value);
                cx.store(raw, address, size as u32);
            }
        }
    }
    cx.barrier();
    for first in (0..TILE).step_by(TILE_ROWS as usize) {
        let line = row.plus_constant(first);
        let Some((a, in_across)) = inside(cx, &of_across.plus(&line), plan.across)? else { continue };
        let Some((i, in_innermost)) = inside(cx, &of_innermost.plus(&column), plan.innermost)? else {
            continue;
        };
        indices[plan.across.dimension] = a;
        indices[plan.innermost.dimension] = i;
        let is_in = team::all(cx, &[in_across, in_innermost]);
        team::when(cx, is_in, |cx| {
            let mut provided = Vec::with_capacity(tiles.len());
            for tile in &tiles {
                let mut values = Vec::with_capacity(tile.parts.len());
                for &(first, ty) in &tile.parts {
                    let size = memory(ty).scalar.byte_size() as i64;
                    let place = cx.scalar_value(&column.times(PITCH).plus(&line))?;
                    let address = cx.offset(first, place, size);
                    let raw = cx.load(memory(ty), address, size as u32);
                    values.push(from_memory(cx, ty, raw));
                }
                provided.push((tile.value, Element::from_values(&values)));
            }
            cx.with_provided(provided, |cx| {
                let position = Position::Multi(indices.clone());
                let element = cx.element(root, &position)?;
                let result = cx.results()[0].clone();
                cx.store_at(&result, &position, element)
            })
        })?;
    }
    Ok(())
}

/// Returns an index of a loop, and a condition if the loop may have no such index. It is then
/// another one. Returns `None` if the loop never has it.
fn inside(cx: &mut KernelContext<'_>, index: &Index, of: Loop) -> Result<Option<(Index, Option<ValueId>)>> {
    Ok(match cx.contains(index, 0, of.extent)? {
        Containment::Always => Some((index.clone(), None)),
        Containment::When(is_in) => Some((cx.clamp(index, 0, of.extent - 1)?, Some(is_in))),
        Containment::Never => None,
    })
}
