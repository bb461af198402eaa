//! Memory whose accesses are recorded for each byte.

/// The part of an address that is the offset in its block.
pub const OFFSET: u64 = (1 << 40) - 1;

/// Stands for several threads or workgroups.
const MANY: u32 = u32::MAX;

/// An access of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub group: u32,
    pub epoch: u32,
    pub thread: u32,
    pub writes: bool,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    launch: u32,
    group: u32,
    epoch: u32,
    thread: u32,
}

const NEVER: Last = Last { launch: 0, group: 0, epoch: 0, thread: 0 };

#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    writers: Vec<Last>,
    readers: Vec<Last>,
    is_shared: bool,
}

/// All blocks. An address is the number of a block, from 1, and an offset.
#[derive(Default)]
pub struct Memory {
    blocks: Vec<Block>,
    launch: u32,
}

impl Memory {
    /// Adds a block and returns its address.
    pub fn add(&mut self, bytes: Vec<u8>) -> u64 {
        let count = bytes.len();
        let (writers, readers) = (vec![NEVER; count], vec![NEVER; count]);
        self.blocks.push(Block { bytes, writers, readers, is_shared: false });
        (self.blocks.len() as u64) << 40
    }

    /// Adds a block that lives as long as the running workgroup.
    pub fn add_shared(&mut self, bytes: usize) -> u64 {
        let address = self.add(vec![0xA5; bytes]);
        self.blocks.last_mut().expect("a block").is_shared = true;
        address
    }

    pub fn launch(&mut self) {
        self.launch += 1;
    }

    pub fn leave_group(&mut self) {
        while self.blocks.last().is_some_and(|block| block.is_shared) {
            self.blocks.pop();
        }
    }

    pub fn take(&mut self, address: u64) -> Vec<u8> {
        std::mem::take(&mut self.blocks[(address >> 40) as usize - 1].bytes)
    }

    fn place(&self, address: u64, size: usize) -> (usize, usize) {
        let (block, offset) = ((address >> 40) as usize, (address & OFFSET) as usize);
        assert!(block >= 1 && block <= self.blocks.len(), "an access of no memory: {address:#x}");
        let length = self.blocks[block - 1].bytes.len();
        assert!(offset + size <= length, "block {block}: an access at {offset} of {length} bytes");
        (block - 1, offset)
    }

    pub fn bytes(&self, address: u64, size: usize) -> &[u8] {
        let (block, offset) = self.place(address, size);
        &self.blocks[block].bytes[offset..offset + size]
    }

    pub fn set(&mut self, address: u64, bytes: &[u8]) {
        let (block, offset) = self.place(address, bytes.len());
        self.blocks[block].bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// Records an access. Panics if another thread's access conflicts with it.
    pub fn touch(&mut self, address: u64, size: usize, access: Access) {
        let launch = self.launch;
        let (number, offset) = self.place(address, size);
        let block = &mut self.blocks[number];
        let is_apart = |last: Last| {
            let is_same_group = last.group == access.group;
            let is_ordered = is_same_group && (last.epoch < access.epoch || last.thread == access.thread);
            last.launch == launch && !is_ordered
        };
        for at in offset..offset + size {
            let (writer, reader) = (block.writers[at], block.readers[at]);
            assert!(
                !is_apart(writer),
                "race at byte {at} of block {number}: {access:?} and the write {writer:?}"
            );
            let this = Last { launch, group: access.group, epoch: access.epoch, thread: access.thread };
            if access.writes {
                assert!(
                    !is_apart(reader),
                    "race at byte {at} of block {number}: {access:?} and the read {reader:?}"
                );
                block.writers[at] = this;
                continue;
            }
            block.readers[at] = if is_apart(reader) {
                let group = if reader.group == access.group { access.group } else { MANY };
                Last { group, thread: MANY, ..this }
            } else {
                this
            };
        }
    }
}
