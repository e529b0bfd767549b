//! [`Download`]: values that come to the host while the program goes on.

use std::fmt;

use crate::recording::Tensor;
use crate::runtime::download::{self, Transit};
use crate::{DType, Device, Result, Shape, SourceLocation};

/// Values on their way from a GPU to the host; made by [`Tensor::download`].
///
/// ```
/// use lazuli::{Device, Tensor};
/// let x = Tensor::rand([1000], 1).to(&Device::best());
/// let first = x.exp().download()?; // started
/// let second = x.sum(..).download()?; // this, too, and nothing has been waited for
/// let (first, second) = (first.wait()?, second.wait()?);
/// assert_eq!((first.device()?, first.shape()?), (Device::cpu(), [1000].into()));
/// assert!(second.item::<f32>()? > 0.0);
/// # Ok::<(), lazuli::Error>(())
/// ```
#[must_use = "values that nobody waits for are copied for nothing"]
pub struct Download {
    transit: Transit,
    shape: Shape,
    dtype: DType,
    location: SourceLocation,
}

impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Download({} {})", self.dtype, self.shape)
    }
}

impl Download {
    /// Whether [`Download::wait`] would return at once.
    ///
    /// ```
    /// use lazuli::Tensor;
    /// let download = Tensor::from([1.0f32]).download()?;
    /// while !download.is_ready()? {
    ///     // something else
    /// }
    /// assert_eq!(download.wait()?.item::<f32>()?, 1.0);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Device`](crate::Error::Device) if something on the device has failed.
    pub fn is_ready(&self) -> Result<bool> {
        self.transit.is_ready()
    }

    /// The values as a tensor on the CPU, when they have come.
    ///
    /// ```
    /// use lazuli::{Device, Tensor};
    /// let y = (Tensor::from([1, 2]).to(&Device::best()) * 2).download()?.wait()?;
    /// assert_eq!(y.to_vec::<i32>()?, [2, 4]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::to_vec`].
    pub fn wait(self) -> Result<Tensor> {
        let Download { transit, shape, dtype, location } = self;
        Ok(Tensor::from_buffer(transit.wait()?, shape, dtype, Device::cpu(), "download", location))
    }
}

impl Tensor {
    /// Computes the values if they are not there yet, and starts to copy them to the host. On a GPU nothing is waited for: what
    /// the program records, starts or computes meanwhile goes on beside the copy.
    ///
    /// ```
    /// use lazuli::{Device, Tensor};
    /// let x = Tensor::from([4.0f32, 9.0]).to(&Device::best());
    /// let roots = x.sqrt().download()?;
    /// assert_eq!(roots.wait()?.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::eval`].
    #[track_caller]
    pub fn download(&self) -> Result<Download> {
        let location = SourceLocation::caller();
        let (shape, dtype) = self.known()?;
        let (shape, dtype) = (shape.clone(), dtype);
        self.compute()?;
        Ok(Download { transit: Transit::start(&self.buffer()?)?, shape, dtype, location })
    }

    /// The values on the CPU in memory that GPUs copy from by themselves (pinned memory): [`Tensor::to`] of the result starts a
    /// copy and waits for none. Such memory is dear, and the system cannot swap it: for what is copied again and again, or
    /// while something else is computed. Without a GPU it is the tensor itself, on the CPU.
    ///
    /// ```
    /// use lazuli::{Device, Tensor};
    /// let batch = Tensor::rand([32, 100], 1).pin()?;
    /// let x = batch.to(&Device::best());
    /// x.eval()?; // on its way
    /// assert_eq!(x.to_vec::<f32>()?, batch.to_vec::<f32>()?);
    /// # Ok::<(), lazuli::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::eval`].
    #[track_caller]
    pub fn pin(&self) -> Result<Tensor> {
        let location = SourceLocation::caller();
        let (shape, dtype) = self.known()?;
        let (shape, dtype) = (shape.clone(), dtype);
        let host = self.to(&Device::cpu());
        host.eval()?;
        Ok(match download::pinned(&host.buffer()?)? {
            Some(buffer) => Tensor::from_buffer(buffer, shape, dtype, Device::cpu(), "pin", location),
            None => host,
        })
    }
}
