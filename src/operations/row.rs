//! What the table says of an operation, and how it is written.

use crate::{DType, Tensor};

/// What kind of operation a row is about.
///
/// ```
/// use lazuli::operations::{self, Group};
/// let losses = operations::all().filter(|operation| operation.group == Group::Loss);
/// assert!(losses.map(|operation| operation.name).any(|name| name == "mse_loss"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Group {
    /// Of each element of one tensor.
    Unary,
    /// Of the elements of several tensors, which broadcast.
    Binary,
    /// Comparisons, logic, bits and selection; they broadcast too.
    Logic,
    /// Activations of neural networks.
    Activation,
    /// Losses.
    Loss,
    /// Other arrangements of the same elements.
    View,
    /// Combinations of the elements along axes.
    Reduction,
    /// Elements in order, and positions in it.
    Order,
    /// Products of matrices, convolutions and attention.
    Product,
    /// Factorisations of matrices, and what is solved by them.
    Linear,
    /// Pooling and interpolation.
    Window,
    /// Normalisation.
    Norm,
    /// Tensors from numbers.
    Constructor,
    /// Tensors from seeds.
    Random,
}

/// The dtypes that an operation accepts, as a class.
///
/// ```
/// use lazuli::operations::{self, Accepts};
/// let accepts = |name: &str| operations::all().find(|operation| operation.name == name).unwrap().accepts;
/// assert_eq!((accepts("relu"), accepts("mean")), (Accepts::Numbers, Accepts::Floats));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accepts {
    /// Every dtype.
    All,
    /// Every dtype but `Bool`.
    Numbers,
    /// Floats.
    Floats,
    /// `F32` and `F64`.
    Wide,
    /// Integers and `Bool`.
    Bits,
    /// Integers.
    Integers,
}

impl Accepts {
    /// Whether the dtype is in the class.
    ///
    /// ```
    /// use lazuli::{DType, operations::Accepts};
    /// assert!(Accepts::Bits.accepts(DType::Bool) && !Accepts::Integers.accepts(DType::Bool));
    /// ```
    pub fn accepts(self, dtype: DType) -> bool {
        match self {
            Accepts::All => true,
            Accepts::Numbers => dtype != DType::Bool,
            Accepts::Floats => dtype.is_float(),
            Accepts::Wide => matches!(dtype, DType::F32 | DType::F64),
            Accepts::Bits => !dtype.is_float(),
            Accepts::Integers => dtype.is_int(),
        }
    }
}

/// The result's dtype (the first result's, of several), given the dtype that the inputs promote to.
///
/// ```
/// use lazuli::operations::{self, Gives};
/// let gives = |name: &str| operations::all().find(|operation| operation.name == name).unwrap().gives;
/// assert_eq!((gives("sqrt"), gives("sum")), (Gives::Float, Gives::Sum));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gives {
    /// The inputs' dtype.
    Same,
    /// The inputs' dtype if it is a float, else `F32`.
    Float,
    /// The inputs' dtype if it is a float, else `I64`.
    Sum,
    /// This dtype.
    Fixed(DType),
}

impl Gives {
    /// The result's dtype.
    ///
    /// ```
    /// use lazuli::{DType, operations::Gives};
    /// assert_eq!(Gives::Float.of(DType::I32), DType::F32);
    /// assert_eq!(Gives::Float.of(DType::F16), DType::F16);
    /// assert_eq!(Gives::Sum.of(DType::U8), DType::I64);
    /// ```
    pub fn of(self, dtype: DType) -> DType {
        match self {
            Gives::Same => dtype,
            Gives::Float if !dtype.is_float() => DType::F32,
            Gives::Sum if !dtype.is_float() => DType::I64,
            Gives::Float | Gives::Sum => dtype,
            Gives::Fixed(dtype) => dtype,
        }
    }
}

/// `Bool`, as the result of a question.
pub(super) const TRUTH: Gives = Gives::Fixed(DType::Bool);

