//! Kernels without a device: what would be compiled for a target, to read and to test.

use std::sync::Arc;

use lazuli_codegen::Emitted;
use lazuli_codegen::nest::Parameter;

use super::parts::{Argument, ArgumentKind, LaunchInfo, ScheduleInfo};
use super::target::Target;
#[cfg(feature = "cuda")]
use crate::Result;
use crate::Scalar;
use crate::compiler::explain::Explanation;
use crate::compiler::{Part, Plan};
use crate::fusion::cost::Work;
#[cfg(feature = "cuda")]
pub use crate::runtime::cuda::cubin::CubinInfo;

/// The kernels of an expression for a target.
///
/// ```
/// use lazuli::{DType, Target, Tensor};
/// let x = Tensor::from_vec(vec![0.0f32; 4096], [4096]);
/// let program = (x.relu() * 2.0).compile_for(&Target::cuda("sm_90"))?;
/// assert_eq!(program.kernels().len(), 1);
/// assert!(program.source().contains("__global__"));
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Program {
    target: Target,
    plan: Arc<Plan>,
    kernels: Vec<KernelInfo>,
}

impl Program {
    pub(crate) fn new(plan: Arc<Plan>, target: Target) -> Program {
        let kernels = (0..plan.kernels.len())
            .map(|number| KernelInfo { plan: plan.clone(), number, target: target.clone() })
            .collect();
        Program { target, plan, kernels }
    }

    /// What the kernels are for.
    ///
    /// ```
    /// use lazuli::{Target, Tensor};
    /// let y = Tensor::from_vec(vec![0.0f32; 8], [8]).relu();
    /// assert_eq!(y.compile_for(&Target::cuda("sm_90"))?.target().to_string(), "cuda sm_90");
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The kernels, in the order of launching.
    ///
    /// ```
    /// use lazuli::{Target, Tensor};
    /// let x = Tensor::from_vec(vec![0.0f32; 8], [8]);
    /// let program = lazuli::compile_for([&x.relu(), &x.exp().sum(0)], &Target::cpu())?;
    /// for kernel in program.kernels() {
    ///     println!("{}: {}", kernel.name(), kernel.schedule());
    /// }
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }

    /// All kernels' sources, each under a line with its schedule and launch shape; to read, and for snapshots.
    ///
    /// A compiler gets each kernel's text by itself ([`KernelInfo::source`]), and so its helper functions are in each, and two may have
    /// one name. Where there are several, a line above each says so: together they are no file to compile.
    ///
    /// ```
    /// use lazuli::{Target, Tensor};
    /// let y = Tensor::from_vec(vec![0.0f32; 4096], [4096]).relu();
    /// let source = y.compile_for(&Target::cuda("sm_90"))?.source();
    /// assert!(source.starts_with("// relu_f32: pointwise("));
    /// let both = lazuli::compile_for([&y, &Tensor::placeholder([10, 10], lazuli::DType::F32).sum(1)], &Target::cpu())?;
    /// assert_eq!(both.kernels().len(), 2);
    /// assert!(both.source().starts_with("// ---- file 1 of 2 ----\n// relu_f32: "));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn source(&self) -> String {
        let mut text = String::new();
        for (number, kernel) in self.kernels.iter().enumerate() {
            if number > 0 {
                text.push('\n');
            }
            if self.kernels.len() > 1 {
                text.push_str(&format!("// ---- file {} of {} ----\n", number + 1, self.kernels.len()));
            }
            text.push_str(&format!("// {}: {}\n", kernel.name(), kernel.schedule()));
            for launch in kernel.launches() {
                text.push_str(&format!("// {launch}\n"));
            }
            text.push_str(kernel.source());
        }
        text
    }

    /// Why these are the kernels.
    ///
    /// ```
    /// use lazuli::{Target, Tensor};
    /// let y = Tensor::from_vec(vec![0.0f32; 4096], [4096]).relu() + 1.0;
    /// let explanation = y.compile_for(&Target::cuda("sm_90"))?.explain();
    /// assert_eq!((explanation.kernels(), explanation.unfused_kernels()), (1, 2));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn explain(&self) -> Explanation {
        Explanation::of(&self.plan)
    }

    /// The graph that the kernels were made from, after all passes, in DOT.
    ///
    /// ```
    /// use lazuli::{Target, Tensor};
    /// let y = Tensor::from_vec(vec![0.0f32; 8], [8]).relu();
    /// assert!(y.compile_for(&Target::cpu())?.graph_dot().starts_with("digraph"));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn graph_dot(&self) -> String {
        crate::graph::dot::dot(&self.plan.graph, crate::graph::text::Locations::Hidden)
    }
}

