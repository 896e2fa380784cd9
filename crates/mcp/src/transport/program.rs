//! A program that is run once for what it prints: without a shell, bounded in time and size, and its whole group ends with it.
//!
//! What it prints may be a secret, so nothing of it is in an error, and its stderr is read away unseen.

use std::time::Duration;

use tokio::io::AsyncReadExt as _;

use super::child;
use crate::error::ConnectError;
use crate::target::StdioTarget;

/// Why there is nothing printed to use.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    #[error("it could not be started: {0}")]
    Spawn(String),
    #[error("it did not end within {} s", .0.as_secs())]
    TooLong(Duration),
    #[error("it printed more than {0} bytes")]
    TooLarge(usize),
    #[error("its output broke off: {0}")]
    Broken(std::io::Error),
    #[error("it ended with {0}")]
    Failed(String),
}

/// Runs a program to its end and returns its stdout. Its stdin is empty.
pub async fn run_program(
    target: &StdioTarget,
    limit: Duration,
    max_bytes: usize,
) -> Result<Vec<u8>, ProgramError> {
    let (mut child, pipes) = child::spawn(target).map_err(|error| {
        ProgramError::Spawn(match error {
            ConnectError::Spawn { message, .. } => message,
            other => other.to_string(),
        })
    })?;
    drop(pipes.stdin);
    let mut stderr = pipes.stderr;
    let work = async {
        let mut output = Vec::new();
        let mut stdout = pipes.stdout.take(max_bytes as u64 + 1);
        let unseen = async {
            // A full pipe would hold the program up.
            let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
        };
        let whole = async {
            stdout
                .read_to_end(&mut output)
                .await
                .map_err(ProgramError::Broken)?;
            if output.len() > max_bytes {
                return Err(ProgramError::TooLarge(max_bytes));
            }
            child.ended().await;
            Ok(())
        };
        tokio::select! {
            // Only one of them ends the wait: a grandchild may keep stderr open.
            outcome = whole => outcome?,
            () = async { unseen.await; std::future::pending().await } => {}
        }
        Ok(output)
    };
    let output = tokio::time::timeout(limit, work)
        .await
        .unwrap_or(Err(ProgramError::TooLong(limit)))?;
    match child.reap() {
        Some(status) if status.success() => Ok(output),
        Some(status) => Err(ProgramError::Failed(match status.code() {
            Some(code) => format!("code {code}"),
            None => "a signal".to_owned(),
        })),
        None => Err(ProgramError::Failed("no status".to_owned())),
    }
}
