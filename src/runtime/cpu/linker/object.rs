//! An object file as far as kernels have them: sections, symbols and relocations of ELF for x86-64. Anything else is none.

use std::collections::BTreeMap;

pub(super) const PAGE: u64 = 0x1000;
pub(super) const SECTION: u64 = 64;
pub(super) const SYMBOL: u64 = 24;
pub(super) const RELOCATION: u64 = 24;
pub(super) const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
const RELA: u32 = 4;
const NOBITS: u32 = 8;
pub(super) const WRITE: u64 = 1;
pub(super) const ALLOC: u64 = 2;
pub(super) const EXECUTE: u64 = 4;
/// Of entries that could be merged, which changes nothing.
const MERGE: u64 = 0x30;
/// Defined nowhere, and the least number that is no section.
const UNDEFINED: u16 = 0;
const RESERVED: u16 = 0xff00;

/// Bytes in the order of this processor's numbers.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn part(self, at: u64, length: u64) -> Option<Bytes<'a>> {
        let (at, length) = (usize::try_from(at).ok()?, usize::try_from(length).ok()?);
        self.0.get(at..at.checked_add(length)?).map(Bytes)
    }

    fn number<const N: usize>(self, at: u64) -> Option<[u8; N]> {
        self.part(at, N as u64)?.0.try_into().ok()
    }

    fn u16(self, at: u64) -> Option<u16> {
        self.number(at).map(u16::from_le_bytes)
    }

    fn u32(self, at: u64) -> Option<u32> {
        self.number(at).map(u32::from_le_bytes)
    }

    fn u64(self, at: u64) -> Option<u64> {
        self.number(at).map(u64::from_le_bytes)
    }

    /// A text that ends with a zero.
    fn text(self, at: u32) -> Option<&'a [u8]> {
        let rest = self.0.get(at as usize..)?;
        rest.split(|&byte| byte == 0).next()
    }

    fn entries(self, size: u64) -> impl Iterator<Item = Bytes<'a>> {
        self.0.chunks_exact(size as usize).map(Bytes)
    }
}

/// Where a section of the object goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Constants,
    Code,
    Data,
    /// Data that begin as zeros.
    Zeros,
}

pub(super) struct Section<'a> {
    pub(super) part: Part,
    pub(super) bytes: &'a [u8],
    pub(super) size: u64,
    pub(super) alignment: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Symbol<'a> {
    pub(super) name: &'a [u8],
    pub(super) info: u8,
    pub(super) visibility: u8,
    pub(super) section: u16,
    pub(super) value: u64,
    pub(super) size: u64,
}

impl Symbol<'_> {
    fn is_global(&self) -> bool {
        self.info >> 4 == 1
    }

    pub(super) fn is_function(&self) -> bool {
        self.info & 15 == 2
    }

    pub(super) fn is_foreign(&self) -> bool {
        self.section == UNDEFINED
    }

    pub(super) fn is_exported(&self) -> bool {
        self.is_global() && self.visibility == 0
    }
}

pub(super) struct Relocation {
    /// The section that it is in.
    pub(super) section: u16,
    pub(super) at: u64,
    pub(super) kind: Kind,
    pub(super) symbol: u32,
    pub(super) addend: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An address.
    Absolute,
    /// The distance to it, in 32 bits.
    Relative,
    /// As `Relative`, to something that can be called: another library's through a stub.
    Call,
    /// The distance to a slot with the address.
    Slot,
    /// The distance in 64 bits.
    Far,
}

impl Kind {
    fn new(number: u32) -> Option<Kind> {
        Some(match number {
            1 => Kind::Absolute,
            2 => Kind::Relative,
            4 => Kind::Call,
            9 | 41 | 42 => Kind::Slot,
            24 => Kind::Far,
            _ => return None,
        })
    }
}

/// What is needed of an object file.
pub(super) struct Object<'a> {
    pub(super) sections: BTreeMap<u16, Section<'a>>,
    pub(super) symbols: Vec<Symbol<'a>>,
    pub(super) relocations: Vec<Relocation>,
}

