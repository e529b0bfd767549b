//! Launches that the driver knows beforehand: a graph of kernels is built once, and started with one call.

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use cudarc::driver::{DriverError, result, sys};

use super::{CudaDevice, CudaKernel, CudaStream};
use crate::Result;

/// A launch of a graph.
pub(crate) struct Node<'a> {
    pub(crate) kernel: &'a CudaKernel,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
    /// Each points to a parameter, which the driver copies.
    pub(crate) arguments: &'a mut [*mut c_void],
}

impl Node<'_> {
    fn parameters(&mut self) -> sys::CUDA_KERNEL_NODE_PARAMS {
        let ([x, y, z], [width, height, depth]) = (self.grid, self.block);
        sys::CUDA_KERNEL_NODE_PARAMS {
            func: self.kernel.function(),
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: width,
            blockDimY: height,
            blockDimZ: depth,
            sharedMemBytes: self.shared_bytes,
            kernelParams: self.arguments.as_mut_ptr(),
            extra: null_mut(),
            kern: null_mut(),
            ctx: null_mut(),
        }
    }
}

/// Launches that go together. The driver runs one at a time of those that one graph is started for.
pub(crate) struct CudaGraph {
    /// Nodes are named by what they were made in.
    graph: sys::CUgraph,
    executable: sys::CUgraphExec,
    nodes: Vec<sys::CUgraphNode>,
    device: Arc<CudaDevice>,
}

// SAFETY: the handles are no memory of this process, and a graph's owner alone calls the driver with them.
unsafe impl Send for CudaGraph {}

impl CudaDevice {
    /// Whether the driver has graphs.
    pub(crate) fn has_graphs(&self) -> bool {
        self.has_graphs
    }

    /// A graph of launches, each with the numbers of earlier ones that it comes after. The kernels stay loaded until it is
    /// dropped.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device).
    pub(crate) fn graph<'a>(
        self: &Arc<Self>,
        launches: impl Iterator<Item = Result<(Node<'a>, &'a [usize])>>,
    ) -> Result<CudaGraph> {
        let operation = "make a graph";
        self.enter(operation)?;
        let failed = |error: DriverError| self.failed(operation, error);
        let mut made = self.empty_graph().map_err(failed)?;
        let mut begin_early = true;
        let [mut from, mut to] = [const { Vec::new() }; 2];
        for launch in launches {
            let (mut node, after) = launch?;
            node.kernel.allow_shared_bytes(node.shared_bytes).map_err(failed)?;
            begin_early &= node.kernel.begins_early();
            let (mut handle, parameters) = (null_mut(), node.parameters());
            // SAFETY: the graph is alive, and arguments are what the kernel's parameters are.
            let added = unsafe {
                sys::cuGraphAddKernelNode_v2(&mut handle, made.graph, null(), 0, &raw const parameters)
            };
            added.result().map_err(failed)?;
            let before = after.iter().filter_map(|&number| made.nodes.get(number));
            from.extend(before);
            to.resize(from.len(), handle);
            made.nodes.push(handle);
        }
        let data = match begin_early {
            // `CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC` of the one before, and `CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC`.
            true => sys::CUgraphEdgeData { from_port: 1, to_port: 0, type_: 1, reserved: [0; 5] },
            false => sys::CUgraphEdgeData { from_port: 0, to_port: 0, type_: 0, reserved: [0; 5] },
        };
        let data = vec![data; from.len()];
        // SAFETY: the nodes are the graph's, all lists are as long, and each kernel that begins early waits itself.
        let ordered = unsafe {
            sys::cuGraphAddDependencies_v2(made.graph, from.as_ptr(), to.as_ptr(), data.as_ptr(), data.len())
        };
        ordered.result().map_err(failed)?;
        // SAFETY: the graph is alive.
        let flags = sys::CUgraphInstantiate_flags(0);
        made.executable = unsafe { result::graph::instantiate(made.graph, flags) }.map_err(failed)?;
        Ok(made)
    }

    fn empty_graph(self: &Arc<Self>) -> Result<CudaGraph, DriverError> {
        let mut graph = null_mut();
        // SAFETY: the pointer is to a handle of this function.
        unsafe { sys::cuGraphCreate(&mut graph, 0) }.result()?;
        Ok(CudaGraph { graph, executable: null_mut(), nodes: Vec::new(), device: self.clone() })
    }
}

impl CudaGraph {
    /// From now on a launch has these arguments; those that were started have the ones of then.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device): what the launch has now is not known.
    pub(crate) fn update(&mut self, number: usize, mut node: Node<'_>) -> Result<()> {
        let operation = "update a graph";
        self.device.enter(operation)?;
        let parameters = node.parameters();
        // SAFETY: the node is one of the graph that this was made of, and the function is the node's.
        let updated = unsafe {
            sys::cuGraphExecKernelNodeSetParams_v2(self.executable, self.nodes[number], &raw const parameters)
        };
        updated.result().map_err(|error| self.device.failed(operation, error))
    }

    /// Starts all launches, in an order that their dependencies allow, and waits for none.
    ///
    /// # Safety
    /// As [`CudaDevice::launch`], for each of them.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) where the driver refuses. Failures of kernels come with a later call.
    pub(crate) unsafe fn launch(&mut self, stream: &CudaStream) -> Result<()> {
        let operation = "launch of a graph";
        self.device.enter(operation)?;
        // SAFETY: both are alive; the rest is the caller's promise.
        unsafe { result::graph::launch(self.executable, stream.raw()) }
            .map_err(|error| self.device.failed(operation, error))?;
        stream.has_started();
        Ok(())
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        let context = &self.device.context;
        context.record_err(context.bind_to_thread());
        // SAFETY: the handles are this graph's own. What was started goes on.
        unsafe {
            if !self.executable.is_null() {
                context.record_err(result::graph::exec_destroy(self.executable));
            }
            context.record_err(result::graph::destroy(self.graph));
        }
    }
}
