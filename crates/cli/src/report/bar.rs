//! The line on the terminal that shows what the tool is doing. All commands draw the same one.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Interval at which the line is redrawn.
const TICK: Duration = Duration::from_millis(120);

/// Of an activity with an unknown number of parts: what, for how long, and which part.
const ACTIVITY: &str = "{spinner} {prefix} {elapsed}  {wide_msg}";

/// Of an activity whose number of parts is known.
const PARTS: &str = "{spinner} {prefix} {elapsed}  {bar:20} {pos}/{len}  {wide_msg}";

/// A line that shows an activity and how much of it is done. Nothing is drawn unless standard error
/// is a terminal. The line ends when this is dropped.
pub(crate) struct Bar {
    bar: ProgressBar,
    has_parts: bool,
    /// The thread that redraws the line ends when this is dropped.
    _ticker: Option<Sender<()>>,
}

impl Bar {
    /// Starts the line for the work on `name`.
    pub(crate) fn new(name: &str, is_hidden: bool) -> Self {
        let bar = if is_hidden {
            ProgressBar::hidden()
        } else {
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
        };
        set_style(&bar, ACTIVITY);
        bar.set_prefix(name.to_owned());
        let ticker = if bar.is_hidden() { None } else { start_ticker(&bar) };
        Self { bar, has_parts: false, _ticker: ticker }
    }

    /// True if nothing is drawn.
    pub(crate) fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// Shows an activity, of which `done` of `total` parts are done, or 0 of 0 if their number is
    /// unknown.
    pub(crate) fn doing(&mut self, text: &str, done: u64, total: u64) {
        if self.bar.is_hidden() {
            return;
        }
        let has_parts = total > 0;
        if has_parts != self.has_parts {
            set_style(&self.bar, if has_parts { PARTS } else { ACTIVITY });
            self.has_parts = has_parts;
        }
        if has_parts {
            self.bar.set_length(total);
            self.bar.set_position(done);
        }
        self.bar.set_message(text.to_owned());
    }

    /// The line as a function that shows activities.
    pub(crate) fn watch(&mut self) -> impl FnMut(&str, usize, usize) {
        |text, done, total| self.doing(text, done as u64, total as u64)
    }

    /// Prints a note for the user, above the line.
    pub(crate) fn note(&self, text: &str) {
        // If standard error is closed, there is nowhere to report that.
        self.bar.suspend(|| drop(writeln!(std::io::stderr(), "note: {text}")));
    }

    /// Removes the line.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.finish();
    }
}

fn set_style(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

/// Starts a thread that redraws the line, if the system allows another thread. `indicatif`'s own
/// panics if it does not.
fn start_ticker(bar: &ProgressBar) -> Option<Sender<()>> {
    let (sender, dropped) = channel::<()>();
    let bar = bar.clone();
    let redraw = move || {
        while dropped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) && !bar.is_finished() {
            bar.tick();
        }
    };
    std::thread::Builder::new().spawn(redraw).ok().map(|_| sender)
}
