//! What a compiled kernel needs, read from its CUBIN: an ELF file whose sections `.nv.info` and `.nv.shared.*`
//! state registers, stack and shared memory. No CUDA tool and no driver is needed.

use object::LittleEndian;
use object::read::elf::ElfFile64;
use object::read::{Object, ObjectSection, ObjectSymbol, SymbolIndex};

use super::dependent_launch;

/// `EIATTR_REGCOUNT`: the registers of a kernel.
const ATTRIBUTE_REGISTERS: u8 = 0x2f;
/// `EIATTR_FRAME_SIZE`: the stack frame of a kernel.
const ATTRIBUTE_FRAME: u8 = 0x11;
/// `EIFMT_SVAL`: the attribute's value follows, of the stated size. All other formats have it in the size field.
const FORMAT_SIZED: u8 = 4;
/// What the system keeps for itself at the start of shared memory, on sm_90 and later.
const RESERVED_SHARED_BYTES: u64 = 1024;

/// What one kernel needs on the device; of one with several functions, what the function needs that needs most.
///
/// ```
/// use lazuli::{Target, Tensor};
/// let x = Tensor::from_vec(vec![0.0f32; 4096], [4096]);
/// let program = x.exp().compile_for(&Target::cuda("sm_90"))?;
/// if let Ok(kernel) = program.kernels()[0].compile() { // where there is NVRTC
///     assert!(kernel.info.registers > 0);
///     assert_eq!(kernel.info.spill_bytes, 0);
/// }
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CubinInfo {
    /// Registers of a thread.
    pub registers: u32,
    /// The stack frame of a thread: values that did not fit into registers, and arrays indexed at run time.
    pub stack_bytes: u32,
    /// Bytes of a thread that are stored because registers ran out, where the compiler's log states it, and
    /// otherwise the stack frame.
    pub spill_bytes: u32,
    /// Shared memory of a block, without what is asked for at launch and what the system reserves.
    pub static_shared_bytes: u32,
    /// Instructions, in bytes.
    pub code_bytes: u64,
    /// Whether it waits for the kernel before it, and reads nothing before: then it may be launched before that one has ended. So
    /// do devices of compute capability 9.0 and later have kernels; texts by themselves do not wait.
    pub waits_first: bool,
}

impl CubinInfo {
    /// What either of two functions needs, and the instructions of both.
    pub(crate) fn or_more(&self, other: &CubinInfo) -> CubinInfo {
        CubinInfo {
            registers: self.registers.max(other.registers),
            stack_bytes: self.stack_bytes.max(other.stack_bytes),
            spill_bytes: self.spill_bytes.max(other.spill_bytes),
            static_shared_bytes: self.static_shared_bytes.max(other.static_shared_bytes),
            code_bytes: self.code_bytes + other.code_bytes,
            waits_first: self.waits_first && other.waits_first,
        }
    }
}

/// Reads what the kernel needs, or `None` where the bytes are no CUBIN with that kernel.
pub(crate) fn inspect(cubin: &[u8], kernel_name: &str) -> Option<CubinInfo> {
    let file = ElfFile64::<LittleEndian>::parse(cubin).ok()?;
    let text = file.section_by_name(&format!(".text.{kernel_name}"))?;
    let attributes = file.section_by_name(".nv.info")?.data().ok()?;

    let mut registers = None;
    let mut stack_bytes = 0;
    for (attribute, symbol, value) in kernel_attributes(attributes) {
        if attribute != ATTRIBUTE_REGISTERS && attribute != ATTRIBUTE_FRAME {
            continue;
        }
        let symbol = file.symbol_by_index(SymbolIndex(usize::try_from(symbol).ok()?)).ok()?;
        if symbol.name().ok()? != kernel_name {
            continue;
        }
        match attribute {
            ATTRIBUTE_REGISTERS => registers = Some(value),
            _ => stack_bytes = value,
        }
    }

    let mut shared = file.section_by_name(&format!(".nv.shared.{kernel_name}")).map_or(0, |s| s.size());
    if file.section_by_name(".nv.shared.reserved.0").is_some() {
        shared = shared.saturating_sub(RESERVED_SHARED_BYTES);
    }
    Some(CubinInfo {
        registers: registers?,
        stack_bytes,
        spill_bytes: stack_bytes,
        static_shared_bytes: u32::try_from(shared).ok()?,
        code_bytes: text.size(),
        waits_first: text.data().is_ok_and(dependent_launch::waits_first),
    })
}

/// Whether the bytes are an ELF file with nothing missing at the end.
pub(crate) fn is_whole(cubin: &[u8]) -> bool {
    ElfFile64::<LittleEndian>::parse(cubin)
        .is_ok_and(|file| file.sections().all(|section| section.data().is_ok()))
}

/// The kernel's instructions, encoded.
pub(crate) fn code<'a>(cubin: &'a [u8], kernel_name: &str) -> Option<&'a [u8]> {
    let file = ElfFile64::<LittleEndian>::parse(cubin).ok()?;
    file.section_by_name(&format!(".text.{kernel_name}"))?.data().ok()
}

