//! Calls in flight: who asked, for which session, how to end them, and what there is to say about them.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::{CallId, ClosedReason, Dir, Error, ErrorKind, Issue, ServerName, Session, Tier, Token};
use tokio_util::sync::CancellationToken;

use crate::limits;
use crate::question::queue::Questions;
use crate::sink::RequestContext;

/// One call that may ask questions.
pub(crate) struct Call {
    pub tag: u64,
    pub id: Option<CallId>,
    pub session: Option<Session>,
    pub directory: Dir,
    pub server: ServerName,
    pub tool: Option<String>,
    /// Who is behind it. Nobody but the person at the host is ever asked.
    pub tier: Tier,
    /// Ends the call, whoever orders it.
    pub cancel: CancellationToken,
    /// The host ended it by `mcp.call.cancel`.
    ended_by_host: AtomicBool,
    issues: Mutex<Vec<Issue>>,
}

impl Call {
    /// Adds something the host should know of this call.
    pub fn note(&self, issue: Issue) {
        let mut issues = self.issues.lock().unwrap_or_else(PoisonError::into_inner);
        if issues.len() < limits::ISSUES {
            issues.push(issue);
        }
    }

    /// What there is to say, once.
    pub fn take_issues(&self) -> Vec<Issue> {
        std::mem::take(&mut *self.issues.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The error of a call that was cancelled.
    pub fn cancelled_error(&self, request: &RequestContext) -> Error {
        if request.cancel.is_cancelled() && !self.ended_by_host.load(Ordering::Relaxed) {
            return Error::new(ErrorKind::Cancelled, "cancelled by the host");
        }
        Error::new(ErrorKind::CallCancelled, "the call was cancelled by the host")
            .server(self.server.clone())
            .by("host")
    }
}

/// All calls in flight of one connection to a host.
#[derive(Default)]
pub(crate) struct Calls {
    last_tag: AtomicU64,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    by_tag: HashMap<u64, Arc<Call>>,
    by_id: HashMap<CallId, u64>,
    tokens: HashSet<Token>,
}

/// What a new call is known by.
pub(crate) struct NewCall<'a> {
    pub id: Option<&'a CallId>,
    pub session: Option<&'a Session>,
    pub directory: &'a Dir,
    pub server: &'a ServerName,
    pub tool: Option<&'a str>,
    /// The request it is a part of: it is known by that one's name, and ends with it.
    pub within: Option<&'a Call>,
}

impl Calls {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a call until the guard is dropped.
    pub fn begin<'a>(
        &'a self,
        request: &RequestContext,
        questions: &'a Questions,
        new: &NewCall<'_>,
    ) -> Result<CallGuard<'a>, Error> {
        let tag = self.last_tag.fetch_add(1, Ordering::Relaxed) + 1;
        let mut book = self.book();
        if let (Some(id), None) = (new.id, new.within) {
            if book.by_id.contains_key(id) {
                return Err(
                    Error::new(ErrorKind::InUse, format!("the call `{id}` is still running"))
                        .hint("choose another `call` for each call in flight"),
                );
            }
            book.by_id.insert(id.clone(), tag);
        }
        let call = Arc::new(Call {
            tag,
            id: new.id.cloned(),
            session: new.session.cloned(),
            directory: new.directory.clone(),
            server: new.server.clone(),
            tool: new.tool.map(str::to_owned),
            tier: request.tier,
            cancel: new
                .within
                .map_or(&request.cancel, |whole| &whole.cancel)
                .child_token(),
            ended_by_host: AtomicBool::new(false),
            issues: Mutex::default(),
        });
        book.by_tag.insert(tag, Arc::clone(&call));
        Ok(CallGuard {
            calls: self,
            questions,
            call,
            reason: ClosedReason::CallEnded,
        })
    }

    /// The call of a tag, while it runs.
    pub fn get(&self, tag: u64) -> Option<Arc<Call>> {
        self.book().by_tag.get(&tag).cloned()
    }

    /// `mcp.call.cancel`.
    pub fn cancel(&self, id: &CallId) -> bool {
        let book = self.book();
        let Some(call) = book.by_id.get(id).and_then(|tag| book.by_tag.get(tag)) else {
            return false;
        };
        call.ended_by_host.store(true, Ordering::Relaxed);
        call.cancel.cancel();
        true
    }

    /// Ends the calls of a session.
    pub fn end_session(&self, session: &Session) {
        for call in self
            .book()
            .by_tag
            .values()
            .filter(|call| call.session.as_ref() == Some(session))
        {
            call.ended_by_host.store(true, Ordering::Relaxed);
            call.cancel.cancel();
        }
    }

    /// Takes a progress token until it is given back.
    pub fn take_token(&self, token: &Token) -> Result<(), Error> {
        if self.book().tokens.insert(token.clone()) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::InUse, "this `workDoneToken` is in use")
            .hint("choose another token for each request in flight"))
    }

    /// Gives a progress token back.
    pub fn free_token(&self, token: &Token) {
        self.book().tokens.remove(token);
    }
}

/// Keeps a call registered; its end closes the questions that wait for it.
pub(crate) struct CallGuard<'a> {
    calls: &'a Calls,
    questions: &'a Questions,
    pub call: Arc<Call>,
    /// What the questions that are still open are told.
    pub reason: ClosedReason,
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        let mut book = self.calls.book();
        book.by_tag.remove(&self.call.tag);
        if let Some(id) = &self.call.id
            && book.by_id.get(id) == Some(&self.call.tag)
        {
            book.by_id.remove(id);
        }
        drop(book);
        self.questions.call_over(self.call.tag, &self.reason);
    }
}
