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
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};

use super::complete::Names;
use super::history;

const PROMPT: &str = "bellrock> ";

/// How long the reader may take, from being asked for a line, to begin to edit it.
const TAKES_TERMINAL: Duration = Duration::from_millis(500);

/// What has come from the prompt.
pub(super) enum Input {
    Line(String),
    /// Ctrl-C: the line is given up.
    GivenUp,
    /// The end of the pipe, or Ctrl-D.
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
    /// Starts to read; `waker` is called when there is something. At a terminal, Tab completes to `names`.
    pub(super) fn start(waker: Waker, names: Names) -> io::Result<Self> {
        let terminal = Saved::now();
        let interactive = terminal.0.is_some();
        let (give, inputs) = channel();
        let (next, told) = sync_channel(1);
        let read = move || match interactive {
            true => edit(&give, &told, &waker, names),
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
fn edit(give: &Sender<Input>, told: &Receiver<()>, waker: &Waker, names: Names) {
    let mut editor = match editor() {
        Ok(editor) => editor,
        Err(error) => {
            hand_over(Input::Failed(io::Error::other(error)), give, waker);
            return;
        }
    };
    editor.set_helper(Some(names));
    let file = history::file();
    if let Some(file) = &file {
        // In the first session there is none. One that cannot be read does not keep anybody from working.
        let _ = editor.load_history(file);
    }
    while told.recv().is_ok() {
        let input = match editor.readline(PROMPT) {
            Ok(line) => {
                // A full disk costs the history, and nothing else.
                let _ = file.as_ref().map(|file| editor.append_history(file));
                Input::Line(line)
            }
            Err(ReadlineError::Interrupted) => Input::GivenUp,
            Err(ReadlineError::Eof) => Input::End,
            Err(ReadlineError::Io(error)) => Input::Failed(error),
            Err(error) => Input::Failed(io::Error::other(error)),
        };
        if !hand_over(input, give, waker) {
            return;
        }
    }
}

/// An editor of lines with a history. It makes the file of its history with mode 0600.
fn editor() -> rustyline::Result<Editor<Names, FileHistory>> {
    let config = Config::builder()
        .auto_add_history(true)
        .max_history_size(history::MAX_LINES)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .build();
    Editor::with_config(config)
}

/// Whether more is wanted.
fn hand_over(input: Input, give: &Sender<Input>, waker: &Waker) -> bool {
    let more = matches!(input, Input::Line(_) | Input::GivenUp);
    let given = give.send(input).is_ok();
    waker.wake();
    given && more
}