/// The bytes that the kernel spills, as the log of `--ptxas-options=-v` states them: of stores and loads the
/// larger, since a value that is stored once may be loaded more than once and the reverse.
pub(crate) fn spill_bytes(log: &str, kernel_name: &str) -> Option<u32> {
    let mut lines = log.lines();
    lines.find(|line| {
        line.strip_suffix(kernel_name).is_some_and(|l| l.ends_with("Function properties for "))
    })?;
    spilled(lines.next()?)
}

/// The bytes that all kernels of a log spill.
pub(crate) fn all_spill_bytes(log: &str) -> u32 {
    log.lines().filter_map(spilled).fold(0, u32::saturating_add)
}

/// Those in a line of the log.
fn spilled(properties: &str) -> Option<u32> {
    let before = |label: &str| {
        let (number, _) = properties.split_once(label)?;
        number.split_ascii_whitespace().next_back()?.parse::<u32>().ok()
    };
    Some(before(" bytes spill stores")?.max(before(" bytes spill loads")?))
}

/// The entries of `.nv.info` that state one value for one symbol: attribute, symbol index, value.
fn kernel_attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u8, u32, u32)> {
    std::iter::from_fn(move || {
        loop {
            let ([format, attribute, size @ ..], rest) = bytes.split_first_chunk::<4>()?;
            bytes = rest;
            if *format != FORMAT_SIZED {
                continue;
            }
            let (value, rest) = bytes.split_at_checked(usize::from(u16::from_le_bytes(*size)))?;
            bytes = rest;
            if let Some((symbol, value)) = value.split_first_chunk::<4>()
                && let Ok(value) = <[u8; 4]>::try_from(value)
            {
                return Some((*attribute, u32::from_le_bytes(*symbol), u32::from_le_bytes(value)));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::cuda::nvrtc::{default_options, tests as nvrtc};

    #[test]
    fn garbage_is_none() {
        assert_eq!(inspect(b"", "k"), None);
        assert!(!is_whole(b"") && !is_whole(b"\x7fELF"));
        assert_eq!(inspect(b"\x7fELF", "k"), None);
        assert_eq!(
            inspect(b"no ELF file at all, though long enough to hold a header of 64 bytes....", "k"),
            None
        );
        assert_eq!(inspect(&[0xff; 4096], "k"), None);
        let mut header = [0u8; 4096];
        header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        assert_eq!(inspect(&header, "k"), None);
    }

    #[test]
    fn truncated_and_flipped_bytes_do_no_harm() {
        let Some(compiler) = nvrtc::nvrtc_or_note("reading damaged CUBINs") else { return };
        for architecture in ["sm_75", "sm_100"] {
            let cubin =
                compiler.compile("scale", nvrtc::SCALE, architecture, default_options()).unwrap().bytes;
            assert!(inspect(&cubin, "scale").is_some());
            assert!(is_whole(&cubin));
            for length in 0..cubin.len() {
                let _ = inspect(&cubin[..length], "scale");
                assert!(!is_whole(&cubin[..length]), "{length} of {}", cubin.len());
            }
            for position in 0..cubin.len() {
                for flip in [0x01, 0x80, 0xff] {
                    let mut damaged = cubin.clone();
                    damaged[position] ^= flip;
                    let _ = inspect(&damaged, "scale");
                }
            }
            // Several bytes at once, from a generator with a fixed seed.
            let mut state = 0x9e37_79b9_7f4a_7c15_u64;
            let mut next = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                usize::try_from(state >> 32).unwrap()
            };
            for _ in 0..20_000 {
                let mut damaged = cubin.clone();
                for _ in 0..1 + next() % 8 {
                    let position = next() % damaged.len();
                    damaged[position] = u8::try_from(next() % 256).unwrap();
                }
                let _ = inspect(&damaged, "scale");
            }
        }
    }

    #[test]
    fn attributes_stop_at_a_short_entry() {
        let entry = |value: u32| {
            let mut bytes = vec![FORMAT_SIZED, ATTRIBUTE_REGISTERS, 8, 0, 3, 0, 0, 0];
            bytes.extend(value.to_le_bytes());
            bytes
        };
        let short = [FORMAT_SIZED, ATTRIBUTE_REGISTERS, 9, 0, 1];
        let other = [3, 0x1b, 0xff, 0];
        let bytes = [&other[..], &entry(32), &entry(7), &short].concat();
        assert_eq!(
            kernel_attributes(&bytes).collect::<Vec<_>>(),
            [(ATTRIBUTE_REGISTERS, 3, 32), (ATTRIBUTE_REGISTERS, 3, 7)]
        );
    }

    #[test]
    fn spills_are_read_from_the_log() {
        let log = "ptxas info    : Function properties for scale_rows
ptxas         .     16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Function properties for rows
    0 bytes stack frame, 0 bytes spill stores, 4 bytes spill loads";
        assert_eq!(spill_bytes(log, "scale_rows"), Some(12));
        assert_eq!(spill_bytes(log, "rows"), Some(4));
        assert_eq!(spill_bytes(log, "scale"), None);
        assert_eq!(spill_bytes("ptxas info    : Function properties for rows", "rows"), None);
        assert_eq!(spill_bytes("", "rows"), None);
        assert_eq!(all_spill_bytes(log), 16);
    }
}
