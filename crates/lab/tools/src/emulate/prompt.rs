//! Reads commands from a terminal, with line editing, or from a pipe.
//!
//! Reading blocks, and the network must not. So a separate thread reads a line, passes it on, wakes
//! the network's thread, and waits until the next line is requested.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, BufRead, IsTerminal};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use bellrock_emulator::live::LiveWaker;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};

use super::complete::Names;
use super::history;

const PROMPT: &str = "bellrock> ";

/// Maximum time from a request for a line until the reader edits it.
const TAKES_TERMINAL: Duration = Duration::from_millis(500);

/// Input from the prompt.
pub(super) enum Input {
    Line(String),
    /// Ctrl-C: the line is discarded.
    GivenUp,
    /// The end of the pipe, or Ctrl-D.
    End,
    Failed(io::Error),
}

/// The lines of standard input.
pub(super) struct Prompt {
    inputs: Receiver<Input>,
    next: SyncSender<()>,
    /// Whether a line was requested and has not come yet.
    reading: Cell<bool>,
    terminal: Saved,
}

/// Saved modes of a terminal. The reader may be in the middle of a line when the command ends.
pub(super) struct Saved(Option<Termios>);

impl Saved {
    /// Saves the present modes, if standard input and output are a terminal.
    pub(super) fn now() -> Self {
        let interactive = io::stdin().is_terminal() && io::stdout().is_terminal();
        Saved(interactive.then(|| tcgetattr(io::stdin()).ok()).flatten())
    }

    /// Restores the saved modes.
    pub(super) fn give_back(&self) {
        if let Some(terminal) = &self.0 {
            // Errors are ignored: the command ends.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, terminal);
        }
    }
}

impl Prompt {
    /// Starts the reader. `waker` is called for each input. Tab completes to `names`.
    pub(super) fn start(waker: LiveWaker, names: Names) -> io::Result<Self> {
        let terminal = Saved::now();
        let interactive = terminal.0.is_some();
        let (sender, inputs) = channel();
        let (next, resumed) = sync_channel(1);
        let read = move || match interactive {
            true => edit(&sender, &resumed, &waker, names),
            false => lines(&sender, &resumed, &waker),
        };
        thread::Builder::new().name("prompt".to_owned()).spawn(read)?;
        Ok(Prompt { inputs, next, reading: Cell::new(false), terminal })
    }

    /// Whether input and output are a terminal.
    pub(super) fn is_interactive(&self) -> bool {
        self.terminal.0.is_some()
    }

    /// Whether a line is being typed. A line that was ended by the user need not have come yet.
    pub(super) fn is_editing(&self) -> bool {
        self.is_interactive() && !is_ours()
    }

    /// Requests the next line.
    pub(super) fn resume(&self) {
        // Fails if the reader has ended, which it has reported.
        self.reading.set(self.next.try_send(()).is_ok());
    }

    /// The next input, if there is one.
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
        // The reader may be about to change the terminal's modes: waits until it has.
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

/// Whether the terminal is in line mode, which it is not while a line is edited.
fn is_ours() -> bool {
    tcgetattr(io::stdin()).is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON))
}

/// Reads from a pipe or a file.
fn lines(sender: &Sender<Input>, resumed: &Receiver<()>, waker: &LiveWaker) {
    let mut lines = io::stdin().lock().lines();
    while resumed.recv().is_ok() {
        let input = match lines.next() {
            Some(Ok(line)) => Input::Line(line),
            Some(Err(error)) => Input::Failed(error),
            None => Input::End,
        };
        if !hand_over(input, sender, waker) {
            return;
        }
    }
}

/// Reads from a terminal.
fn edit(sender: &Sender<Input>, resumed: &Receiver<()>, waker: &LiveWaker, names: Names) {
    let mut editor = match editor() {
        Ok(editor) => editor,
        Err(error) => {
            hand_over(Input::Failed(io::Error::other(error)), sender, waker);
            return;
        }
    };
    editor.set_helper(Some(names));
    let file = history::file();
    if let Some(file) = &file {
        // Errors are ignored: in the first session the file does not exist.
        let _ = editor.load_history(file);
    }
    // The other lines of a text that was pasted.
    let mut pasted = VecDeque::new();
    while resumed.recv().is_ok() {
        let input = match pasted.pop_front() {
            Some(line) => {
                // It is shown as if it had been typed.
                println!("{PROMPT}{line}");
                Input::Line(line)
            }
            None => match editor.readline(PROMPT) {
                Ok(text) => {
                    pasted.extend(text.lines().map(str::to_owned));
                    for line in &pasted {
                        // Errors are ignored: a full disk only loses the history.
                        let _ = editor.add_history_entry(line);
                    }
                    let _ = file.as_ref().map(|file| editor.append_history(file));
                    Input::Line(pasted.pop_front().unwrap_or_default())
                }
                Err(ReadlineError::Interrupted) => Input::GivenUp,
                Err(ReadlineError::Eof) => Input::End,
                Err(ReadlineError::Io(error)) => Input::Failed(error),
                Err(error) => Input::Failed(io::Error::other(error)),
            },
        };
        if !hand_over(input, sender, waker) {
            return;
        }
    }
}

/// A line editor with a history. It creates the history file with mode 0600.
fn editor() -> rustyline::Result<Editor<Names, FileHistory>> {
    let config = Config::builder()
        .max_history_size(history::MAX_LINES)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .build();
    Editor::with_config(config)
}

/// Passes an input on. Returns whether more input is wanted.
fn hand_over(input: Input, sender: &Sender<Input>, waker: &LiveWaker) -> bool {
    let has_more = matches!(input, Input::Line(_) | Input::GivenUp);
    let is_sent = sender.send(input).is_ok();
    waker.wake();
    is_sent && has_more
}
