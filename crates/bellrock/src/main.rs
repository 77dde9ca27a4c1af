//! The command `bellrock`. All of it is in [`bellrock::cli`].

fn main() -> std::process::ExitCode {
    bellrock::cli::main()
}
