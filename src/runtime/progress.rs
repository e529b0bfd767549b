//! A line on the terminal, where kernels take long to compile.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::debug::{self, Level};
use crate::settings;

/// How long nothing is said.
const PATIENCE: Duration = Duration::from_millis(500);

/// Between two looks at how far it is.
const PERIOD: Duration = Duration::from_millis(100);

/// While it lives, the line is there; not before [`PATIENCE`] is over, and not where nobody would read it.
pub(crate) struct Progress {
    ready: Arc<AtomicUsize>,
    line: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Of so many kernels that may have to be compiled.
    pub(crate) fn new(kernels: usize) -> Progress {
        let ready = Arc::new(AtomicUsize::new(0));
        let line = is_wanted().then_some(()).and_then(|()| {
            let (end, ended) = channel();
            let ready = Arc::clone(&ready);
            let show = move || {
                if ended.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                let bar = ProgressBar::with_draw_target(Some(kernels as u64), ProgressDrawTarget::stderr());
                let template = "{spinner} lazuli: compiling kernels, {pos} of {len} ready, {elapsed}";
                if let Ok(style) = ProgressStyle::with_template(template) {
                    bar.set_style(style);
                }
                // The clock that users see began when compiling did.
                let bar = bar.with_elapsed(PATIENCE);
                while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                    bar.set_position(ready.load(Ordering::Relaxed) as u64);
                    bar.tick();
                }
                bar.finish_and_clear();
            };
            // A system without room for another thread has none for a line.
            Some((end, std::thread::Builder::new().spawn(show).ok()?))
        });
        Progress { ready, line }
    }

    /// One more is ready.
    pub(crate) fn advance(&self) {
        self.ready.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Progress {
    /// The line is gone when this returns.
    fn drop(&mut self) {
        if let Some((end, thread)) = self.line.take() {
            drop(end);
            let _ = thread.join();
        }
    }
}

fn is_wanted() -> bool {
    settings::has_progress() && !debug::enabled(Level::Timings) && std::io::stderr().is_terminal()
}