/// One kernel of a [`Program`].
///
/// ```
/// use lazuli::{Target, Tensor};
/// let x = Tensor::from_vec(vec![0.0f32; 4096], [4096]);
/// let program = (x.relu() * 2.0).compile_for(&Target::cuda("sm_90"))?;
/// let kernel = &program.kernels()[0];
/// assert_eq!(kernel.name(), "relu_mul_f32");
/// assert_eq!(kernel.arguments().len(), 4); // input, output, the number 2, and the extent
/// assert_eq!(kernel.bytes_read() + kernel.bytes_written(), 2 * 4 * 4096);
/// assert_eq!(kernel.grid()[0] * 4 * u64::from(kernel.block()[0]), 4096); // four elements a thread
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct KernelInfo {
    plan: Arc<Plan>,
    number: usize,
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "only CUDA kernels are compiled ahead"))]
    target: Target,
}

impl KernelInfo {
    fn emitted(&self) -> &Emitted {
        &self.plan.kernels[self.number].code.emitted
    }

    /// The function's name.
    ///
    /// ```
    /// use lazuli::{Target, Tensor};
    /// let y = Tensor::from_vec(vec![0.0f32; 8], [8]).relu() + 1.0;
    /// assert_eq!(y.compile_for(&Target::cpu())?.kernels()[0].name(), "relu_add_f32");
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.emitted().name
    }

    /// The whole text that the compiler gets: a file by itself.
    ///
    /// ```
    /// use lazuli::{Target, Tensor};
    /// let y = Tensor::from_vec(vec![0.0f32; 8], [8]).relu();
    /// let program = y.compile_for(&Target::cuda("sm_90"))?;
    /// assert!(program.kernels()[0].source().contains("relu_f32("));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn source(&self) -> &str {
        &self.emitted().source
    }

    /// How the iteration space is mapped to the machine, such as `pointwise(threads=256, vec=4)`.
    ///
    /// ```
    /// use lazuli::{Target, Tensor};
    /// let y = Tensor::from_vec(vec![0.0f32; 4096], [4096]).relu();
    /// let program = y.compile_for(&Target::cuda("sm_90"))?;
    /// assert_eq!(program.kernels()[0].schedule(), "pointwise(threads=256, vec=4)");
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn schedule(&self) -> ScheduleInfo {
        ScheduleInfo::of(&self.emitted().schedule)
    }

    /// The launch shape of each function as a function of the sizes, such as
    /// `relu_f32: grid = ceil(n_i0 / 1024), block = 256`.
    ///
    /// ```
    /// use lazuli::{Target, Tensor};
    /// let y = Tensor::from_vec(vec![0.0f32; 4096], [4096]).relu();
    /// let program = y.compile_for(&Target::cuda("sm_90"))?;
    /// assert_eq!(program.kernels()[0].launches(), ["relu_f32: grid = ceil(n_i0 / 1024), block = 256"]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn launches(&self) -> Vec<LaunchInfo> {
        self.emitted().launches.iter().map(|(name, launch)| LaunchInfo::of(name, launch)).collect()
    }

    /// The blocks of the first function for the recorded sizes, in x, y and z.
    ///
    /// ```
    /// use lazuli::{Target, Tensor};
    /// let y = Tensor::from_vec(vec![0.0f32; 4096], [4096]).relu();
    /// let program = y.compile_for(&Target::cuda("sm_90"))?;
    /// assert_eq!(program.kernels()[0].grid(), [4, 1, 1]); // 1024 elements a block
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn grid(&self) -> [u64; 3] {
        self.emitted().launches.first().map_or([0; 3], |(_, launch)| launch.grid())
    }

    /// The threads of a block, in x, y and z.
    ///
    /// ```
    /// use lazuli::{Target, Tensor};
    /// let y = Tensor::from_vec(vec![0.0f32; 4096], [4096]).relu();
    /// let program = y.compile_for(&Target::cuda("sm_90"))?;
    /// assert_eq!(program.kernels()[0].block(), [256, 1, 1]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn block(&self) -> [u32; 3] {
        self.emitted().launches.first().map_or([0; 3], |(_, launch)| launch.block)
    }

    /// The parameters in order: name, type and, for scalars and extents, this launch's value. Where one launch
    /// computes several parts, those of each, as `part[0].in0: f32 [4096]`.
    ///
    /// ```
    /// use lazuli::{Target, Tensor};
    /// let y = Tensor::from_vec(vec![0.0f32; 4096], [4096]) * 2.0;
    /// let program = y.compile_for(&Target::cuda("sm_90"))?;
    /// assert_eq!(
    ///     program.kernels()[0].arguments(),
    ///     ["in0: f32 [4096]", "out0: f32 [4096]", "c0: f32 = 2.0", "n_i0: extent = 4096"]
    /// );
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn arguments(&self) -> Vec<Argument> {
        let describe = |part: &Part, parameter: &Parameter| -> (String, ArgumentKind) {
            let kernel = &part.lowered.kernel;
            match *parameter {
                Parameter::Buffer(id) => {
                    let buffer = &kernel.buffers[id.index()];
                    let (dtype, elements, is_output) = (buffer.dtype, buffer.elements, buffer.is_output);
                    (buffer.name.to_string(), ArgumentKind::Buffer { dtype, elements, is_output })
                }
                Parameter::Argument(id) => {
                    let argument = &kernel.arguments[id.index()];
                    let dtype = argument.value.dtype();
                    let value = Scalar::from_bits(dtype, part.argument(&self.plan, id)).to_string();
                    (argument.name.to_string(), ArgumentKind::Scalar { dtype, value })
                }
                Parameter::Extent(axis) => {
                    let value = kernel.axis(axis).extent;
                    (format!("n_{}", kernel.axis(axis).name), ArgumentKind::Extent { value })
                }
                Parameter::Offset(axis) => {
                    let value = part.offset(&self.plan, axis);
                    (kernel.axis(axis).name.to_string(), ArgumentKind::Offset { value })
                }
                Parameter::Checks => ("checks".into(), ArgumentKind::Checks),
                Parameter::Workspace(number) => {
                    let space = &self.emitted().workspaces[number];
                    let (dtype, elements) = (space.dtype, space.elements);
                    (space.name.to_string(), ArgumentKind::Workspace { dtype, elements })
                }
                Parameter::Map(number) => {
                    let map = &self.emitted().maps[number];
                    let of = kernel.buffers[map.buffer.index()].name.to_string();
                    let axes = map.axes.iter().map(|&(axis, step)| (kernel.axis(axis).extent, step));
                    let (first, box_lines, axes) = (map.first, map.lines, axes.collect());
                    (format!("map{number}"), ArgumentKind::TensorMap { of, first, box_lines, axes })
                }
            }
        };
        let mut arguments = Vec::new();
        for (number, part) in self.plan.kernels[self.number].parts.iter().enumerate() {
            let of = self.emitted().batch.as_ref().map(|_| number);
            arguments.extend(self.emitted().parameters.iter().map(|parameter| {
                let (name, kind) = describe(part, parameter);
                Argument { name, part: of, kind }
            }));
        }
        arguments
    }

    fn work(&self) -> impl Iterator<Item = &Work> {
        self.plan.kernels[self.number].groups(&self.plan.grouping).map(|group| &group.work)
    }

    /// Bytes read from memory, each buffer counted once.
    ///
    /// ```
    /// use lazuli::{Target, Tensor};
    /// let x = Tensor::from_vec(vec![0.0f32; 1000], [10, 100]);
    /// let program = (&x * &x).sum(1).compile_for(&Target::cpu())?;
    /// assert_eq!(program.kernels()[0].bytes_read(), 4000); // x once
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn bytes_read(&self) -> u64 {
        self.work().map(|work| work.bytes_read).sum()
    }

    /// Bytes written to memory.
    ///
    /// ```
    /// use lazuli::{Target, Tensor};
    /// let x = Tensor::from_vec(vec![0.0f32; 1000], [10, 100]);
    /// let program = (&x * &x).sum(1).compile_for(&Target::cpu())?;
    /// assert_eq!(program.kernels()[0].bytes_written(), 40);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn bytes_written(&self) -> u64 {
        self.work().map(|work| work.bytes_written).sum()
    }

    /// Registers of a thread on CUDA, estimated from the kernel's loops before any compiler has seen it: the most 32-bit
    /// values that are in use at once; 0 in C. [`KernelInfo::compile`] says how many the compiler takes.
    ///
    /// ```
    /// use lazuli::{Target, Tensor};
    /// let x = Tensor::from_vec(vec![0.0f32; 1000], [1000]);
    /// let program = x.gelu().compile_for(&Target::cuda("sm_90"))?;
    /// assert!((10..64).contains(&program.kernels()[0].register_estimate()));
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    pub fn register_estimate(&self) -> u32 {
        self.emitted().register_estimate
    }

    /// The compiled kernel for a CUDA target. Needs NVRTC, but no GPU.
    ///
    /// ```
    /// use lazuli::{Error, Target, Tensor};
    /// let y = Tensor::from_vec(vec![0.0f32; 4096], [4096]).relu();
    /// match y.compile_for(&Target::cuda("sm_90"))?.kernels()[0].compile() {
    ///     Ok(kernel) => assert_eq!(kernel.info.spill_bytes, 0),
    ///     Err(error) => assert!(matches!(error, Error::Unavailable { .. })), // no NVRTC on this machine
    /// }
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// For `sm_90` it has what that architecture alone has (`sm_90a`), and runs on the same GPUs.
    ///
    /// # Errors
    /// [`Unavailable`](crate::Error::Unavailable) without NVRTC, for an architecture that it does not know, or
    /// for the CPU target;
    /// [`Compilation`](crate::Error::Compilation) with log and source if NVRTC refuses the kernel.
    #[cfg(feature = "cuda")]
    pub fn compile(&self) -> Result<CompiledKernel> {
        use crate::Error;
        let Some(architecture) = &self.target.architecture else {
            return Err(Error::Unavailable {
                what: "a CUBIN".into(),
                reason: "the target is the CPU".into(),
                hint: "Compile for a CUDA target, such as Target::cuda(\"sm_90\")".into(),
            });
        };
        let nvrtc = crate::runtime::cuda::nvrtc::Nvrtc::get()?;
        check_architecture(architecture, nvrtc.architectures(), nvrtc.version())?;
        let cubin = nvrtc.compile(self.name(), self.source(), architecture, nvrtc.options())?;
        let info = cubin.inspect_all(self.emitted().functions()).ok_or_else(|| {
            Error::internal("CUBIN inspection", format!("{} is not in the compiled module", self.name()))
        })?;
        Ok(CompiledKernel { cubin: cubin.bytes, info })
    }
}

