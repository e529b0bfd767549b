//! Graphs of kernels: `cuGraph…`.

#![allow(
    clippy::missing_safety_doc,
    clippy::not_unsafe_ptr_arg_deref,
    clippy::undocumented_unsafe_blocks,
    missing_docs,
    non_snake_case,
    reason = "the contract of each is that of the driver's function"
)]

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

use crate::device::capability;
use crate::driver::{answer, put};
use crate::launch::launch_of;
use crate::status::{Result, Status};
use crate::stream::{Launch, State, Work, state};

/// Launches, each after others by their numbers.
#[derive(Default)]
pub(crate) struct Graph {
    /// With their handles.
    nodes: Vec<(usize, Launch, Vec<usize>)>,
}

/// What a graph was when it was instantiated, and the updates since.
pub(crate) struct Executable {
    device: usize,
    /// Each with the function's handle, which a launch must still find.
    nodes: Vec<(usize, Launch, Vec<usize>)>,
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[repr(C)]
pub struct NodeParameters {
    function: usize,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    arguments: *mut *mut c_void,
    extra: *mut *mut c_void,
    kernel: usize,
    context: usize,
}

impl NodeParameters {
    /// # Safety
    /// As [`launch_of`].
    unsafe fn launch(&self, state: &State) -> Result<Launch> {
        unsafe { launch_of(state, self.function, self.grid, self.block, self.shared, self.arguments) }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphCreate(graph: *mut usize, flags: c_uint) -> c_int {
    answer(|| {
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let mut state = state();
        let handle = state.handle();
        state.graphs.insert(handle, Graph::default());
        unsafe { put(graph, handle) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphAddKernelNode_v2(
    node: *mut usize,
    graph: usize,
    _dependencies: *const usize,
    count: usize,
    parameters: *const NodeParameters,
) -> c_int {
    answer(|| {
        let mut state = state();
        let launch = unsafe { (*parameters).launch(&state) }?;
        let handle = state.handle();
        let graph = state.graphs.get_mut(&graph).ok_or(Status::INVALID_HANDLE)?;
        if count > 0 {
            // They come by `cuGraphAddDependencies_v2`.
            return Err(Status::INVALID_VALUE);
        }
        graph.nodes.push((handle, launch, Vec::new()));
        unsafe { put(node, handle) }
    })
}

/// `CUgraphEdgeData` of `cuda.h`.
#[repr(C)]
pub struct EdgeData {
    from_port: u8,
    to_port: u8,
    kind: u8,
    reserved: [u8; 5],
}

/// A node that may begin before the one that it comes after has ended must be a kernel that waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphAddDependencies_v2(
    graph: usize,
    from: *const usize,
    to: *const usize,
    data: *const EdgeData,
    count: usize,
) -> c_int {
    answer(|| {
        let mut state = state();
        let graph = state.graphs.get_mut(&graph).ok_or(Status::INVALID_HANDLE)?;
        for number in 0..count {
            let position = |handle: usize| {
                graph.nodes.iter().position(|(other, ..)| *other == handle).ok_or(Status::INVALID_VALUE)
            };
            let [before, later] = unsafe { [position(*from.add(number))?, position(*to.add(number))?] };
            let (_, launch, after) = &mut graph.nodes[later];
            if before >= later || after.contains(&before) {
                return Err(Status::INVALID_VALUE);
            }
            let EdgeData { from_port, to_port, kind, reserved } = unsafe { data.add(number).read() };
            let is_plain = [from_port, to_port, kind] == [0, 0, 0];
            let is_programmatic = [from_port, to_port, kind] == [1, 0, 1] && capability().0 >= 9;
            let is_allowed = is_plain || is_programmatic && launch.function.waits;
            if reserved != [0; 5] || !is_allowed {
                return Err(Status::INVALID_VALUE);
            }
            after.push(before);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphInstantiateWithFlags(
    executable: *mut usize,
    graph: usize,
    _flags: c_ulonglong,
) -> c_int {
    answer(|| {
        let mut state = state();
        let device = state.current()?;
        let nodes = state.graphs.get(&graph).ok_or(Status::INVALID_HANDLE)?.nodes.clone();
        let handle = state.handle();
        state.executables.insert(handle, Executable { device, nodes });
        unsafe { put(executable, handle) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphExecKernelNodeSetParams_v2(
    executable: usize,
    node: usize,
    parameters: *const NodeParameters,
) -> c_int {
    answer(|| {
        let mut state = state();
        // The graph that the node is named by must be there.
        if !state.graphs.values().any(|graph| graph.nodes.iter().any(|(handle, ..)| *handle == node)) {
            return Err(Status::INVALID_HANDLE);
        }
        let launch = unsafe { (*parameters).launch(&state) }?;
        let executable = state.executables.get_mut(&executable).ok_or(Status::INVALID_HANDLE)?;
        let own = executable.nodes.iter_mut().find(|(handle, ..)| *handle == node);
        own.ok_or(Status::INVALID_VALUE)?.1 = launch;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphLaunch(executable: usize, stream: usize) -> c_int {
    answer(|| {
        let mut state = state();
        let executable = state.executables.get(&executable).ok_or(Status::INVALID_HANDLE)?;
        let is_loaded = |launch: &Launch| {
            state.functions.values().any(|function| std::sync::Arc::ptr_eq(function, &launch.function))
        };
        // A GPU would run code that is not there.
        if !executable.nodes.iter().all(|(_, launch, _)| is_loaded(launch)) {
            return Err(Status::INVALID_HANDLE);
        }
        let of_stream = state.device_of(stream)?;
        if executable.device != of_stream {
            return Err(Status::INVALID_VALUE);
        }
        let launches = executable.nodes.iter().map(|(_, launch, after)| (launch.clone(), after.clone()));
        let work = Work::Graph(launches.collect());
        state.push(stream, work)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphExecDestroy(executable: usize) -> c_int {
    answer(|| state().executables.remove(&executable).map(|_| ()).ok_or(Status::INVALID_HANDLE))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphDestroy(graph: usize) -> c_int {
    answer(|| state().graphs.remove(&graph).map(|_| ()).ok_or(Status::INVALID_HANDLE))
}
