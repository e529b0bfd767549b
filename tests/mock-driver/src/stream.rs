//! What the driver knows, and work that waits in its stream until somebody waits for the stream.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use lazuli::emulation::Kernel;

use crate::device::{Device, SHARED_BYTES};
use crate::graph::{Executable, Graph};
use crate::status::{Result, Status};

/// One thing to do on a device.
pub(crate) enum Work {
    Fill {
        address: u64,
        byte: u8,
        bytes: usize,
    },
    ToDevice {
        to: u64,
        from: *const u8,
        bytes: usize,
    },
    ToHost {
        to: *mut u8,
        from: u64,
        bytes: usize,
    },
    Copy {
        to: u64,
        from: u64,
        bytes: usize,
    },
    /// From another device.
    PeerCopy {
        to: u64,
        from: u64,
        peer: usize,
        bytes: usize,
    },
    Launch(Launch),
    /// Launches, each after others by their numbers.
    Graph(Vec<(Launch, Vec<usize>)>),
    Record(usize),
    /// Nothing before the stream has done so much.
    Wait {
        stream: usize,
        done: u64,
    },
    Release(u64),
}

/// A kernel with its arguments, copied.
#[derive(Clone)]
pub(crate) struct Launch {
    pub(crate) function: Arc<Function>,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) arguments: Vec<Vec<u8>>,
}

// SAFETY: the pointers are the caller's, who answers for them until the stream has been waited for.
unsafe impl Send for Work {}

impl Launch {
    fn carry_out(mut self) -> Result<()> {
        let mut pointers: Vec<*mut c_void> =
            self.arguments.iter_mut().map(|bytes| bytes.as_mut_ptr().cast()).collect();
        // SAFETY: the arguments were copied as the kernel's parameters are; the rest is the launcher's promise.
        let launched =
            unsafe { self.function.kernel.launch(self.grid, self.block, self.shared, &mut pointers) };
        launched.map_err(|error| {
            eprintln!("mock driver: {error}");
            Status::LAUNCH_FAILED
        })
    }
}

pub(crate) struct Stream {
    pub(crate) device: usize,
    pub(crate) priority: i32,
    work: VecDeque<Work>,
    /// What it was given, and what of that it has done.
    given: u64,
    done: u64,
}

impl Stream {
    pub(crate) fn new(device: usize, priority: i32) -> Stream {
        Stream { device, priority, work: VecDeque::new(), given: 0, done: 0 }
    }

    fn push(&mut self, work: Work) {
        self.given += 1;
        self.work.push_back(work);
    }

    /// Whether a copy that it has not done yet is from or to these bytes of the host.
    pub(crate) fn copies(&self, start: usize, end: usize) -> bool {
        self.work.iter().any(|work| {
            let place = match work {
                Work::ToDevice { from, .. } => *from as usize,
                Work::ToHost { to, .. } => *to as usize,
                _ => return false,
            };
            (start..end).contains(&place)
        })
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.work.is_empty()
    }
}

pub(crate) struct Event {
    pub(crate) device: usize,
    /// When the stream came to it.
    pub(crate) reached: Option<Instant>,
    /// The stream that it was recorded on, and what that has done then.
    pub(crate) stream: Option<(usize, u64)>,
}

pub(crate) struct Module {
    pub(crate) device: usize,
    pub(crate) source: Arc<str>,
    pub(crate) functions: Vec<usize>,
}

pub(crate) struct Function {
    pub(crate) device: usize,
    pub(crate) kernel: Kernel,
    /// The most dynamic shared memory of a launch.
    pub(crate) shared_limit: Mutex<u32>,
    /// Its first statement waits for the kernel before it.
    pub(crate) waits: bool,
}

impl Function {
    pub(crate) fn new(device: usize, kernel: Kernel, waits: bool) -> Function {
        let limit = SHARED_BYTES.saturating_sub(kernel.static_shared_bytes());
        Function { device, kernel, shared_limit: Mutex::new(limit), waits }
    }
}

/// Contexts and the devices' own pools have these handles, by device.
pub(crate) const FIRST_CONTEXT: usize = 0x1000;

/// What stream-ordered allocations come from.
pub(crate) struct Pool {
    pub(crate) device: usize,
    pub(crate) used: u64,
    /// What it has from the device, used or not.
    pub(crate) reserved: u64,
    /// What of that it keeps when somebody waits.
    pub(crate) threshold: u64,
}

