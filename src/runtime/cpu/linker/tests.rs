#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::ffi::{c_char, c_int};
use std::process::Command;

use libloading::Library;

use super::link;

/// All that objects of one text have: tables, addresses in data, zeros, jump tables, calls of other libraries.
const TEXT: &str = "
typedef unsigned long size_t;
size_t strlen(const char*);
static const float table[4] = {1, 2, 3, 4};
static int count;
static char room[70000];
int shown = 5;
static int next(int x) { return x + 1; }
static int thrice(int x) { return x * 3; }
static int (*const functions[2])(int) = {next, thrice};
const char* const names[3] = {\"a\", \"bb\", \"ccc\"};
static _Alignas(64) double wide[8] = {1, 2, 3};
__attribute__((noinline)) static int chosen(int x) {
  switch (x) {
    case 0: return 5;
    case 1: return 77;
    case 2: return count;
    case 3: return (int)((size_t)wide % 64);
    case 4: return shown;
    case 5: return strlen(names[2]);
    default: return -1;
  }
}
int all(int n) {
  count++;
  room[n * 1000] = n;
  return functions[n & 1](n) + 10 * chosen(n) + 1000 * strlen(names[n % 3]) + (int)wide[n % 3] + (int)table[n & 3]
    + room[n * 1000 + 1];
}
int counted(void) { return count; }
";

/// What the compiler makes of a text: an object with `-c`, a library of the system's linker with `-shared`.
fn made(text: &str, how: &str, flags: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let [source, made] = ["text.c", "made"].map(|name| folder.path().join(name));
    std::fs::write(&source, text).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-fPIC", "-w", how]).args(flags).arg(&source).arg("-o").arg(&made);
    assert!(cc.status().unwrap().success());
    std::fs::read(made).unwrap()
}

fn object(text: &str, flags: &[&str]) -> Vec<u8> {
    made(text, "-c", flags)
}

fn load(library: &[u8]) -> Library {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.so");
    std::fs::write(&path, library).unwrap();
    // SAFETY: it has no constructors.
    unsafe { Library::new(path) }.unwrap()
}

#[test]
fn a_library_does_what_its_object_says() {
    for flags in [
        &["-O0"][..],
        &["-O1", "-fasynchronous-unwind-tables"],
        &["-O2", "-ffunction-sections", "-fdata-sections"],
        &["-O3", "-fno-plt"],
    ] {
        let [own, systems] =
            [link(&[&object(TEXT, flags)]).unwrap(), made(TEXT, "-shared", flags)].map(|bytes| {
                let library = load(&bytes);
                // SAFETY: the functions are in `TEXT`, of these types.
                let (all, counted, shown, names) = unsafe {
                    (
                        library.get::<extern "C" fn(c_int) -> c_int>("all").unwrap(),
                        library.get::<extern "C" fn() -> c_int>("counted").unwrap(),
                        library.get::<*const c_int>("shown").unwrap(),
                        library.get::<*const [*const c_char; 3]>("names").unwrap(),
                    )
                };
                let results: Vec<i32> = (0..7).map(|n| all(n)).collect();
                // SAFETY: both are in the library, which is loaded.
                let data = unsafe { (**shown, *(**names)[2] as u8) };
                assert_eq!((counted(), data), (7, (5, b'c')), "{flags:?}");
                results
            });
        assert_eq!(own, systems, "{flags:?}");
        assert!(own.iter().all(|result| *result > 1000), "{own:?}");
    }
}

#[test]
fn what_one_object_calls_another_one_has() {
    let own = "
static const int table[3] = {7, 8, 9};
static int count;
__attribute__((visibility(\"hidden\"))) int scaled(int x, const int* by);
int all(int n) { return scaled(n, table) + ++count; }";
    let other = "
static const int table[3] = {10, 20, 30};
static int count = 1000;
__attribute__((visibility(\"hidden\"))) int scaled(int x, const int* by) { return table[x] * by[x] + ++count; }";
    let [own, other] = [own, other].map(|text| object(text, &["-O2"]));
    // In either order; what is hidden stays so.
    for objects in [[&own[..], &other], [&other, &own]] {
        let library = load(&link(&objects).unwrap());
        // SAFETY: it is in the text, of this type.
        let all = unsafe { library.get::<extern "C" fn(c_int) -> c_int>("all").unwrap() };
        assert_eq!([all(0), all(2)], [70 + 1001 + 1, 270 + 1002 + 2]);
        // SAFETY: nothing of it is called.
        assert!(unsafe { library.get::<extern "C" fn(c_int) -> c_int>("scaled") }.is_err());
    }
}

#[test]
fn what_needs_more_than_that_is_left_to_the_system() {
    for (text, flags) in [
        ("__thread int own; int f(void) { return own; }", &[][..]),
        ("int n; __attribute__((constructor)) void f(void) { n = 1; }", &[]),
        ("__attribute__((weak)) int g(void); int f(void) { return g ? g() : 0; }", &[]),
        ("int n; int f(void) { return n; }", &["-fcommon"]),
        ("extern int n; int* p = &n;", &[]),
        ("int f(int x) { return x; }", &["-g"]),
        ("int f(int x) { return x; }", &["-flto"]),
        ("__int128 f(__int128 x, __int128 y) { return x / y; }", &[]),
    ] {
        assert!(link(&[&object(text, flags)]).is_none(), "{text} {flags:?}");
    }
}

#[test]
fn no_object_at_all_is_no_library() {
    let whole = object(TEXT, &["-O1"]);
    for length in 0..whole.len() {
        let _ = link(&[&whole[..length]]);
    }
    assert!(link(&[&whole[..whole.len() / 2]]).is_none());
    // Every byte wrong, one at a time: refused, or a library of something else.
    let mut damaged = whole.clone();
    for at in 0..whole.len() {
        for wrong in [1, 0xff] {
            damaged[at] = wrong;
            let _ = link(&[&damaged]);
        }
        damaged[at] = whole[at];
    }
}