/// How far a result may be from that of exact arithmetic on the same inputs.
///
/// ```
/// use lazuli::operations::{self, Accuracy};
/// let sqrt = operations::all().find(|operation| operation.name == "sqrt").unwrap();
/// assert_eq!(sqrt.accuracy, Accuracy::Exact);
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Accuracy {
    /// Not a bit from what IEEE arithmetic gives, each step rounded to nearest.
    Exact,
    /// So many representable numbers of the result's dtype; of the 16-bit floats, one.
    Ulps(u32),
    /// `eps * (relative * |expected| + absolute)`, with the [`eps`](crate::FloatInfo::eps) of the result's dtype:
    /// sums, and compositions that cancel.
    Near {
        /// Of the result's magnitude.
        relative: f64,
        /// In the result's unit.
        absolute: f64,
    },
}

/// Which elements an input of the tests has.
///
/// ```
/// use lazuli::operations::{self, Elements};
/// let one_hot = operations::all().find(|operation| operation.name == "one_hot").unwrap();
/// assert!(matches!(one_hot.inputs[0].elements, Elements::Below(_)));
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Elements {
    /// Those where implementations go wrong: NaN, infinities, zeros of both signs, subnormals, extremes.
    Special,
    /// Small ones that every dtype holds exactly, at most 8 in magnitude; sums of them are exact too.
    Small,
    /// Floats from 0 to 1.
    Unit,
    /// Indices from 0 to, but without, this number.
    Below(i64),
}

/// An input of an operation, as the tests make it.
///
/// ```
/// use lazuli::{DType, operations};
/// let select = operations::all().find(|operation| operation.name == "where_").unwrap();
/// assert_eq!(select.inputs[0].dtype, Some(DType::Bool)); // the condition, whatever the others are
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Input {
    /// The name that it has in [`Case::torch`].
    pub name: &'static str,
    /// Its elements.
    pub elements: Elements,
    /// Its shape; `None`: any, that broadcasts with the others.
    pub shape: Option<&'static [usize]>,
    /// Its dtype; `None`: the dtype under test.
    pub dtype: Option<DType>,
}

impl Input {
    pub(super) const fn new(elements: Elements, dtype: Option<DType>) -> Input {
        Input { name: "", elements, shape: None, dtype }
    }

    /// Of that shape alone.
    pub(super) const fn shape(self, shape: &'static [usize]) -> Input {
        Input { shape: Some(shape), ..self }
    }
}

/// Any elements of the dtype under test.
pub(super) const ANY: Input = Input::new(Elements::Special, None);
/// Small elements of the dtype under test.
pub(super) const SMALL: Input = Input::new(Elements::Small, None);
/// Floats from 0 to 1.
pub(super) const UNIT: Input = Input::new(Elements::Unit, None);
/// `Bool`s.
pub(super) const MASK: Input = Input::new(Elements::Special, Some(DType::Bool));

/// One way to call an operation.
///
/// ```
/// use lazuli::{DType, Tensor, operations};
/// let add = operations::all().find(|operation| operation.name == "add").unwrap();
/// let case = &add.cases[0];
/// println!("{} is {} in PyTorch", case.rust, case.torch);
/// let sum = (case.record)(&[Tensor::scalar(1i32), Tensor::scalar(2i32)], DType::I32);
/// assert_eq!(sum[0].item::<i32>()?, 3);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Case {
    /// The same in PyTorch, or, if PyTorch does not have it, in NumPy (`np.…`). The inputs have their names, and
    /// `dtype` is the dtype under test.
    pub torch: &'static str,
    /// The call as it is written in Rust.
    pub rust: &'static str,
    /// Records the call on inputs, in the order of [`Operation::inputs`], with the dtype under test. Nothing, for
    /// another number of inputs.
    pub record: fn(&[Tensor], DType) -> Vec<Tensor>,
}