/// Everything, by handles that are used once.
pub(crate) struct State {
    pub(crate) devices: Vec<Device>,
    pub(crate) streams: HashMap<usize, Stream>,
    pub(crate) events: HashMap<usize, Event>,
    pub(crate) modules: HashMap<usize, Module>,
    pub(crate) functions: HashMap<usize, Arc<Function>>,
    pub(crate) pools: HashMap<usize, Pool>,
    /// Bytes of host memory by address.
    pub(crate) pinned: HashMap<usize, usize>,
    /// The pools that allocations are of.
    pub(crate) pool_of: HashMap<u64, usize>,
    pub(crate) graphs: HashMap<usize, Graph>,
    pub(crate) executables: HashMap<usize, Executable>,
    last_handle: usize,
    started: Instant,
}

thread_local! {
    /// The device of this thread's context.
    pub(crate) static CURRENT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The driver.
pub(crate) fn state() -> MutexGuard<'static, State> {
    static STATE: OnceLock<Mutex<State>> = OnceLock::new();
    let number = |variable: &str, otherwise: usize| {
        std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
    };
    let new = || {
        let memory = number("LAZULI_MOCK_MEMORY", 4 << 30);
        let devices: Vec<Device> =
            (0..number("LAZULI_MOCK_DEVICES", 2)).map(|_| Device::new(memory)).collect();
        // Each device's default stream is that of handle 0.
        let streams = (0..devices.len()).map(|device| (1 + device, Stream::new(device, 0))).collect();
        let pool = |device| (FIRST_CONTEXT + device, Pool { device, used: 0, reserved: 0, threshold: 0 });
        let pools = (0..devices.len()).map(pool).collect();
        Mutex::new(State {
            devices,
            streams,
            events: HashMap::new(),
            modules: HashMap::new(),
            functions: HashMap::new(),
            pools,
            pinned: HashMap::new(),
            pool_of: HashMap::new(),
            graphs: HashMap::new(),
            executables: HashMap::new(),
            last_handle: 0,
            started: Instant::now(),
        })
    };
    STATE.get_or_init(new).lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// A handle that nothing had before.
    pub(crate) fn handle(&mut self) -> usize {
        self.last_handle += 64;
        self.last_handle
    }

    /// The device of this thread's context, if it has not failed.
    pub(crate) fn current(&self) -> Result<usize> {
        let device = CURRENT.get().ok_or(Status::INVALID_CONTEXT)?;
        self.devices[device].failure.map_or(Ok(device), Err)
    }

    /// What a handle stands for: 0 is the default stream of this thread's context.
    pub(crate) fn resolve(&self, stream: usize) -> Result<usize> {
        if stream == 0 { self.current().map(|device| 1 + device) } else { Ok(stream) }
    }

    /// The device of a stream, if it has not failed: asynchronous allocations need no context but their stream's.
    pub(crate) fn device_of(&self, stream: usize) -> Result<usize> {
        let stream = self.resolve(stream)?;
        let device = self.streams.get(&stream).ok_or(Status::INVALID_HANDLE)?.device;
        self.devices[device].failure.map_or(Ok(device), Err)
    }

    /// A stream of this thread's context.
    pub(crate) fn stream(&mut self, handle: usize) -> Result<&mut Stream> {
        let device = self.current()?;
        let handle = self.resolve(handle)?;
        let stream = self.streams.get_mut(&handle).ok_or(Status::INVALID_HANDLE)?;
        if stream.device == device { Ok(stream) } else { Err(Status::INVALID_HANDLE) }
    }

    /// Leaves work to a stream.
    pub(crate) fn push(&mut self, stream: usize, work: Work) -> Result<()> {
        self.stream(stream)?.push(work);
        Ok(())
    }

    /// What a stream has been given so far.
    pub(crate) fn given(&mut self, stream: usize) -> Result<u64> {
        Ok(self.stream(stream)?.given)
    }

    /// Leaves work to a stream of any context.
    pub(crate) fn push_anywhere(&mut self, stream: usize, work: Work) -> Result<()> {
        let stream = self.resolve(stream)?;
        self.streams.get_mut(&stream).ok_or(Status::INVALID_HANDLE)?.push(work);
        Ok(())
    }

    /// Does what waits in a stream of this thread's context.
    pub(crate) fn wait(&mut self, stream: usize) -> Result<()> {
        let given = self.stream(stream)?.given;
        let stream = self.resolve(stream)?;
        self.advance(stream, given)
    }

    /// Does what waits in a stream until it has done so much, and nothing more: a GPU need not go on either.
    pub(crate) fn advance(&mut self, stream: usize, done: u64) -> Result<()> {
        let device = self.device_of(stream)?;
        while self.streams.get(&stream).is_some_and(|stream| stream.done < done) {
            let work = self.streams.get_mut(&stream).and_then(|stream| stream.work.pop_front());
            let carried_out = match work {
                // Earlier work of its stream, so there is no circle; and all was done of one that is gone.
                Some(Work::Wait { stream, done }) if self.streams.contains_key(&stream) => {
                    self.advance(stream, done)
                }
                Some(Work::Wait { .. }) => Ok(()),
                Some(work) => self.carry_out(device, work),
                None => break,
            };
            if let Err(status) = carried_out {
                self.devices[device].failure = Some(status);
                return Err(status);
            }
            self.streams.entry(stream).and_modify(|stream| stream.done += 1);
        }
        for pool in self.pools.values_mut().filter(|pool| pool.device == device) {
            pool.reserved = pool.reserved.min(pool.threshold).max(pool.used);
        }
        Ok(())
    }

    /// Does what waits in all streams of a device.
    pub(crate) fn wait_for_device(&mut self, device: usize) -> Result<()> {
        let mut streams: Vec<usize> = self.streams.keys().copied().collect();
        streams.retain(|stream| self.streams[stream].device == device);
        streams.sort_unstable();
        streams.into_iter().try_for_each(|stream| self.advance(stream, u64::MAX))
    }

    fn carry_out(&mut self, device: usize, work: Work) -> Result<()> {
        let memory = &self.devices[device];
        let within = |address: u64, bytes: usize| match memory.holds(address, bytes) {
            true => Ok(()),
            // A GPU would read or write something else by now: released between the call and the copy.
            false => Err(Status::LAUNCH_FAILED),
        };
        match work {
            Work::Fill { address, byte, bytes } => {
                within(address, bytes)?;
                // SAFETY: within an allocation.
                unsafe { (address as *mut u8).write_bytes(byte, bytes) };
            }
            Work::ToDevice { to, from, bytes } => {
                within(to, bytes)?;
                // SAFETY: within an allocation; the caller keeps the source until it has waited.
                unsafe { std::ptr::copy_nonoverlapping(from, to as *mut u8, bytes) };
            }
            Work::ToHost { to, from, bytes } => {
                within(from, bytes)?;
                // SAFETY: as above.
                unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to, bytes) };
            }
            Work::Copy { to, from, bytes } => {
                within(from, bytes).and(within(to, bytes))?;
                // SAFETY: both are within allocations.
                unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
            }
            Work::PeerCopy { to, from, peer, bytes } => {
                within(to, bytes)?;
                if !self.devices[peer].holds(from, bytes) {
                    return Err(Status::LAUNCH_FAILED);
                }
                // SAFETY: each is within an allocation of its device.
                unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes) };
            }
            Work::Launch(_) | Work::Graph(_) if memory.next_kernel_fails => {
                return Err(Status::ILLEGAL_ADDRESS);
            }
            Work::Launch(launch) => launch.carry_out()?,
            Work::Graph(launches) => {
                let mut is_done = vec![false; launches.len()];
                while let Some(next) = (0..launches.len()).rfind(|&number| {
                    !is_done[number] && launches[number].1.iter().all(|&after| is_done[after])
                }) {
                    // The one added last of those that may go.
                    launches[next].0.clone().carry_out()?;
                    is_done[next] = true;
                }
            }
            Work::Record(event) => {
                if let Some(event) = self.events.get_mut(&event) {
                    event.reached = Some(Instant::now());
                }
            }
            // Not work of one device: it is done where streams advance.
            Work::Wait { .. } => {}
            Work::Release(address) => {
                let bytes = self.devices[device].release(address)? as u64;
                let pool = self.pool_of.remove(&address).and_then(|pool| self.pools.get_mut(&pool));
                if let Some(pool) = pool {
                    pool.used -= bytes;
                }
            }
        }
        Ok(())
    }

    /// Milliseconds since the driver started.
    pub(crate) fn milliseconds(&self, instant: Instant) -> f64 {
        instant.duration_since(self.started).as_secs_f64() * 1e3
    }
}
