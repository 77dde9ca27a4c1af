//! Where commands come from: a terminal, with line editing, or a pipe.
//!
//! Reading waits, and the network must not: lines are read on a thread of their own, which hands
//! each over, wakes the network's thread, and reads the next one when it is told to.

use std::cell::Cell;
use std::io::{self, BufRead, IsTerminal};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use bellrock_emulator::live::Waker;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{Config, Editor};

const PROMPT: &str = "bellrock> ";

/// Lines that arrow-up goes back.
const HISTORY: usize = 1000;

/// How long the reader may take, from being asked for a line, to begin to edit it.
const TAKES_TERMINAL: Duration = Duration::from_millis(500);

/// What has come from the prompt.
pub(super) enum Input {
    Line(String),
    /// The end of the pipe, Ctrl-D or Ctrl-C.
    End,
    Failed(io::Error),
}

/// The lines of standard input.
pub(super) struct Prompt {
    inputs: Receiver<Input>,
    next: SyncSender<()>,
    /// The reader was asked for a line, and has not given it yet.
    reading: Cell<bool>,
    terminal: Saved,
}

/// A terminal as it was: the reader may be in the middle of a line when the command ends.
pub(super) struct Saved(Option<Termios>);

impl Saved {
    /// Standard input and output as they are now, if they are a terminal.
    pub(super) fn now() -> Self {
        let interactive = io::stdin().is_terminal() && io::stdout().is_terminal();
        Saved(interactive.then(|| tcgetattr(io::stdin()).ok()).flatten())
    }

    /// Makes it so again.
    pub(super) fn give_back(&self) {
        if let Some(terminal) = &self.0 {
            // Nobody is left to be told.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, terminal);
        }
    }
}

impl Prompt {
    /// Starts to read; `waker` is called when there is something.
    pub(super) fn start(waker: Waker) -> io::Result<Self> {
        let terminal = Saved::now();
        let interactive = terminal.0.is_some();
        let (give, inputs) = channel();
        let (next, told) = sync_channel(1);
        let read = move || match interactive {
            true => edit(&give, &told, &waker),
            false => lines(&give, &told, &waker),
        };
        thread::Builder::new().name("prompt".to_owned()).spawn(read)?;
        Ok(Prompt { inputs, next, reading: Cell::new(false), terminal })
    }

    /// Whether somebody sits at a terminal.
    pub(super) fn is_interactive(&self) -> bool {
        self.terminal.0.is_some()
    }

    /// Asks for the next line.
    pub(super) fn ask(&self) {
        // A reader that has ended has said so.
        self.reading.set(self.next.try_send(()).is_ok());
    }

    /// What has come, if something has.
    pub(super) fn input(&self) -> Option<Input> {
        match self.inputs.try_recv() {
            Ok(input) => {
                self.reading.set(false);
                Some(input)
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Input::End),
        }
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        // A reader that has just been asked is about to take the terminal: not behind our back.
        let began = Instant::now();
        while self.is_interactive()
            && self.reading.get()
            && is_ours()
            && began.elapsed() < TAKES_TERMINAL
        {
            thread::sleep(TAKES_TERMINAL / 100);
        }
        self.terminal.give_back();
    }
}

/// Whether the terminal gives whole lines, which it does not while one is edited.
fn is_ours() -> bool {
    tcgetattr(io::stdin()).is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON))
}

/// Reads from a pipe or a file.
fn lines(give: &Sender<Input>, told: &Receiver<()>, waker: &Waker) {
    let mut lines = io::stdin().lock().lines();
    while told.recv().is_ok() {
        let input = match lines.next() {
            Some(Ok(line)) => Input::Line(line),
            Some(Err(error)) => Input::Failed(error),
            None => Input::End,
        };
        if !hand_over(input, give, waker) {
            return;
        }
    }
}

/// Reads from a terminal.
fn edit(give: &Sender<Input>, told: &Receiver<()>, waker: &Waker) {
    let mut editor = match Editor::<(), _>::with_history(Config::default(), MemHistory::new()) {
        Ok(editor) => editor,
        Err(error) => {
            hand_over(Input::Failed(io::Error::other(error)), give, waker);
            return;
        }
    };
    editor.set_auto_add_history(true);
    // It can only fail for a history in a file.
    let _ = editor.set_max_history_size(HISTORY);
    while told.recv().is_ok() {
        let input = match editor.readline(PROMPT) {
            Ok(line) => Input::Line(line),
            Err(ReadlineError::Eof | ReadlineError::Interrupted) => Input::End,
            Err(ReadlineError::Io(error)) => Input::Failed(error),
            Err(error) => Input::Failed(io::Error::other(error)),
        };
        if !hand_over(input, give, waker) {
            return;
        }
    }
}

/// Whether more is wanted.
fn hand_over(input: Input, give: &Sender<Input>, waker: &Waker) -> bool {
    let more = matches!(input, Input::Line(_));
    let given = give.send(input).is_ok();
    waker.wake();
    given && more
}