impl<'a> Object<'a> {
    pub(super) fn read(file: &'a [u8]) -> Option<Object<'a>> {
        let file = Bytes(file);
        // 64 bits, the least byte first, to be linked, for an x86-64.
        let is_known =
            file.number(0)? == *b"\x7fELF\x02\x01\x01" && file.u16(16)? == 1 && file.u16(18)? == 62;
        if !is_known || file.u16(58)? != SECTION as u16 {
            return None;
        }
        let headers = file.part(file.u64(40)?, u64::from(file.u16(60)?) * SECTION)?;
        let headers: Vec<Bytes> = headers.entries(SECTION).collect();
        let content = |header: Bytes| file.part(header.u64(24)?, header.u64(32)?);
        let names = content(*headers.get(usize::from(file.u16(62)?))?)?;
        let mut object = Object { sections: BTreeMap::new(), symbols: Vec::new(), relocations: Vec::new() };
        for (number, &header) in (0u16..).zip(&headers) {
            let name = names.text(header.u32(0)?)?;
            match Section::part(name, header)? {
                Some(part) => {
                    let bytes = if part == Part::Zeros { &[] } else { content(header)?.0 };
                    let alignment = header.u64(48)?.max(1);
                    if !alignment.is_power_of_two() || alignment > PAGE || header.u64(32)? > 1 << 30 {
                        return None;
                    }
                    let section = Section { part, bytes, size: header.u64(32)?, alignment };
                    object.sections.insert(number, section);
                }
                None if header.u32(4)? == SYMTAB => {
                    let names = content(*headers.get(header.u32(40)? as usize)?)?;
                    let symbols = content(header)?.entries(SYMBOL).map(|symbol| Symbol::read(symbol, names));
                    object.symbols = symbols.collect::<Option<_>>()?;
                }
                None => {}
            }
        }
        for header in headers.into_iter().filter(|header| header.u32(4) == Some(RELA)) {
            let section = u16::try_from(header.u32(44)?).ok()?;
            if object.sections.contains_key(&section) {
                object.add_relocations(section, content(header)?)?;
            }
        }
        Some(object)
    }

    /// What is in another one as well.
    pub(super) fn add(&mut self, other: Object<'a>) -> Option<()> {
        let sections = self.sections.keys().copied().chain(self.symbols.iter().map(|symbol| symbol.section));
        let first = sections.filter(|&section| section < RESERVED).max().unwrap_or(UNDEFINED) + 1;
        let symbols = u32::try_from(self.symbols.len()).ok()?;
        let moved = |section: u16| match section {
            UNDEFINED | RESERVED.. => Some(section),
            _ => section.checked_add(first).filter(|&section| section < RESERVED),
        };
        for (number, section) in other.sections {
            self.sections.insert(moved(number)?, section);
        }
        for symbol in other.symbols {
            self.symbols.push(Symbol { section: moved(symbol.section)?, ..symbol });
        }
        for relocation in other.relocations {
            let (section, symbol) = (moved(relocation.section)?, relocation.symbol.checked_add(symbols)?);
            self.relocations.push(Relocation { section, symbol, ..relocation });
        }
        Some(())
    }

    /// What one of the objects refers to and another one has is no other library's.
    pub(super) fn resolve(&mut self) {
        let numbered = || (0u32..).zip(&self.symbols);
        let defined: BTreeMap<&[u8], u32> = numbered()
            .filter(|(_, symbol)| symbol.is_global() && !symbol.is_foreign())
            .map(|(number, symbol)| (symbol.name, number))
            .collect();
        let found: BTreeMap<u32, u32> = numbered()
            .filter(|(_, symbol)| symbol.is_foreign())
            .filter_map(|(number, symbol)| Some((number, *defined.get(symbol.name)?)))
            .collect();
        for relocation in &mut self.relocations {
            if let Some(&symbol) = found.get(&relocation.symbol) {
                relocation.symbol = symbol;
            }
        }
    }

    fn add_relocations(&mut self, section: u16, table: Bytes) -> Option<()> {
        for entry in table.entries(RELOCATION) {
            let info = entry.u64(8)?;
            if info as u32 == 0 {
                continue;
            }
            let (kind, symbol) = (Kind::new(info as u32)?, (info >> 32) as u32);
            let addend = entry.u64(16)? as i64;
            let relocation = Relocation { section, at: entry.u64(0)?, kind, symbol, addend };
            let target = self.symbols.get(symbol as usize)?;
            let is_known = match target.is_foreign() {
                // What compilers call of their own (`__divti3`) is in their libraries.
                true => {
                    let is_own = target.name.starts_with(b"__");
                    target.is_global() && !is_own && matches!(kind, Kind::Call | Kind::Slot)
                }
                false => self.sections.contains_key(&target.section),
            };
            let is_written = self.sections[&section].part == Part::Data;
            if !is_known
                || kind == Kind::Absolute && !is_written
                || self.sections[&section].part == Part::Zeros
            {
                return None;
            }
            self.relocations.push(relocation);
        }
        Some(())
    }
}

impl Section<'_> {
    /// Where it goes, if anywhere. `None` is a section of which nothing is known here.
    fn part(name: &[u8], header: Bytes) -> Option<Option<Part>> {
        let (kind, flags) = (header.u32(4)?, header.u64(8)?);
        let begins = |start: &str| {
            let rest = name.strip_prefix(start.as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'.')
        };
        if flags & ALLOC == 0 {
            // A debugger's, and what wants an executable stack.
            let is_known = !name.starts_with(b".debug") && !name.starts_with(b".gnu.lto");
            let is_known = is_known && matches!(kind, 0..=4 | 7 | 0x6fff_4c00..) && flags & EXECUTE == 0;
            return is_known.then_some(None);
        }
        // Nothing here unwinds a kernel.
        if begins(".note") || begins(".eh_frame") {
            return Some(None);
        }
        let known = match (kind, flags & !MERGE & !ALLOC) {
            (PROGBITS, EXECUTE) if begins(".text") => Part::Code,
            (PROGBITS, 0) if begins(".rodata") => Part::Constants,
            (PROGBITS, WRITE) if begins(".data") => Part::Data,
            (NOBITS, WRITE) if begins(".bss") => Part::Zeros,
            _ => return None,
        };
        Some(Some(known))
    }
}

impl<'a> Symbol<'a> {
    fn read(entry: Bytes<'a>, names: Bytes<'a>) -> Option<Symbol<'a>> {
        let [info, other] = entry.number(4)?;
        let section = entry.u16(6)?;
        // No type, data, functions, sections and files; neither weak ones nor common ones.
        let is_absolute = section >= RESERVED && info & 15 != 4;
        if info & 15 > 4 || info >> 4 > 1 || is_absolute {
            return None;
        }
        let name = names.text(entry.u32(0)?)?;
        let visibility = other & 3;
        Some(Symbol { name, info, visibility, section, value: entry.u64(8)?, size: entry.u64(16)? })
    }
}