/// An architecture that NVRTC knows, such as `sm_90`; those with features of one chip or family end in a letter.
#[cfg(feature = "cuda")]
fn check_architecture(architecture: &str, supported: &[u32], (major, minor): (i32, i32)) -> Result<()> {
    let number = architecture.strip_prefix("sm_").map(|rest| rest.strip_suffix(['a', 'f']).unwrap_or(rest));
    let is_known = |digits: &str| supported.iter().any(|known| known.to_string() == digits);
    // A compiler that lists none has to find out by itself.
    if supported.is_empty() || number.is_some_and(is_known) {
        return Ok(());
    }
    let known: Vec<String> = supported.iter().map(|number| format!("sm_{number}")).collect();
    Err(crate::Error::Unavailable {
        what: format!("the CUDA architecture {architecture:?}"),
        reason: format!("NVRTC {major}.{minor} does not know it"),
        hint: format!("Name one of {}", known.join(", ")),
    })
}

/// A kernel compiled by NVRTC, and what the compiler made of it.
///
/// ```
/// use lazuli::{Error, Target, Tensor};
/// let x = Tensor::from_vec(vec![0.0f32; 4096], [4096]);
/// let program = x.relu().compile_for(&Target::cuda("sm_90"))?;
/// match program.kernels()[0].compile() {
///     Ok(kernel) => assert!(kernel.cubin.starts_with(b"\x7fELF")),
///     Err(Error::Unavailable { .. }) => {} // no NVRTC on this machine
///     Err(error) => return Err(error),
/// }
/// # Ok::<(), lazuli::Error>(())
/// ```
#[cfg(feature = "cuda")]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompiledKernel {
    /// The ELF file for the driver.
    pub cubin: Vec<u8>,
    /// Registers, spills and shared memory.
    pub info: CubinInfo,
}
