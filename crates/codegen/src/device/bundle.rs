//! The binary form of a device program, which the runtime (`tfcompile/device.h`) reads.
//!
//! All integers are little-endian, all tables start at multiples of 8 bytes, and all places are
//! offsets from the start.

use nest::launch::{DeviceProgram, SlotId, Space, Step};
use support::{Error, Id, Result};

use super::{DeviceImage, ImageKind, kernel_symbol};

const MAGIC: &[u8; 8] = b"TFCDEV1\0";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 160;

/// Size of an entry in the table of kernels.
const KERNEL_BYTES: usize = 64;

/// Sizes of the memory that a program needs.
#[derive(Clone, Debug, Default)]
pub struct DeviceMemory {
    /// Size of each argument in bytes, and whether the program writes it.
    pub arguments: Vec<(u64, bool)>,
    /// Size of each result in bytes, and the argument whose memory it shares.
    pub results: Vec<(u64, Option<usize>)>,
    /// Number of sizes of bounded dimensions.
    pub sizes: usize,
    /// Size of the block of temporaries.
    pub temps: u64,
    /// Size of its persistent part.
    pub persistent: u64,
    /// Size of the block of constants.
    pub constants: u64,
}

/// Returns the program and its images as one block of bytes.
pub fn bundle(
    program: &DeviceProgram,
    images: &[DeviceImage],
    memory: &DeviceMemory,
    name: &str,
) -> Result<Vec<u8>> {
    let mut out = Bundle { bytes: vec![0; HEADER_BYTES] };
    let arguments: Vec<u8> =
        memory.arguments.iter().flat_map(|&(bytes, is_written)| entry(bytes, is_written.into())).collect();
    let argument_of = |argument: Option<usize>| argument.map_or(0, |number| number as u32 + 1);
    let results: Vec<u8> =
        memory.results.iter().flat_map(|&(bytes, argument)| entry(bytes, argument_of(argument))).collect();
    let image_table = out.images(images)?;
    // Steps refer to kernels by their position in the table, which has no inlined functions.
    let (mut kernels, mut positions) = (Vec::new(), Vec::new());
    for ((id, function), facts) in program.kernels.functions.iter().zip(&program.facts) {
        positions.push((kernels.len() / KERNEL_BYTES) as u32);
        let nest::Linkage::Kernel { threads } = function.linkage else { continue };
        let name_at = out.text(&kernel_symbol(id.index(), &function.name));
        let label_at = out.text(&facts.label);
        kernels.extend([name_at, label_at].map(u64::to_le_bytes).concat());
        kernels.extend([threads, function.parameters.len() as u32].map(u32::to_le_bytes).concat());
        kernels.extend([facts.operations, facts.bytes, 0, 0, 0].map(u64::to_le_bytes).concat());
    }
    let slots: Vec<u8> = program.slots.iter().flat_map(|slot| self::slot(slot.space, slot.offset)).collect();
    let mut words = Words { words: Vec::new(), positions };
    words.steps(&program.steps)?;
    let words: Vec<u8> = words.words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut messages = Vec::new();
    for message in &program.messages {
        messages.extend(out.text(&message.text).to_le_bytes());
        messages.extend([message.code as u32, 0].map(u32::to_le_bytes).concat());
    }
    let name_at = out.text(name);
    let tables = [&arguments, &results, &image_table, &kernels, &slots, &words, &messages];
    let places: Vec<u64> = tables.into_iter().map(|table| out.append(table)).collect();
    let counts = [
        memory.arguments.len(),
        memory.results.len(),
        memory.sizes,
        kernels.len() / KERNEL_BYTES,
        images.len(),
        program.slots.len(),
        words.len() / 4,
        program.messages.len(),
    ];
    let is_cuda = images.iter().any(|image| matches!(image.kind, ImageKind::Ptx | ImageKind::Cubin));
    let sizes = [
        out.bytes.len() as u64,
        memory.temps,
        memory.persistent,
        memory.constants,
        program.control_size,
        program.scratch_size,
    ];
    let mut header = MAGIC.to_vec();
    header.extend([VERSION, if is_cuda { 1 } else { 2 }].map(u32::to_le_bytes).concat());
    header.extend(sizes.map(u64::to_le_bytes).concat());
    header.extend(counts.map(|count| (count as u32).to_le_bytes()).concat());
    header.extend(places.into_iter().chain([name_at]).flat_map(u64::to_le_bytes));
    out.bytes[..HEADER_BYTES].copy_from_slice(&header);
    Ok(out.bytes)
}

fn entry(bytes: u64, number: u32) -> Vec<u8> {
    [bytes.to_le_bytes().to_vec(), number.to_le_bytes().to_vec(), vec![0; 4]].concat()
}

