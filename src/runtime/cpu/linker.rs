//! A linker for what a kernel is: an object file, and those of functions that it calls, become a shared library, without a process for it. What goes beyond that
//! (constructors, thread locals, information for debuggers, other formats) is the system's linker's.

mod object;

use std::collections::BTreeMap;

use object::{
    ALLOC, EXECUTE, Kind, Object, PAGE, PROGBITS, Part, RELOCATION, SECTION, SYMBOL, Symbol, WRITE,
};

/// Whether there are such objects on this system.
pub(super) const IS_KNOWN: bool = cfg!(all(target_os = "linux", target_arch = "x86_64"));
/// For caches: other libraries from the same object have another number.
pub(super) const VERSION: &str = "linked by lazuli 1";

const HEADER: u64 = 64;
const SEGMENT: u64 = 56;
/// A jump through a slot.
const STUB: u64 = 8;
/// Code begins at lines of the cache.
const LINE: u64 = 64;

/// The library: where everything is in the file. In memory what is executed is a page further, what is written to two.
struct Library<'a> {
    object: Object<'a>,
    /// The symbols that are looked up, by their numbers in the object, and each one's slot.
    slots: BTreeMap<u32, u64>,
    /// What is called in other libraries, and its stub.
    stubs: BTreeMap<u32, u64>,
    /// Addresses of the object's sections, in memory.
    places: BTreeMap<u16, u64>,
    /// The numbers of its symbols in the object: local ones, then global ones.
    symbols: Vec<u32>,
    locals: usize,
    /// Names of the symbols, and of sections.
    names: Vec<u8>,
    tables: Tables,
}

/// Where parts begin in the file, and where they end.
#[derive(Default)]
struct Tables {
    symbols: u64,
    names: u64,
    hash: u64,
    relocations: u64,
    relocation_count: u64,
    constants: u64,
    code: u64,
    data: u64,
    contents: u64,
    end: u64,
    /// In memory.
    zeros_end: u64,
}

const CODE_SHIFT: u64 = PAGE;
const DATA_SHIFT: u64 = 2 * PAGE;
/// Pairs of numbers for the loader.
const DYNAMIC: u64 = 10 * 16;
/// Names of the library's sections, one after the other.
const SECTIONS: [&[u8]; 7] = [b"", b".dynsym", b".dynstr", b".rodata", b".text", b".dynamic", b".data"];

/// A shared library that holds what is in the object files; none where the system's linker is wanted. What none of them has is
/// looked for in what the process has loaded.
pub(super) fn link(objects: &[&[u8]]) -> Option<Vec<u8>> {
    if !IS_KNOWN {
        return None;
    }
    let mut objects = objects.iter().map(|object| Object::read(object));
    let mut all = objects.next()??;
    for object in objects {
        all.add(object?)?;
    }
    all.resolve();
    Library::new(all).write()
}

