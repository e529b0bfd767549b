//! One launch for several kernels of the same text: a table says where each one's blocks begin, and what its
//! parameters are.

use crate::ir::Kernel;
use crate::nest::{self, PARAMETER_BYTES, Parameter};
use crate::{Emitted, Language, Refusal, text};

/// The table that is the only parameter of a batch: a record for each part. The parts run one after the other's
/// blocks, and a record starts with the parameters of the part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    /// Records in the table. Those without a part come last, and begin at a block that no launch has.
    pub records: usize,
    /// The parameters' places in a record.
    fields: Vec<Field>,
    /// The place of the number of the part's first block.
    first_block: Field,
    /// Bytes from record to record.
    record_bytes: usize,
}

/// Some bytes of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Field {
    offset: usize,
    bytes: usize,
}

impl Batch {
    /// The table's layout, as the languages lay out a struct: each field at a multiple of its size.
    fn new(emitted: &Emitted, kernel: &Kernel, wide_index: bool, records: usize) -> Batch {
        let index_bytes = match (emitted.language, wide_index) {
            (Language::Cuda, false) => 4,
            (Language::Cuda, true) | (Language::C, _) => 8,
        };
        let mut end = 0usize;
        let mut field = |bytes: usize| {
            let offset = end.next_multiple_of(bytes);
            end = offset + bytes;
            Field { offset, bytes }
        };
        let bytes_of = |parameter: &Parameter| parameter.bytes(kernel, index_bytes) as usize;
        let fields = emitted.parameters.iter().map(|parameter| field(bytes_of(parameter))).collect();
        let first_block = field(index_bytes as usize);
        // A kernel has a buffer, whose pointer is the widest field.
        Batch { records, fields, first_block, record_bytes: end.next_multiple_of(8) }
    }

    /// Bytes from record to record.
    pub(crate) fn record_bytes(&self) -> usize {
        self.record_bytes
    }

    /// The table's bytes, as words: of each part its first block, and its parameters' bits.
    pub fn table<'a>(&self, parts: impl IntoIterator<Item = (u64, &'a [u64])>) -> Vec<u64> {
        let mut bytes = vec![0u8; self.records * self.record_bytes];
        let mut parts = parts.into_iter();
        for record in bytes.chunks_mut(self.record_bytes) {
            let mut write = |field: &Field, word: u64| {
                record[field.offset..field.offset + field.bytes]
                    .copy_from_slice(&word.to_le_bytes()[..field.bytes]);
            };
            match parts.next() {
                Some((first_block, words)) => {
                    self.fields.iter().zip(words).for_each(|(field, &word)| write(field, word));
                    write(&self.first_block, first_block);
                }
                // A C index is signed.
                None => write(&self.first_block, u64::MAX >> 1),
            }
        }
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        bytes.chunks(8).map(word).collect()
    }
}

impl Emitted {
    /// Whether kernels of this text can be parts of a batch: they are one function, whose blocks have a number and
    /// nothing in common.
    pub fn can_be_batched(&self) -> bool {
        self.workspaces.is_empty()
            && self.maps.is_empty()
            && !self.parameters.contains(&Parameter::Checks)
            && matches!(self.launches.as_slice(), [(_, launch)] if launch.splits == 1)
    }

    /// How many kernels of this text one batch takes.
    pub fn most_parts(&self, kernel: &Kernel) -> usize {
        (PARAMETER_BYTES as usize / Batch::new(self, kernel, nest::needs_wide_index(kernel), 0).record_bytes)
            .max(1)
    }
}

/// Emits one kernel that runs `parts` kernels of the text that `kernel` was emitted as, with so many blocks together.
/// The text has room for `records`.
///
/// # Errors
/// If the kernel cannot be a part of a batch.
pub fn emit_batch(
    kernel: &Kernel,
    emitted: &Emitted,
    parts: usize,
    blocks: u64,
    records: usize,
) -> Result<Emitted, Refusal> {
    if !emitted.can_be_batched() || parts > records {
        return Err(Refusal::Misfit("a kernel that cannot be batched"));
    }
    let mut kernel = kernel.clone();
    kernel.name = format!("{}_x{records}", kernel.name);
    let nest = nest::build(&kernel, emitted.language, &emitted.schedule)?;
    let batch = Batch::new(emitted, &kernel, nest.wide_index, records);
    let source = text::print_batch(&nest, emitted.language, &batch);
    let launches = nest.functions.into_iter().map(|function| {
        let name = format!("the sum of {} over {parts} parts", function.launch.blocks());
        let items = crate::schedule::WorkItems::named(name, blocks);
        let launch = crate::schedule::Launch { items, per_block: 1, ..function.launch };
        (function.name, launch)
    });
    Ok(Emitted {
        name: kernel.name.clone(),
        language: emitted.language,
        source: source.into(),
        schedule: emitted.schedule,
        launches: launches.collect(),
        parameters: nest.parameters,
        workspaces: Vec::new(),
        maps: Vec::new(),
        register_estimate: emitted.register_estimate,
        batch: Some(batch),
        filled: None,
    })
}