/// One row of the table.
///
/// ```
/// use lazuli::operations;
/// let floats = |operation: &&operations::Operation| operation.accepts == operations::Accepts::Floats;
/// for operation in operations::all().filter(floats) {
///     println!("{}: {}", operation.name, operation.summary);
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Operation {
    /// The method's name.
    pub name: &'static str,
    /// What kind of operation it is.
    pub group: Group,
    /// What it computes, in a line.
    pub summary: &'static str,
    /// The dtypes of inputs that have no dtype of their own.
    pub accepts: Accepts,
    /// The result's dtype.
    pub gives: Gives,
    /// How accurate it is.
    pub accuracy: Accuracy,
    /// What it is called with.
    pub inputs: &'static [Input],
    /// Ways to call it: several where it has parameters.
    pub cases: &'static [Case],
}

/// What a call results in, as a list.
pub(super) trait Results {
    fn list(self) -> Vec<Tensor>;
}

impl Results for Tensor {
    fn list(self) -> Vec<Tensor> {
        vec![self]
    }
}

impl Results for Vec<Tensor> {
    fn list(self) -> Vec<Tensor> {
        self
    }
}

impl Results for (Tensor, Tensor) {
    fn list(self) -> Vec<Tensor> {
        vec![self.0, self.1]
    }
}

impl Results for (Tensor, Tensor, Tensor) {
    fn list(self) -> Vec<Tensor> {
        vec![self.0, self.1, self.2]
    }
}

impl Results for crate::Result<Vec<Tensor>> {
    fn list(self) -> Vec<Tensor> {
        self.unwrap_or_else(|error| vec![Tensor::invalid(error)])
    }
}

/// `operations! { NAME: Group::…; rows }` makes a table. A row is
///
/// ```text
/// name(input: KIND, …) Accepts -> Gives, Accuracy, "What it computes.": "PyTorch" => rust, "PyTorch" => rust;
/// ```
///
/// where `rust` uses the inputs (`&Tensor`s) by their names, and every KIND is an [`Input`]: [`ANY`], [`SMALL`],
/// [`MASK`], with `.shape(&[…])` where it cannot be any. A row without inputs, or one that needs to know the dtype
/// under test, begins with a name for it: `zeros(dtype;) …` or `cast(dtype; a: ANY) …`. For example:
///
/// ```text
/// exp2(a: ANY) All -> Float, Ulps(2), "2 to the power x.": "torch.exp2(a)" => a.exp2();
/// ```
macro_rules! operations {
    (
        $(#[$meta:meta])* $table:ident: $group:expr;
        $($name:ident $inputs:tt $accepts:ident -> $gives:expr, $accuracy:expr, $summary:literal:
            $($torch:literal => $rust:expr),+;)*
    ) => {
        $(#[$meta])*
        pub(super) static $table: &[$crate::operations::row::Operation] = &[$($crate::operations::row::Operation {
            name: stringify!($name),
            group: $group,
            summary: $summary,
            accepts: $crate::operations::row::Accepts::$accepts,
            gives: $gives,
            accuracy: $accuracy,
            inputs: $crate::operations::row::operations!(@inputs $inputs),
            cases: &[$($crate::operations::row::Case {
                torch: $torch,
                rust: stringify!($rust),
                record: $crate::operations::row::operations!(@record $inputs $rust),
            }),+],
        }),*];
    };
    (@inputs ($dtype:ident; $($input:ident: $kind:expr),*)) => {
        $crate::operations::row::operations!(@inputs ($($input: $kind),*))
    };
    (@inputs ($($input:ident: $kind:expr),*)) => {
        &[$($crate::operations::row::Input { name: stringify!($input), ..$kind }),*]
    };
    (@record ($dtype:ident; $($input:ident: $kind:expr),*) $rust:expr) => {
        |inputs, $dtype| {
            #[allow(unused_variables, reason = "not every case takes every input")]
            let [$($input),*] = inputs else { return Vec::new() };
            $crate::operations::row::Results::list($rust)
        }
    };
    (@record ($($input:ident: $kind:expr),*) $rust:expr) => {
        $crate::operations::row::operations!(@record (_dtype; $($input: $kind),*) $rust)
    };
}
pub(super) use operations;