impl<'a> Library<'a> {
    fn new(object: Object<'a>) -> Library<'a> {
        let is_foreign = |symbol: u32| object.symbols[symbol as usize].is_foreign();
        let mut slots = BTreeMap::new();
        let mut stubs = BTreeMap::new();
        let mut absolute = 0;
        for relocation in &object.relocations {
            let symbol = relocation.symbol;
            match relocation.kind {
                Kind::Slot => drop(slots.insert(symbol, 0)),
                Kind::Call if is_foreign(symbol) => {
                    slots.insert(symbol, 0);
                    stubs.insert(symbol, 0);
                }
                Kind::Absolute => absolute += 1,
                _ => {}
            }
        }
        let is_held = |symbol: &Symbol| object.sections.contains_key(&symbol.section);
        let numbered = || (0u32..).zip(&object.symbols);
        let locals = numbered().filter(|(_, symbol)| {
            symbol.is_function() && is_held(symbol) && !symbol.is_exported() && !symbol.name.is_empty()
        });
        let mut symbols: Vec<u32> = locals.map(|(number, _)| number).collect();
        let local_count = symbols.len();
        symbols.extend(
            numbered()
                .filter(|(number, symbol)| match symbol.is_foreign() {
                    true => slots.contains_key(number),
                    false => symbol.is_exported() && is_held(symbol),
                })
                .map(|(number, _)| number),
        );
        let names =
            SECTIONS.into_iter().chain(symbols.iter().map(|&number| object.symbols[number as usize].name));
        let names: Vec<u8> = names.flat_map(|name| name.iter().copied().chain([0])).collect();
        let tables = Tables { relocation_count: slots.len() as u64 + absolute, ..Tables::default() };
        let places = BTreeMap::new();
        let mut library =
            Library { object, slots, stubs, places, symbols, locals: local_count, names, tables };
        library.lay_out();
        library
    }

    fn lay_out(&mut self) {
        let tables = &mut self.tables;
        tables.symbols = HEADER + 5 * SEGMENT;
        tables.hash = tables.symbols + (1 + self.symbols.len() as u64) * SYMBOL;
        tables.relocations = (tables.hash + (4 + self.symbols.len() as u64) * 4).next_multiple_of(8);
        tables.names = tables.relocations + tables.relocation_count * RELOCATION;
        tables.constants = tables.names + self.names.len() as u64;
        let mut at = tables.constants;
        let mut place = |at: &mut u64, part: Part, shift: u64| {
            for (&number, section) in self.object.sections.iter().filter(|(_, section)| section.part == part)
            {
                *at = at.next_multiple_of(section.alignment);
                self.places.insert(number, *at + shift);
                *at += section.size;
            }
        };
        place(&mut at, Part::Constants, 0);
        at = at.next_multiple_of(LINE);
        tables.code = at;
        place(&mut at, Part::Code, CODE_SHIFT);
        at = at.next_multiple_of(STUB);
        for stub in self.stubs.values_mut() {
            *stub = at + CODE_SHIFT;
            at += STUB;
        }
        at = at.next_multiple_of(LINE);
        tables.data = at;
        at += DYNAMIC;
        for slot in self.slots.values_mut() {
            *slot = at + DATA_SHIFT;
            at += 8;
        }
        place(&mut at, Part::Data, DATA_SHIFT);
        tables.contents = at;
        tables.end = at.next_multiple_of(8);
        place(&mut at, Part::Zeros, DATA_SHIFT);
        tables.zeros_end = at + DATA_SHIFT;
    }

    /// Where a symbol is in memory.
    fn address(&self, symbol: u32) -> Option<u64> {
        let symbol = self.object.symbols.get(symbol as usize)?;
        self.places.get(&symbol.section)?.checked_add(symbol.value)
    }

    fn write(&self) -> Option<Vec<u8>> {
        let tables = &self.tables;
        let mut file = vec![0; usize::try_from(tables.end).ok()?];
        self.write_header(&mut file)?;
        self.write_symbols(&mut file)?;
        for (number, section) in &self.object.sections {
            put(&mut file, offset(self.places[number], section.part), section.bytes)?;
        }
        let relocations = self.relocate(&mut file)?;
        put(&mut file, tables.relocations, &words(&relocations))?;
        for (symbol, &stub) in &self.stubs {
            let [a, b, c, d] = distance(self.slots[symbol], stub + 6)?;
            put(&mut file, stub - CODE_SHIFT, &[0xff, 0x25, a, b, c, d, 0xcc, 0xcc])?;
        }
        self.write_dynamic(&mut file)?;
        file.extend(self.sections());
        Some(file)
    }

    /// Fills in what is known, and says what the loader is to do.
    fn relocate(&self, file: &mut [u8]) -> Option<Vec<u64>> {
        const ADDRESS: u64 = 8;
        const LOOKED_UP: u64 = 6;
        let mut left = Vec::new();
        for (&symbol, &slot) in &self.slots {
            match self.symbols[self.locals..].iter().position(|&number| number == symbol) {
                Some(index) if self.object.symbols[symbol as usize].is_foreign() => {
                    left.extend([slot, ((1 + self.locals + index) as u64) << 32 | LOOKED_UP, 0]);
                }
                _ => left.extend([slot, ADDRESS, self.address(symbol)?]),
            }
        }
        for relocation in &self.object.relocations {
            let (symbol, addend) = (relocation.symbol, relocation.addend);
            let section = &self.object.sections[&relocation.section];
            let width = if matches!(relocation.kind, Kind::Absolute | Kind::Far) { 8 } else { 4 };
            if relocation.at.checked_add(width)? > section.size {
                return None;
            }
            let at = self.places[&relocation.section] + relocation.at;
            let target = match relocation.kind {
                Kind::Slot => self.slots[&symbol],
                Kind::Call if self.stubs.contains_key(&symbol) => self.stubs[&symbol],
                _ => self.address(symbol)?,
            };
            let target = target.checked_add_signed(addend)?;
            let place = offset(at, section.part);
            match relocation.kind {
                Kind::Absolute => left.extend([at, ADDRESS, target]),
                Kind::Far => put(file, place, &target.wrapping_sub(at).to_le_bytes())?,
                Kind::Relative | Kind::Call | Kind::Slot => put(file, place, &distance(target, at)?)?,
            }
        }
        Some(left)
    }

    fn write_symbols(&self, file: &mut [u8]) -> Option<()> {
        let mut name: usize = SECTIONS.iter().map(|section| section.len() + 1).sum();
        let mut table = vec![0; SYMBOL as usize];
        for &number in &self.symbols {
            let symbol = &self.object.symbols[number as usize];
            let index = self.object.sections.get(&symbol.section).map_or(0, |section| match section.part {
                Part::Constants => 3,
                Part::Code => 4,
                Part::Data | Part::Zeros => 6,
            });
            let is_local = table.len() <= self.locals * SYMBOL as usize;
            let info = if is_local { symbol.info & 15 } else { symbol.info };
            table.extend((name as u32).to_le_bytes());
            table.extend([info, 0, index, 0]);
            let address = if symbol.is_foreign() { 0 } else { self.address(number)? };
            table.extend(words(&[address, symbol.size]));
            name += symbol.name.len() + 1;
        }
        put(file, self.tables.symbols, &table)?;
        put(file, self.tables.names, &self.names)?;
        // One chain, of the global ones.
        let (first, count) = (self.locals as u32 + 1, self.symbols.len() as u32 + 1);
        let next =
            (0..count).map(|number| if number >= first && number + 1 < count { number + 1 } else { 0 });
        let head = if first < count { first } else { 0 };
        let hash: Vec<u8> = [1, count, head].into_iter().chain(next).flat_map(u32::to_le_bytes).collect();
        put(file, self.tables.hash, &hash)
    }

    fn write_header(&self, file: &mut [u8]) -> Option<()> {
        let tables = &self.tables;
        let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
        header.extend(words(&[0, HEADER, tables.end]));
        let shorts = [0, 0, HEADER, SEGMENT, 5, SECTION, SECTIONS.len() as u64, 2];
        header.extend(shorts.iter().flat_map(|&short| (short as u16).to_le_bytes()));
        let [readable, writable, executable] = [4, 6, 5];
        let mut segment =
            |kind: u32, flags: u32, from: u64, to: u64, in_memory: u64, shift: u64, alignment: u64| {
                header.extend([kind, flags].into_iter().flat_map(u32::to_le_bytes));
                let address = from + shift;
                header.extend(words(&[from, address, address, to - from, in_memory, alignment]));
            };
        let data = tables.contents - tables.data;
        let in_memory = tables.zeros_end - DATA_SHIFT - tables.data;
        segment(1, readable, 0, tables.code, tables.code, 0, PAGE);
        segment(1, executable, tables.code, tables.data, tables.data - tables.code, CODE_SHIFT, PAGE);
        segment(1, writable, tables.data, tables.data + data, in_memory, DATA_SHIFT, PAGE);
        segment(2, writable, tables.data, tables.data + DYNAMIC, DYNAMIC, DATA_SHIFT, 8);
        // The stack is not executed.
        segment(0x6474_e551, writable, 0, 0, 0, 0, 16);
        put(file, 0, &header)
    }

    fn write_dynamic(&self, file: &mut [u8]) -> Option<()> {
        let tables = &self.tables;
        let entries: [[u64; 2]; DYNAMIC as usize / 16] = [
            [4, tables.hash],
            [5, tables.names],
            [6, tables.symbols],
            [7, tables.relocations],
            [8, tables.relocation_count * RELOCATION],
            [9, RELOCATION],
            [10, self.names.len() as u64],
            [11, SYMBOL],
            // Everything is looked up when it is loaded.
            [30, 8],
            [0, 0],
        ];
        put(file, tables.data, &words(entries.as_flattened()))
    }

    /// The headers that tools read; the loader needs none.
    fn sections(&self) -> Vec<u8> {
        let tables = &self.tables;
        const NAMES: u32 = 3;
        const DYNSYM: u32 = 11;
        const PAIRS: u32 = 6;
        let symbols = tables.hash - tables.symbols;
        let constants = tables.code - tables.constants;
        let code = tables.data - tables.code;
        let (data, end) = (tables.data + DYNAMIC, tables.contents);
        let rows: [Row; SECTIONS.len()] = [
            (0, 0, 0, 0, 0, [0, 0], [0, 0]),
            (DYNSYM, ALLOC, 0, tables.symbols, symbols, [2, self.locals as u32 + 1], [8, SYMBOL]),
            (NAMES, ALLOC, 0, tables.names, self.names.len() as u64, [0, 0], [1, 0]),
            (PROGBITS, ALLOC, 0, tables.constants, constants, [0, 0], [1, 0]),
            (PROGBITS, ALLOC | EXECUTE, CODE_SHIFT, tables.code, code, [0, 0], [LINE, 0]),
            (PAIRS, ALLOC | WRITE, DATA_SHIFT, tables.data, DYNAMIC, [2, 0], [8, 16]),
            (PROGBITS, ALLOC | WRITE, DATA_SHIFT, data, end - data, [0, 0], [8, 0]),
        ];
        let mut name = 0u32;
        let mut headers = Vec::with_capacity(SECTIONS.len() * SECTION as usize);
        for (own, (kind, flags, shift, at, size, links, last)) in SECTIONS.iter().zip(rows) {
            headers.extend([name, kind].into_iter().flat_map(u32::to_le_bytes));
            headers.extend(words(&[flags, at + shift, at, size]));
            headers.extend(links.into_iter().flat_map(u32::to_le_bytes));
            headers.extend(words(&last));
            name += own.len() as u32 + 1;
        }
        headers
    }
}

/// Of a section: its kind and flags, how much further it is in memory, where it is and its bytes, what it refers to, and its
/// alignment with the bytes of an entry.
type Row = (u32, u64, u64, u64, u64, [u32; 2], [u64; 2]);

/// Where an address is in the file.
fn offset(address: u64, part: Part) -> u64 {
    address
        - match part {
            Part::Constants => 0,
            Part::Code => CODE_SHIFT,
            Part::Data | Part::Zeros => DATA_SHIFT,
        }
}

fn put(file: &mut [u8], at: u64, bytes: &[u8]) -> Option<()> {
    let at = usize::try_from(at).ok()?;
    // Zeros are not in the file.
    if bytes.is_empty() {
        return Some(());
    }
    file.get_mut(at..at.checked_add(bytes.len())?)?.copy_from_slice(bytes);
    Some(())
}

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// From a place to an address, in 32 bits.
fn distance(to: u64, from: u64) -> Option<[u8; 4]> {
    i32::try_from(to.wrapping_sub(from) as i64).ok().map(i32::to_le_bytes)
}

#[cfg(test)]
mod tests;
