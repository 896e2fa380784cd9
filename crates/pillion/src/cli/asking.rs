//! Questions that a command has itself: the one way from a command to the person.
//!
//! Where nobody can be asked the question is said as the reason why the command ends, with what to type instead.

use inquire::Confirm;
use inquire::error::{InquireError, InquireResult};
use protocol::{Error, ErrorKind};

use super::exit::Exit;
use super::failure::Failure;
use super::session::Session;

impl Session {
    /// Prompts on a thread of its own, since prompting blocks; `None` when the person left it without an answer.
    /// `instead` is what to type where nobody can be asked.
    pub async fn prompt<T: Send + 'static>(
        &self,
        question: &str,
        instead: impl Into<String>,
        prompt: impl FnOnce() -> InquireResult<T> + Send + 'static,
    ) -> Result<Option<T>, Failure> {
        if !self.terminal.asks {
            return Err(unasked(question, instead));
        }
        match tokio::task::spawn_blocking(prompt).await {
            Ok(Ok(value)) => Ok(Some(value)),
            Ok(Err(InquireError::OperationInterrupted)) => Err(Failure::interrupted()),
            Ok(Err(_)) | Err(_) => Ok(None),
        }
    }

    /// Asks for a yes or no; Esc is neither.
    pub async fn confirm(&self, question: &str, instead: impl Into<String>) -> Result<Option<bool>, Failure> {
        let asked = question.to_owned();
        let prompt = move || Confirm::new(&asked).with_default(false).prompt();
        self.prompt(question, instead, prompt).await
    }
}

/// What a command would have asked: what is missing is said on the command line.
pub fn unasked(question: &str, instead: impl Into<String>) -> Failure {
    let error = Error::new(
        ErrorKind::CannotAsk,
        format!("nobody can be asked here: {question}"),
    );
    Failure::from(error.hint(instead)).exit(Exit::Usage)
}

/// The same about what only a person decides: nothing on the command line was wrong.
pub fn undecided(question: &str, instead: impl Into<String>) -> Failure {
    unasked(question, instead).exit(Exit::Denied)
}

/// The end of a command that the person did not want after all.
pub fn left(said: &str) -> Exit {
    eprintln!("{said}");
    Exit::Denied
}