fn slot(space: Space, offset: u64) -> Vec<u8> {
    let (space, index): (u32, u32) = match space {
        Space::Argument(number) => (0, number),
        Space::Result(number) => (1, number),
        Space::Temps => (2, 0),
        Space::Constants => (3, 0),
        Space::Sizes => (4, 0),
        Space::Control => (5, 0),
        Space::Scratch => (6, 0),
        Space::Null => (7, 0),
    };
    [space.to_le_bytes().to_vec(), index.to_le_bytes().to_vec(), offset.to_le_bytes().to_vec()].concat()
}

/// Returns the number of an architecture: 80 for `sm_80`, 1090 for `sm_90a`, 0 for none.
fn architecture(name: &str) -> Result<u32> {
    let Some(digits) = name.strip_prefix("sm_") else { return Ok(0) };
    let (digits, own) = digits.strip_suffix('a').map_or((digits, 0), |digits| (digits, 1000));
    let number: u32 =
        digits.parse().map_err(|_| Error::internal(format!("unknown GPU architecture '{name}'")))?;
    Ok(number + own)
}

struct Bundle {
    bytes: Vec<u8>,
}

impl Bundle {
    /// Appends bytes at a multiple of 64 and returns their place.
    fn append(&mut self, bytes: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(64), 0);
        let at = self.bytes.len() as u64;
        self.bytes.extend(bytes);
        at
    }

    /// Appends text with a final 0.
    fn text(&mut self, text: &str) -> u64 {
        let at = self.bytes.len() as u64;
        self.bytes.extend(text.bytes().filter(|&byte| byte != 0).chain([0]));
        at
    }

    /// Appends images and returns their table. Texts end with a 0, as drivers expect.
    fn images(&mut self, images: &[DeviceImage]) -> Result<Vec<u8>> {
        let mut table = Vec::new();
        for image in images {
            let (kind, end): (u32, &[u8]) = match image.kind {
                ImageKind::Ptx => (1, &[0]),
                ImageKind::Cubin => (2, &[]),
                ImageKind::Spirv => (3, &[]),
                ImageKind::OpenClC => (4, &[0]),
            };
            let at = self.append(&[&image.bytes, end].concat());
            let bytes = (image.bytes.len() + end.len()) as u64;
            table.extend([kind, architecture(&image.architecture)?].map(u32::to_le_bytes).concat());
            table.extend([at, bytes].map(u64::to_le_bytes).concat());
        }
        Ok(table)
    }
}

/// Writer of the steps.
struct Words {
    words: Vec<u32>,
    /// Position of each function in the table of kernels.
    positions: Vec<u32>,
}

impl Words {
    fn steps(&mut self, steps: &[Step]) -> Result<()> {
        steps.iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Launch { kernel, groups, arguments } => {
                self.words.extend([1, self.positions[kernel.index()]]);
                self.long(*groups);
                self.slots(arguments);
            }
            Step::Copy { to, from, bytes } => {
                self.words.push(2);
                self.slots(&[*to, *from]);
                self.long(*bytes);
            }
            Step::Repeat { trips, body } => {
                self.words.push(3);
                self.long(*trips);
                self.body(body)?;
            }
            Step::While { guard, count, before, body } => {
                self.words.push(4);
                self.slots(&[*guard, *count]);
                let lengths = self.words.len();
                self.words.extend([0, 0]);
                let start = self.words.len();
                self.steps(before)?;
                let middle = self.words.len();
                self.steps(body)?;
                self.words[lengths] = (middle - start) as u32;
                self.words[lengths + 1] = (self.words.len() - middle) as u32;
            }
            Step::Rotate(slots) => {
                self.words.extend([5, slots.len() as u32]);
                self.slots(slots);
            }
            Step::Home { slots, states, stages, bytes } => {
                self.words.extend([6, slots.len() as u32, *states as u32, stages.len() as u32]);
                self.slots(slots);
                self.slots(stages);
                self.long(*bytes);
            }
            Step::Skip { guard, body } => {
                self.words.push(7);
                self.slots(&[*guard]);
                self.body(body)?;
            }
        }
        let fits = u32::try_from(self.words.len()).is_ok();
        if fits { Ok(()) } else { Err(Error::unsupported("the program of the host exceeds 16 GiB")) }
    }

    fn body(&mut self, steps: &[Step]) -> Result<()> {
        let length = self.words.len();
        self.words.push(0);
        self.steps(steps)?;
        self.words[length] = (self.words.len() - length - 1) as u32;
        Ok(())
    }

    fn long(&mut self, value: u64) {
        self.words.extend([value as u32, (value >> 32) as u32]);
    }

    fn slots(&mut self, slots: &[SlotId]) {
        self.words.extend(slots.iter().map(|slot| slot.index() as u32));
    }
}
